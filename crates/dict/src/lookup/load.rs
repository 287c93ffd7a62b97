//! One request to the source: ask, encode, keep, complete.

use super::counters::Counters;
use super::flight::{Flight, FlightTable, Loaded, lock};
use super::panics::caught;
use super::pool::JobInput;
use super::{Backoff, Connections, Pace, RefusedKeys};
use crate::definition::Lifetime;
use crate::environment::{Clock, WaitLimit};
use crate::error::{Code, DictError};
use crate::limits::CLOCK_STEP_SECONDS;
use crate::row::{Cells, Decoder, KeyBatch, KeyFormat, Raw, RowFormat};
use crate::source::Source;
use crate::storage::Storage;
use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use granary_cache::{Cache, Entry};
use hashbrown::HashTable;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

/// Separates the hash that spreads lifetimes from the one by which the cache places keys.
const LIFETIME_SEED: u64 = 0x6c69_6665_7469_6d65;

/// How long a source thread waits for room on the device for its rows.
const CACHE_ROWS_TIMEOUT: Duration = Duration::from_secs(1);

/// What source threads share with lookups.
pub(crate) struct SourceAccess {
    /// Its full name, which RENAME replaces.
    pub name: RwLock<String>,
    /// The format of the keys of the source's rows.
    pub key_format: KeyFormat,
    /// The format of the keys that lookups are given.
    pub lookup_format: KeyFormat,
    pub row_format: RowFormat,
    pub lifetime: Lifetime,
    pub clock: Clock,
    pub waiting: WaitLimit,
    pub counters: Arc<Counters>,
    pub connections: Connections,
    pub storage: Storage,
    pub table: Mutex<FlightTable>,
    /// Flights that were taken out of the table, counted under its lock. A lookup that read a smaller number
    /// before it missed a key may find it in the cache now.
    pub completed: AtomicU64,
    pub backoff: Mutex<Backoff>,
    pub refused_keys: Mutex<RefusedKeys>,
    pub pace: Pace,
    /// No request begins any more.
    pub is_closing: AtomicBool,
    /// Why the last look for changes (UPDATE_FIELD) failed; empty: it did not.
    pub update_failure: Mutex<String>,
    /// Counts reloads. Rows are put under the read lock (a copy in memory, no I/O), and keys forgotten under the write
    /// lock, so that no row requested before a reload is cached after it.
    pub epoch: RwLock<u64>,
}

/// Why a flight does not begin.
enum Skipped {
    /// The source is not to be asked now.
    Forbidden(DictError),
    /// No lookup waits any longer.
    Unwanted,
}

impl From<DictError> for Skipped {
    fn from(error: DictError) -> Self {
        Self::Forbidden(error)
    }
}

impl SourceAccess {
    /// The dictionary's present full name, for errors and the log.
    pub fn name(&self) -> String {
        self.name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs on a source thread, or where the pool refused the job. Completes the flight, unless all lookups that waited
    /// for it gave up before it could begin.
    pub fn run(&self, flight: &Arc<Flight>, input: JobInput<'_>) {
        let outcome = match input {
            JobInput::Run(source) => match self.pace.wait(|| self.is_wanted(flight)) {
                // Lookups wait for the end of the flight: a panic is an outcome, too.
                Ok(()) => caught("Taking in what the source answered", || self.load(source, flight)),
                Err(Skipped::Forbidden(error)) => Err(error),
                Err(Skipped::Unwanted) => return,
            },
            JobInput::Closed => Err(self.not_started()),
        };
        if self.storage.store().is_some() {
            let mut table = lock(&self.table);
            table.remove(flight);
            self.completed.fetch_add(1, Ordering::SeqCst);
        }
        flight.complete(outcome);
    }

    /// The deadline of a flight that has not begun. If it is over, the flight is removed from the table, so that no
    /// lookup can join it any more.
    fn is_wanted(&self, flight: &Arc<Flight>) -> Result<Instant, Skipped> {
        self.may_begin()?;
        let mut table = lock(&self.table);
        let until = flight.wanted_until();
        if Instant::now() < until {
            return Ok(until);
        }
        table.remove(flight);
        Err(Skipped::Unwanted)
    }

    fn may_begin(&self) -> Result<(), DictError> {
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(self.not_started());
        }
        self.may_ask()
    }

