//! UPDATE_FIELD: rows that were changed in the source are asked for anew if they are cached, and others left alone.

use super::Dictionary;
use crate::cache_store::CacheStore;
use crate::config::Expired;
use crate::environment::WaitPermit;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{call_source, caught, lock};
use crate::source::{Changes, NewestChange, Updates};
use arrow::array::{Array, ArrayRef, UInt32Array};
use granary_cache::{Key, Outcome};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often a watcher looks whether its dictionary is still there.
const PULSE: Duration = Duration::from_secs(1);

/// The first look may take this long if what is cached meanwhile is to stay.
const FIRST_LOOK: Duration = Duration::from_secs(limits::FIRST_WATERMARK_SECONDS);

/// A change may be this much later than now, because of another clock or time zone.
const AHEAD_SECONDS: i64 = 2 * 86_400;

/// How far changes are known.
#[derive(Default)]
pub(crate) struct ChangesKnown {
    /// The point after which changes are searched; `None`: nothing is known of earlier changes.
    watermark: Option<String>,
    /// The last look found no row with a time, and what was cached before it is forgotten.
    is_without_times: bool,
    /// The end of the changes at the last look, and since when it has been that.
    end: Option<(NewestChange, Instant)>,
    /// All rows up to that end were taken in, at a time when no more could come before it.
    settled: bool,
    /// A warning about how changes are found, for `last_exception`; empty: there is none.
    notice: String,
}

impl ChangesKnown {
    /// Restores the watermark of an earlier run.
    pub fn since(watermark: Option<String>) -> ChangesKnown {
        ChangesKnown { watermark, ..ChangesKnown::default() }
    }
}

impl Dictionary {
    /// Looks for changes every UPDATE_PERIOD, for as long as the dictionary is there; without UPDATE_FIELD, and with
    /// nothing cached, there is nothing to do. Where all rows are held, they are loaded anew when LIFETIME is over.
    pub fn watch(self: &Arc<Self>) {
        if let Some(full_load) = self.core.access.storage.full_load() {
            full_load.watch_lifetime(self);
        }
        let Some(updates) = self.updates() else { return };
        let watched = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("granary-updates".into());
        // Without a thread entries live as long as LIFETIME says.
        let _ = thread.spawn(move || watch(&watched, &updates));
    }

    fn updates(&self) -> Option<Updates> {
        let updates = self.definition.source.updates()?;
        self.core.access.storage.store().map(|_| updates)
    }

    /// Looks for changes now, and returns how many entries were asked for anew.
    ///
    /// # Errors
    /// The errors of the source. What is known stays as it is, and the next look begins where this one did.
    pub fn take_updates(&self) -> Result<usize, DictError> {
        let (Some(updates), Some(store)) = (self.updates(), self.core.access.storage.store()) else {
            return Ok(0);
        };
        // One look at a time; lookups do not need this lock.
        let mut known = lock(&self.core.known);
        let Some(watermark) = known.watermark.clone() else {
            return self.look_first(&mut known, &updates, store);
        };
        let newest = self.ask_source({
            let watermark = watermark.clone();
            move |source| source.newest_change(Some(&watermark))
        })?;
        if newest.is_behind() {
            // The latest row was taken back, or the source is another one; later changes may carry a time before the
            // watermark.
            *known = ChangesKnown::default();
            store.save_watermark(None);
            let renewed = self.look_first(&mut known, &updates, store)?;
            known.notice =
                format!("No row is as late as {watermark} any more, so all entries were forgotten");
            return Ok(renewed);
        }
        let since = known.end.as_ref().filter(|(end, _)| *end == newest).map(|(_, since)| *since);
        if since.is_some() && known.settled {
            return Ok(0);
        }
        // Decided now: rows committed while changed rows are asked for anew are in none of the answers.
        let rest_seconds = updates.lag_seconds.saturating_add(newest.unit_seconds).max(1);
        let is_final = since.is_some_and(|since| since.elapsed().as_secs() >= rest_seconds);
        let changes = self.ask_source(move |source| source.changes(&watermark))?;
        let renewed = match changes {
            Changes::TooMany => {
                self.forget_all()?;
                0
            }
            Changes::Keys(keys) => self.renew_cached(store, &keys)?,
        };
        known.settled = is_final;
        if newest.next.is_some() && newest.next != known.watermark {
            known.watermark.clone_from(&newest.next);
            store.save_watermark(known.watermark.as_deref());
            known.notice.clear();
        }
        if let Some(notice) = self.is_ahead(&newest) {
            known.notice = notice;
        }
        if since.is_none() {
            known.end = Some((newest, Instant::now()));
        }
        self.core.access.counters.keys_updated.add(renewed);
        Ok(renewed)
    }

    /// Makes the first look: finds the watermark from which changes are searched.
    fn look_first(
        &self,
        known: &mut ChangesKnown,
        updates: &Updates,
        store: &CacheStore,
    ) -> Result<usize, DictError> {
        let began = Instant::now();
        // Where the look before found no time, what is cached may be older than the first time that this one finds.
        let is_fresh = !known.is_without_times && {
            // From here on no row is cached that was asked for before this look.
            self.forget_requests();
            store.cache().is_empty()
        };
        let newest = self.ask_source(|source| source.newest_change(None))?;
        let is_without_times = newest.next.is_none();
        if is_without_times && known.is_without_times {
            return Ok(0);
        }
        // Rows read before the first watermark may have changed before it. But the first watermark is FIRST_LOOK
        // earlier than others: if this look took less, changes during it come after the watermark.
        let keeps = is_fresh && updates.lag_seconds > 0 && began.elapsed() < FIRST_LOOK;
        if !keeps {
            self.forget_requests();
            if !store.cache().is_empty() {
                self.forget_all()?;
            }
        }
        known.notice = match is_without_times {
            true => format!("No row has a value in {}, so no changes are found", updates.field),
            false => self.is_ahead(&newest).unwrap_or_default(),
        };
        known.is_without_times = is_without_times;
        known.watermark = newest.next;
        store.save_watermark(known.watermark.as_deref());
        Ok(0)
    }