    /// The error of a request whose turn did not come.
    pub fn not_started(&self) -> DictError {
        DictError::new(
            Code::CacheDictionaryUpdateFail,
            format!("Update of dictionary {} was not started", self.name()),
        )
    }

    fn load(&self, source: &mut Option<Box<dyn Source>>, flight: &Flight) -> Result<Arc<Loaded>, DictError> {
        let loaded = self.load_parts(source, flight)?;
        let found = loaded.rows.iter().flatten().count();
        let failed: usize = loaded.failures.iter().map(|(slots, _)| slots.len()).sum();
        self.counters.source_keys.add(flight.keys.len());
        self.counters.source_keys_found.add(found);
        // A source may have answered more than it was asked, of keys of a part that failed.
        self.counters.source_keys_absent.add(flight.keys.len().saturating_sub(failed + found));
        self.cache_rows(flight, &loaded);
        Ok(Arc::new(loaded))
    }

    /// The error of a wait for the source without an answer.
    pub fn unavailable(&self, what: &str) -> DictError {
        DictError::new(
            Code::TimeoutExceeded,
            format!("Dictionary {} source seems unavailable, because {what}", self.name()),
        )
    }

    /// The error of a wait that exceeded `timeout_ms`.
    pub fn timed_out(&self, timeout_ms: u64) -> DictError {
        self.unavailable(&format!("{timeout_ms} ms timeout exceeded"))
    }

    /// Waits for the turn of a request that is no flight, until `deadline`.
    ///
    /// # Errors
    /// It would come too late, or the dictionary is closing.
    pub fn await_turn(&self, deadline: Instant) -> Result<(), DictError> {
        self.pace.wait(|| match self.is_closing.load(Ordering::SeqCst) || Instant::now() >= deadline {
            true => Err(self.not_started()),
            false => Ok(deadline),
        })
    }

    /// Whether lookups may ask the source now, or leave it alone after a failure. DIRECT has nothing to answer from
    /// meanwhile, and asks.
    ///
    /// # Errors
    /// 510 until the next request is scheduled.
    pub fn may_ask(&self) -> Result<(), DictError> {
        match self.backoff_remaining() {
            Some(left) if self.storage.store().is_some() => Err(DictError::new(
                Code::CacheDictionaryUpdateFail,
                format!(
                    "Query contains keys that are not present in cache or expired. Could not update cache \
                     dictionary {} now, because nearest update is scheduled at {}",
                    self.name(),
                    crate::types::datetime_to_text(
                        (self.clock.now() + left.as_millis().div_ceil(1000) as u64) as i64
                    )
                ),
            )),
            _ => Ok(()),
        }
    }

    /// For how long the source is to be left alone after a failure, if it is.
    pub fn backoff_remaining(&self) -> Option<Duration> {
        lock(&self.backoff).left(self.clock.elapsed())
    }

    /// Calls the source and remembers failure or success; drops its connection after a failure. A kept connection that
    /// the server has closed meanwhile is no failure: the call is repeated on a new one.
    pub fn ask<T>(
        &self,
        slot: &mut Option<Box<dyn Source>>,
        call: impl FnMut(&mut dyn Source) -> Result<T, DictError>,
    ) -> Result<T, DictError> {
        self.ask_by(slot, call, |_| true)
    }

    /// Like [`ask`](Self::ask), for some keys: an error of the request is no outage, for it says nothing of other keys.
    pub(super) fn ask_for_keys<T>(
        &self,
        slot: &mut Option<Box<dyn Source>>,
        call: impl FnMut(&mut dyn Source) -> Result<T, DictError>,
    ) -> Result<T, DictError> {
        self.ask_by(slot, call, |error| !error.is_of_request())
    }