    /// Returns a warning if the latest change is in the future, which hides all changes before then.
    fn is_ahead(&self, newest: &NewestChange) -> Option<String> {
        let now = i64::try_from(self.core.access.clock.now()).unwrap_or(i64::MAX);
        let is_ahead = newest.at? > now.saturating_add(AHEAD_SECONDS);
        let latest = newest.latest.as_deref().filter(|_| is_ahead)?;
        Some(format!(
            "The latest change is of the future, {latest}: others are not found until then, or until that row is mended"
        ))
    }

    /// Asks anew for the keys of `keys` that are cached; a key that is gone is then cached as absent.
    fn renew_cached(&self, store: &CacheStore, keys: &[ArrayRef]) -> Result<usize, DictError> {
        let count = keys.first().map_or(0, |column| column.len());
        if count == 0 {
            return Ok(0);
        }
        let shows_expired = self.definition.layout.update.expired == Expired::Read;
        let now = u32::try_from(self.core.access.clock.now()).unwrap_or(u32::MAX);
        let mut renewed = 0;
        for first in (0..count).step_by(limits::KEYS_PER_REQUEST_MAX) {
            let length = limits::KEYS_PER_REQUEST_MAX.min(count - first);
            let keys: Vec<ArrayRef> = keys.iter().map(|column| column.slice(first, length)).collect();
            let encoded = self.core.access.key_format.encode(&keys)?;
            // A row under way may have been read before it was changed, and would be cached only after this look.
            self.forget_requests_of(&encoded);
            let rows = self.possible_rows(&keys, encoded.len());
            let probed: Vec<Key<'_>> =
                rows.iter().map(|&row| store.cache().key(encoded.get(row as usize))).collect();
            let (mut cached, mut forgotten) = (Vec::new(), Vec::new());
            store.get_many(&probed, now, |i, outcome| match outcome {
                Outcome::Hit { .. } | Outcome::Negative { .. } => cached.push(i),
                Outcome::Expired { .. } if shows_expired => cached.push(i),
                // An expired row is fresh again if the clock is set back. A row that the cache misses may still be on
                // flash as it was before the change, and the next recovery would find it.
                Outcome::Expired { .. } | Outcome::Miss => forgotten.push(probed[i]),
            });
            store.cache().delete_many(&forgotten);
            if cached.is_empty() {
                continue;
            }
            let rows: UInt32Array = cached.iter().map(|&i| rows[i]).collect::<Vec<_>>().into();
            let keys = keys.iter().map(|column| arrow::compute::take(column, &rows, None));
            let keys: Vec<ArrayRef> = keys
                .collect::<Result<_, _>>()
                .map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))?;
            let deadline = self.deadline();
            match self.refresh_at(&WaitPermit::unlimited(), &keys) {
                Ok(_) => renewed += cached.len(),
                // They have changed, and may not stay cached: the next lookup asks the source. Retrying them at the
                // next look would take as long as this did, or fail for the same row.
                Err(error)
                    if error.is_of_request()
                        || error.kind() == Code::TimeoutExceeded && Instant::now() >= deadline =>
                {
                    let cached: Vec<Key<'_>> = cached.iter().map(|&i| probed[i]).collect();
                    store.cache().delete_many(&cached);
                }
                Err(error) => return Err(error),
            }
        }
        // Synced before the watermark says that these changes are known.
        store.sync_changes()?;
        Ok(renewed)
    }

    /// Looks for changes, and keeps the error or the warning that comes of it for `last_exception`.
    fn poll_updates(&self) {
        let said = match caught("Looking for changes", || self.take_updates()) {
            Err(error) => error.to_string(),
            Ok(_) => lock(&self.core.known).notice.clone(),
        };
        let said = if said.is_empty() { said } else { format!("UPDATE_FIELD: {said}") };
        *lock(&self.core.access.update_failure) = said;
    }

    fn ask_source<T: Send + 'static>(
        &self,
        call: impl FnMut(&mut dyn crate::source::Source) -> Result<T, DictError> + Send + 'static,
    ) -> Result<T, DictError> {
        let update = &self.definition.layout.update;
        call_source(&self.core.pool, &self.core.access, update, call)
    }
}

fn watch(watched: &Weak<Dictionary>, updates: &Updates) {
    let period = Duration::from_secs(updates.period_seconds);
    let mut looked: Option<Instant> = None;
    loop {
        let Some(dictionary) = watched.upgrade() else { return };
        if looked.is_none_or(|looked| looked.elapsed() >= period) {
            looked = Some(Instant::now());
            if dictionary.core.access.backoff_remaining().is_none() {
                dictionary.poll_updates();
            }
        }
        drop(dictionary);
        std::thread::sleep(PULSE.min(period));
    }
}