    /// Calls the source and remembers how the call ended; `is_outage` says which errors leave the source alone.
    fn ask_by<T>(
        &self,
        slot: &mut Option<Box<dyn Source>>,
        call: impl FnMut(&mut dyn Source) -> Result<T, DictError>,
        is_outage: impl Fn(&DictError) -> bool,
    ) -> Result<T, DictError> {
        let failures_before = lock(&self.backoff).failures();
        let answer = self.call_uncounted(slot, call);
        let mut backoff = lock(&self.backoff);
        match &answer {
            Ok(_) => {
                if backoff.succeeded(self.clock.now()) {
                    tracing::info!(dictionary = self.name(), "the source answers again");
                }
            }
            Err(error) => {
                let failure = error.to_string();
                let is_first = match is_outage(error) {
                    true => backoff.failed(failures_before, self.clock.elapsed(), failure),
                    false => backoff.refused(self.clock.elapsed(), failure),
                };
                if is_first {
                    tracing::warn!(dictionary = self.name(), %error, "the source fails");
                }
            }
        }
        drop(backoff);
        answer
    }

    /// Keeps lookups from asking for a key again for as long as the shortest back-off.
    pub(super) fn refuse_key(&self, key: &[u8], error: &DictError) {
        let now = self.clock.elapsed();
        let until = now.saturating_add(lock(&self.backoff).base());
        lock(&self.refused_keys).add(key, error, now, until);
    }

    /// Whether lookups may ask for these keys now: not if a request for one of them failed just before.
    ///
    /// # Errors
    /// The error of that request.
    pub fn may_ask_for<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<(), DictError> {
        lock(&self.refused_keys).find(keys, self.clock.elapsed()).map_or(Ok(()), Err)
    }

    /// Like [`ask`](Self::ask), but failure or success is not remembered.
    pub fn call_uncounted<T>(
        &self,
        slot: &mut Option<Box<dyn Source>>,
        mut call: impl FnMut(&mut dyn Source) -> Result<T, DictError>,
    ) -> Result<T, DictError> {
        self.counters.source_requests.add(1);
        let _entered = self.counters.source_under_way.enter();
        let was_kept = slot.is_some();
        let mut answer = self.call(slot, &mut call);
        if was_kept && answer.as_ref().is_err_and(DictError::is_lost_connection) {
            answer = self.call(slot, &mut call);
        }
        if answer.is_err() {
            self.counters.source_errors.add(1);
        }
        answer
    }

    /// Calls the source over the connection that is kept, or a new one.
    fn call<T>(
        &self,
        slot: &mut Option<Box<dyn Source>>,
        call: &mut impl FnMut(&mut dyn Source) -> Result<T, DictError>,
    ) -> Result<T, DictError> {
        let answer = caught("The source's client", || {
            let source = match slot {
                Some(source) => source,
                None => slot.insert(self.connections.connect().map_err(DictError::of_outage)?),
            };
            call(source.as_mut())
        });
        if answer.is_err() {
            *slot = None;
        }
        answer
    }

    /// Counts rows that the source answered.
    pub fn count_rows(&self, batches: &[RecordBatch]) {
        self.counters.source_rows.add(batches.iter().map(RecordBatch::num_rows).sum());
    }

    /// Encodes the rows of the keys that were asked for from slot `first` on into `loaded`.
    pub(super) fn encode(
        &self,
        keys: &KeyBatch,
        first: usize,
        batches: &[RecordBatch],
        loaded: &mut Loaded,
    ) -> Result<(), DictError> {
        let mut slots = Slots { keys, next: first, table: None };
        for batch in batches {
            self.each_row(batch, |key, row| {
                if let Some(slot) = slots.find(key) {
                    let start = loaded.bytes.len();
                    row.append_to(&mut loaded.bytes);
                    loaded.rows[slot] = Some((start, loaded.bytes.len()));
                } else {
                    self.counters.source_rows_uninvited.add(1);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Visits the rows of a batch of the source whose keys can exist.
    pub fn each_row(
        &self,
        batch: &RecordBatch,
        mut visit: impl FnMut(&[u8], SourceRow<'_>) -> Result<(), DictError>,
    ) -> Result<(), DictError> {
        let (key_arrays, cells) = self.split(batch)?;
        let keys = self.key_format.encode(&key_arrays)?;
        let impossible = self.key_format.impossible(&key_arrays);
        for row in 0..batch.num_rows() {
            if impossible.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                visit(keys.get(row), SourceRow { format: &self.row_format, cells: &cells, row })?;
            }
        }
        Ok(())
    }

    /// Key arrays and attribute cells of a batch, checked.
    fn split(&self, batch: &RecordBatch) -> Result<(Vec<ArrayRef>, Vec<Cells>), DictError> {
        let types = self.row_format.data_types();
        let keys = self.key_format.data_types().len();
        if batch.num_columns() != keys + types.len() {
            return Err(DictError::new(
                Code::TypeMismatch,
                format!("The source answered {} columns, not {}", batch.num_columns(), keys + types.len()),
            ));
        }
        let (key_arrays, attributes) = batch.columns().split_at(keys);
        let cells = types.zip(attributes).map(|(t, array)| Cells::new(t, array)).collect::<Result<_, _>>()?;
        Ok((key_arrays.to_vec(), cells))
    }

    /// A batch of the source as a lookup would show it: without impossible keys, NULLs turned to defaults.
    pub fn with_defaults(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, DictError> {
        let (keys, cells) = self.split(batch)?;
        let possible = self.key_format.impossible(&keys);
        let rows: Vec<u32> = (0..batch.num_rows() as u32)
            .filter(|&row| possible.as_ref().is_none_or(|nulls| nulls.is_valid(row as usize)))
            .collect();
        let all: Vec<usize> = (0..cells.len()).collect();
        let mut decoder = Decoder::new(&self.row_format, &all, rows.len());
        let mut bytes = Vec::new();
        for &row in &rows {
            bytes.clear();
            self.row_format.encode(&cells, row as usize, &mut bytes);
            decoder.push(&bytes)?;
        }
        let rows = UInt32Array::from(rows);
        let taken = keys.iter().map(|array| arrow::compute::take(array, &rows, None));
        let mut columns = taken
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))?;
        columns.extend(decoder.finish()?);
        Ok(columns)
    }

    /// Writes rows and absences to the cache, each with a lifetime of its own.
    fn cache_rows(&self, flight: &Flight, loaded: &Loaded) {
        let Some(store) = self.storage.store() else { return };
        let answered = loaded.answered.iter();
        let slots =
            answered.flat_map(|(slots, asked_at)| slots.clone().map(move |slot| (slot as u32, *asked_at)));
        let entry = |(slot, asked_at): (u32, u64)| {
            let key = flight.keys.get(slot as usize);
            let expires_at = self.expiry(asked_at, key);
            (slot, Entry { key: store.cache().key(key), value: loaded.row(slot), expires_at })
        };
        let (slots, entries): (Vec<u32>, Vec<Entry<'_>>) = slots.map(entry).unzip();
        if flight.renews() {
            // No power loss may bring back a row that was seen replaced. Lookups meanwhile join this flight.
            store.cache().delete_many(&entries.iter().map(|entry| entry.key).collect::<Vec<_>>());
            if store.sync_changes().is_err() {
                // The log says why, and the renewal fails when it syncs itself.
                return;
            }
        }
        // Waits for room: a row that finds none is asked for again at the next lookup, which costs more.
        let mut batches = store.cache().batches_with_room(&entries, CACHE_ROWS_TIMEOUT);
        while batches
            .next()
            .is_some_and(|some| self.cache_batch(flight, store.cache(), &entries[some.clone()], &slots[some]))
        {
        }
    }

    /// Caches the entries of these slots; `false`: a reload has made them too old for that.
    fn cache_batch(&self, flight: &Flight, cache: &Cache, entries: &[Entry<'_>], slots: &[u32]) -> bool {
        let epoch = self.epoch.read().unwrap_or_else(PoisonError::into_inner);
        if *epoch != flight.epoch {
            return false;
        }
        let (forgotten, kept): (Vec<_>, Vec<_>) =
            entries.iter().zip(slots).partition(|(_, slot)| flight.is_forgotten(**slot));
        cache.put_many(&kept.into_iter().map(|(entry, _)| *entry).collect::<Vec<_>>());
        if !forgotten.is_empty() && flight.renews() {
            // A renewal was acknowledged for keys that were forgotten meanwhile; remove whatever older row may be
            // cached.
            cache.delete_many(&forgotten.into_iter().map(|(entry, _)| entry.key).collect::<Vec<_>>());
        }
        true
    }

    /// When an entry that was got at `time` expires, in Unix seconds; 0: never.
    fn expiry(&self, time: u64, key: &[u8]) -> u32 {
        if self.lifetime == Lifetime::FOREVER {
            return 0;
        }
        let end = time.saturating_add(self.lifetime_of(key));
        u32::try_from(end).unwrap_or(u32::MAX).max(1)
    }

    /// The latest time at which the lifetime of an entry got at `now` may end. The age of an entry whose lifetime ends
    /// later is unknown: it was got while the clock was ahead, or under another LIFETIME.
    pub fn latest_end(&self, now: u64) -> u64 {
        match self.lifetime {
            Lifetime::FOREVER => u64::MAX,
            Lifetime { max_seconds, .. } => {
                now.saturating_add(max_seconds).saturating_add(CLOCK_STEP_SECONDS)
            }
        }
    }

    /// When an entry with this expiry was got, in Unix seconds; `None`: unknown, because it never expires.
    pub fn updated_at(&self, key: &[u8], expires_at: u32) -> Option<u64> {
        (expires_at > 0).then(|| u64::from(expires_at).saturating_sub(self.lifetime_of(key)))
    }

    /// Seconds for which an entry of this key is fresh. Keys spread evenly over LIFETIME, so that entries got together
    /// do not expire together; and a key has the same lifetime each time, so that the time at which an entry was got
    /// need not be stored.
    fn lifetime_of(&self, key: &[u8]) -> u64 {
        let Lifetime { min_seconds, max_seconds } = self.lifetime;
        min_seconds + XxHash3_64::oneshot_with_seed(LIFETIME_SEED, key) % (max_seconds - min_seconds + 1)
    }
}

/// Whether an entry's lifetime ends after `latest` ([`SourceAccess::latest_end`]). One that never ends (0) wraps to the
/// latest of all.
#[inline(always)]
pub(crate) fn ends_after(expires_at: u32, latest: u64) -> bool {
    u64::from(expires_at.wrapping_sub(1)) >= latest
}

/// A row that the source answered.
pub(crate) struct SourceRow<'a> {
    format: &'a RowFormat,
    cells: &'a [Cells],
    row: usize,
}

impl SourceRow<'_> {
    /// Whether the source has NULL for an attribute.
    pub fn is_null(&self, attribute: usize) -> bool {
        matches!(self.cells[attribute].get(self.row), Raw::Null)
    }

    /// Encodes its attributes.
    #[inline]
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        self.format.encode(self.cells, self.row, bytes);
    }
}

/// Finds the slot of a key. Most sources answer in the order asked, so the next slot is tried first and the
/// table made only when that fails.
struct Slots<'a> {
    keys: &'a KeyBatch,
    next: usize,
    table: Option<HashTable<u32>>,
}

impl Slots<'_> {
    fn find(&mut self, key: &[u8]) -> Option<usize> {
        if self.next < self.keys.len() && self.keys.get(self.next) == key {
            self.next += 1;
            return Some(self.next - 1);
        }
        let keys = self.keys;
        let hash = |&slot: &u32| XxHash3_64::oneshot(keys.get(slot as usize));
        let table = self.table.get_or_insert_with(|| {
            let mut table = HashTable::with_capacity(keys.len());
            for slot in 0..keys.len() as u32 {
                table.insert_unique(hash(&slot), slot, hash);
            }
            table
        });
        let slot = *table.find(XxHash3_64::oneshot(key), |&slot| keys.get(slot as usize) == key)? as usize;
        self.next = slot + 1;
        Some(slot)
    }
}
