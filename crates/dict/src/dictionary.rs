//! The dictionary: a cache in front of a source, or all that the source has.

mod renewal;
mod updates;

use crate::answer::{Answer, AnswerRows};
use crate::config::LayoutKind;
use crate::definition::Definition;
use crate::environment::{Environment, Place};
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{
    Backoff, Batch, Claim, Connections, Flight, FlightTable, Freshness, Loaded, Loader, Pace, Pool, Refused,
    Remake, Turn, lock, unique,
};
use crate::lookup_key::LookupKey;
use crate::resident::{Columns, Resident, Times};
use crate::row::{KeyBatch, KeyFormat, RowFormat};
use crate::source::{self, Format, RowReader, SourceFactory};
use crate::status::Status;
use crate::storage::Storage;
use crate::store::Store;
use arrow::array::{ArrayRef, BooleanArray, UInt32Array};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How often a lookup probes the cache again because requests completed meanwhile, before it asks the source itself.
const PROBES_MAX: usize = 8;
/// How long a closing dictionary waits for requests that are under way.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// A cache dictionary. Dropping it is a clean stop: it is warm at the next open.
pub struct Dictionary {
    pub(crate) definition: Definition,
    pub(crate) core: Arc<Core>,
}

/// State shared by all names of one dictionary.
pub(crate) struct Core {
    /// Threads that ask the source for keys.
    pool: Pool,
    /// Full reads of the source run here, so that a slow consumer never blocks lookups, its own included.
    pub readers: Pool,
    pub loader: Arc<Loader>,
    opened_at: AtomicU64,
    /// Whether it was ever used.
    used: AtomicBool,
    known: Mutex<updates::Known>,
}

impl Dictionary {
    /// Opens the cache (warm, if its file is there and the dictionary is the same) and readies the source,
    /// which is not asked before a lookup needs it.
    pub fn open(definition: Definition, environment: &Environment) -> Result<Dictionary, DictError> {
        let definition = readied(definition, environment)?;
        let factory = source::factory(&definition, environment)?;
        let again = (definition.clone(), environment.clone());
        let remake: Remake = Box::new(move || source::factory(&again.0, &again.1));
        Self::open_with(definition, environment, Connections::new(factory, Some(remake)))
    }

    /// Refuses a definition that cannot be opened, wherever its files lie. Nothing is touched.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open) that do not depend on existing files.
    pub fn check(definition: Definition, environment: &Environment) -> Result<(), DictError> {
        let definition = readied(definition, environment)?;
        source::factory(&definition, environment)?;
        RowFormat::new(&definition.rows(), definition.key_attribute().as_ref())?;
        Store::check_shape(&definition, environment)
    }

    /// Refuses a definition whose files would replace files of others, before its files are first made.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` that names the file.
    pub fn check_place(definition: Definition, environment: &Environment) -> Result<(), DictError> {
        Store::check_place(&readied(definition, environment)?, environment)
    }

    /// Opens a dictionary like [`open`](Self::open), with `factory` in place of the definition's source.
    pub fn open_with_source(
        definition: Definition,
        environment: &Environment,
        factory: SourceFactory,
    ) -> Result<Dictionary, DictError> {
        Self::open_with(definition, environment, Connections::new(factory, None))
    }

    fn open_with(
        definition: Definition,
        environment: &Environment,
        connections: Connections,
    ) -> Result<Dictionary, DictError> {
        definition.validate()?;
        let update = &definition.layout.update;
        let rows = definition.rows();
        let row_format = RowFormat::new(&rows, definition.key_attribute().as_ref())?;
        let storage = Storage::open(&definition, environment, &row_format)?;
        let watermark = storage.store().and_then(Store::load_watermark);
        let loader = Loader {
            name: definition.full_name(),
            key_format: KeyFormat::new(&rows),
            lookup_format: KeyFormat::of_lookup(&definition),
            row_format,
            lifetime: definition.lifetime,
            clock: environment.clock.clone(),
            waiting: environment.waiting.of_one(),
            counters: environment.totals.counters(),
            connections,
            storage,
            table: Mutex::default(),
            completed: AtomicU64::new(0),
            backoff: Mutex::new(Backoff::new(environment.backoff_base_seconds, fastrand::Rng::new())),
            refused_keys: Mutex::default(),
            pace: Pace::new(update.max_requests_per_second, environment.clock.clone()),
            is_closing: AtomicBool::new(false),
            update_failure: Mutex::default(),
            epoch: RwLock::new(0),
        };
        let pool =
            || Pool::new(update.max_threads_for_updates as usize, update.max_update_queue_size as usize);
        let core = Core {
            pool: pool(),
            readers: pool(),
            opened_at: AtomicU64::new(environment.clock.now()),
            used: AtomicBool::new(false),
            loader: Arc::new(loader),
            known: Mutex::new(updates::Known::since(watermark)),
        };
        Ok(Dictionary { core: Arc::new(core), definition })
    }

    /// The same dictionary under another name. Both may be used; [`watch`](Self::watch) is for the one that it is
    /// called on.
    pub fn renamed(&self, database: Option<String>, name: String) -> Dictionary {
        let definition = self.definition.clone().moved(database, name);
        Dictionary { core: Arc::clone(&self.core), definition }
    }

    /// The same dictionary with another comment.
    pub fn commented(&self, comment: String) -> Dictionary {
        let definition = Definition { comment, ..self.definition.clone() };
        Dictionary { core: Arc::clone(&self.core), definition }
    }

    /// Its definition, with its present name and comment.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Looks up a batch: `keys` holds an array for each of the definition's
    /// [`lookup_columns`](Definition::lookup_columns), of their Arrow types and of equal lengths; `attributes` are
    /// indices of `structure.attributes`, or from [`attribute_index`](Definition::attribute_index). A key with NULL in
    /// a column that is not Nullable is not found.
    ///
    /// # Errors
    /// 510 if the source failed or is left alone after a failure, 159 if it did not answer within
    /// QUERY_WAIT_TIMEOUT_MILLISECONDS, and errors of the arguments.
    pub fn get(&self, attributes: &[usize], keys: &[ArrayRef]) -> Result<Answer, DictError> {
        self.get_rows(attributes, keys)?.into_answer()
    }

    /// Looks up a batch, and returns rows that can be taken piece by piece.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get): the returned rows need no source any more.
    pub fn get_rows(&self, attributes: &[usize], keys: &[ArrayRef]) -> Result<AnswerRows<'_>, DictError> {
        let (loader, started) = (&*self.core.loader, Instant::now());
        let known = self.definition.structure.attributes.len()
            + usize::from(self.definition.key_attribute().is_some());
        if let Some(wrong) = attributes.iter().find(|&&attribute| attribute >= known) {
            return Err(DictError::bad_arguments(format!("There is no attribute {wrong}")));
        }
        if let (Some(full_load), LookupKey::Text) =
            (loader.storage.full_load(), self.definition.layout.lookup_key())
        {
            return full_load.read_texts(self, attributes, keys, started);
        }
        let encoded = loader.lookup_format.encode(keys)?;
        if encoded.len() > limits::KEYS_PER_LOOKUP_MAX {
            return Err(self.too_many_keys());
        }
        let rows = self.possible_rows(keys, encoded.len());
        self.core.note_use();
        // A key with NULL is never asked for.
        loader.counters.keys_requested.add(rows.len());
        let mut batch = Batch::new(loader, attributes, encoded);
        match &loader.storage {
            Storage::Cached(store) => self.look_up(&mut batch, store, &rows, keys)?,
            Storage::FullLoad(full_load) => full_load.show(self, &mut batch, &rows)?,
            Storage::Nothing => {
                let (unique, places) = unique(&batch.keys, &rows);
                let chosen: Vec<u32> = unique.iter().map(|&(row, _)| row).collect();
                let (place, deadline) = (self.place()?, self.deadline());
                let claim = direct_claim(self.launch(keys, &chosen, deadline)?);
                loader.counters.keys_missed.add(rows.len());
                let found = self.fetch(&mut batch, &place, claim, &rows, &places, deadline)?;
                loader.counters.keys_found_at_source.add(found);
            }
        }
        let rows = batch.finish();
        loader.counters.lookups.add(started.elapsed());
        Ok(rows)
    }

    /// Reads keys that are written as this dictionary's own source would be asked for them, for `get`.
    pub fn key_reader(&self, format: Format) -> RowReader {
        RowReader::new(format, &self.definition.structure)
    }

    /// Which keys the source has.
    pub fn has(&self, keys: &[ArrayRef]) -> Result<BooleanArray, DictError> {
        self.get(&[], keys).map(|answer| answer.found)
    }

    /// Resident entries, found and fresh, in the structure's schema. DIRECT: all rows of the source, read on a
    /// connection that lookups do not wait for. A layout that holds all rows: these, which are loaded first if
    /// necessary.
    ///
    /// # Errors
    /// 159 if the source has too many requests waiting; its other errors come with the rows. If all rows have to be
    /// loaded first, the errors of that. `UNSUPPORTED_METHOD` if the rows were stored without their keys.
    pub fn resident(&self) -> Result<Resident, DictError> {
        self.resident_with(Times::Hidden)
    }

    /// Like [`resident`](Self::resident), in the structure's schema with `times`.
    pub fn resident_with(&self, times: Times) -> Result<Resident, DictError> {
        self.definition.require_rows()?;
        let columns = Columns::new(&self.definition.rows(), times);
        let (loader, update) = (&self.core.loader, &self.definition.layout.update);
        self.core.note_use();
        match &loader.storage {
            Storage::Cached(_) => Ok(Resident::of_cache(loader, columns)),
            Storage::FullLoad(full_load) => Ok(Resident::of_full_load(full_load.resident(self, columns)?)),
            Storage::Nothing => Resident::of_source(&self.core.readers, loader, update, columns),
        }
    }

    /// Its figures now.
    pub fn status(&self) -> Status {
        Status::of(
            &self.definition,
            &self.core.loader,
            self.core.pool.figures(),
            self.core.opened_at.load(Ordering::Relaxed),
            self.core.used.load(Ordering::Relaxed),
        )
    }

    /// DROP DICTIONARY: files and threads go now; lookups that are running find what they can still find.
    pub fn remove(&self) {
        // A file that stays is not taken over when a dictionary with another fingerprint is opened there.
        let _ = self.remove_files();
        self.close();
    }

    /// Unlinks its files: another dictionary may be opened in their place. This one goes on as it is, and is empty at
    /// the next open.
    ///
    /// # Errors
    /// `CANNOT_OPEN_FILE`: a file that could not be removed.
    pub fn remove_files(&self) -> Result<(), DictError> {
        match self.core.loader.storage.store() {
            Some(store) => store.remove(&self.definition),
            None => Ok(()),
        }
    }

    /// Removes the files of a dictionary that is not open. A file in their place that is no cache stays.
    ///
    /// # Errors
    /// `CANNOT_OPEN_FILE`: a file that could not be removed; `PATH_ACCESS_DENIED`: a path where no files may be.
    pub fn remove_files_of(definition: &Definition, environment: &Environment) -> Result<(), DictError> {
        // A named collection may affect which files there are, but may be gone.
        let readied = readied(definition.clone(), environment);
        Store::remove_of(readied.as_ref().unwrap_or(definition), environment)
    }

    /// Whether a file exists already where the dictionary would have one.
    ///
    /// # Errors
    /// `PATH_ACCESS_DENIED`, and sizes that do not fit together.
    pub fn has_files(definition: &Definition, environment: &Environment) -> Result<bool, DictError> {
        Store::has_files(definition, environment)
    }

    /// Whether it, another name of it, or its cache is held elsewhere, for instance by a request under way.
    pub fn is_shared(self: &Arc<Self>) -> bool {
        let is_cached = self.core.loader.storage.store().is_some();
        Arc::strong_count(self) > 1
            || Arc::strong_count(&self.core) > 1
            || is_cached && Arc::strong_count(&self.core.loader) > 1
    }

    /// Stops asking the source. Waits for requests under way, some seconds at most.
    pub fn close(&self) {
        self.core.close();
    }

    pub(crate) fn too_many_keys(&self) -> DictError {
        let message = format!("A lookup has at most {} keys", limits::KEYS_PER_LOOKUP_MAX);
        DictError::new(Code::LimitExceeded, message)
    }

    /// The rows whose keys the source may have.
    fn possible_rows(&self, keys: &[ArrayRef], count: usize) -> Vec<u32> {
        let rows = 0..count as u32;
        match self.core.loader.lookup_format.impossible(keys) {
            None => rows.collect(),
            Some(nulls) => rows.filter(|&row| nulls.is_valid(row as usize)).collect(),
        }
    }

    fn look_up(
        &self,
        batch: &mut Batch<'_>,
        store: &Store,
        rows: &[u32],
        keys: &[ArrayRef],
    ) -> Result<(), DictError> {
        let loader = &*self.core.loader;
        let update = &self.definition.layout.update;
        let now = loader.clock.now();
        let freshness = Freshness {
            now,
            latest: loader.latest_expiry(now),
            expired: update.expired,
            strict_max_seconds: update
                .strict_max_lifetime_seconds
                .unwrap_or(self.definition.lifetime.max_seconds),
        };
        let mut completed = loader.completed.load(Ordering::SeqCst);
        batch.probe(store, rows, freshness, loader);
        for probe in 1.. {
            if batch.missing.is_empty() {
                if !batch.stale.is_empty() {
                    self.refresh_stale(batch, keys);
                }
                return Ok(());
            }
            // One missing key makes the lookup wait for the whole update, stale keys included.
            let wanted: Vec<u32> = batch.missing.iter().chain(&batch.stale).copied().collect();
            let (unique, places) = unique(&batch.keys, &wanted);
            let unless_completed = (probe < PROBES_MAX).then_some(completed);
            // Without a place to wait at, no request is begun.
            let (place, deadline) = (self.place()?, self.deadline());
            if let Some(claim) = self.claim(&batch.keys, keys, &unique, unless_completed, deadline)? {
                loader.counters.keys_missed.add(batch.missing.len());
                let found = self.fetch(batch, &place, claim, &wanted, &places, deadline)?;
                loader.counters.keys_found_at_source.add(found);
                return Ok(());
            }
            completed = loader.completed.load(Ordering::SeqCst);
            let missing = std::mem::take(&mut batch.missing);
            batch.probe(store, &missing, freshness, loader);
        }
        Ok(())
    }

    /// Starts updates of stale rows without waiting. The lookup does not fail if that fails.
    fn refresh_stale(&self, batch: &Batch<'_>, keys: &[ArrayRef]) {
        let mut stale = batch.stale.clone();
        stale.retain(|&row| self.core.loader.may_ask_for([batch.keys.get(row as usize)].into_iter()).is_ok());
        let (unique, _) = unique(&batch.keys, &stale);
        if let Ok(Some(claim)) = self.claim(&batch.keys, keys, &unique, None, self.deadline()) {
            let _ = self.start(&claim);
        }
    }

    /// When a lookup that begins to wait now times out.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.definition.layout.update.query_wait_timeout_ms)
    }

    /// Splits keys into those under way and those that the caller has to ask for, all wanted until `deadline`; `None`
    /// if requests completed since `unless_completed` was read.
    fn claim(
        &self,
        keys: &KeyBatch,
        arrays: &[ArrayRef],
        unique: &[(u32, u64)],
        unless_completed: Option<u64>,
        deadline: Instant,
    ) -> Result<Option<Claim>, DictError> {
        let loader = &*self.core.loader;
        let mut table = lock(&loader.table);
        if unless_completed.is_some_and(|completed| completed != loader.completed.load(Ordering::SeqCst)) {
            return Ok(None);
        }
        let claim = self.claim_in(&mut table, keys, arrays, unique, deadline)?;
        let joined = claim.tickets.iter().filter(|(flight, _)| !claim.mine.contains(&(*flight as usize)));
        loader.counters.keys_joined.add(joined.count());
        Ok(Some(claim))
    }

    fn claim_in(
        &self,
        table: &mut FlightTable,
        keys: &KeyBatch,
        arrays: &[ArrayRef],
        unique: &[(u32, u64)],
        deadline: Instant,
    ) -> Result<Claim, DictError> {
        let loader = &*self.core.loader;
        table.claim(keys, unique, deadline, |mine| {
            loader.may_ask()?;
            loader.may_ask_for(mine.iter().map(|&row| keys.get(row as usize))).map_err(|e| self.failed(e))?;
            self.launch(arrays, mine, deadline)
        })
    }

    /// Makes the flights that bring `rows` of `keys`.
    fn launch(
        &self,
        keys: &[ArrayRef],
        rows: &[u32],
        deadline: Instant,
    ) -> Result<Vec<Arc<Flight>>, DictError> {
        let epoch = *self.core.loader.epoch.read().unwrap_or_else(PoisonError::into_inner);
        let flight = |chunk: &[u32]| {
            let rows = UInt32Array::from(chunk.to_vec());
            let arrays = keys
                .iter()
                .map(|array| arrow::compute::take(array, &rows, None))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))?;
            let encoded = self.core.loader.key_format.encode(&arrays)?;
            Ok(Arc::new(Flight::new(arrays, encoded, epoch, deadline)))
        };
        rows.chunks(self.definition.layout.update.max_keys_per_request as usize).map(flight).collect()
    }

    /// Hands the claim's own flights to the source threads. All of them complete, whatever this returns.
    fn start(&self, claim: &Claim) -> Result<(), DictError> {
        let patience = Duration::from_millis(self.definition.layout.update.update_queue_push_timeout_ms);
        let mut outcome = Ok(());
        for flight in &claim.flights[claim.mine.clone()] {
            // After one wait in vain, the others do not wait.
            let patience = if outcome.is_ok() { patience } else { Duration::ZERO };
            let (loader, flight) = (self.core.loader.clone(), flight.clone());
            let keys = flight.keys.len();
            let job = Box::new(move |turn: Turn<'_>| loader.run(&flight, turn));
            let pushed = self.core.pool.push(job, keys, patience);
            outcome = outcome.and(pushed.map_err(|refused| self.refused(refused)));
        }
        outcome
    }

    fn refused(&self, refused: Refused) -> DictError {
        let name = &self.core.loader.name;
        let full = || {
            let timeout = self.definition.layout.update.update_queue_push_timeout_ms;
            format!(
                "Cannot push to internal update queue in dictionary {name}. Timelimit of {timeout} ms. exceeded"
            )
        };
        let message = match refused {
            Refused::Full(waiting) => format!(
                "{}. Current queue size is {waiting}, and MAX_UPDATE_QUEUE_SIZE lets no more requests wait",
                full()
            ),
            Refused::FullOfKeys(keys) => format!(
                "{}. The requests that wait for the source ask for {keys} keys, and with {} no more are added, \
                 whatever MAX_UPDATE_QUEUE_SIZE is: look up fewer keys at once, or let lookups wait for longer \
                 (UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS)",
                full(),
                limits::QUEUE_KEYS_MAX
            ),
            Refused::Closed => format!("Dictionary {name} is being dropped"),
            Refused::NoThread(e) => {
                format!("Dictionary {name} cannot ask its source, for no thread can be started: {e}")
            }
        };
        DictError::new(Code::CacheDictionaryUpdateFail, message)
    }

    /// A place to wait for the source.
    ///
    /// # Errors
    /// 510 if too many wait already.
    fn place(&self) -> Result<Place<'_>, DictError> {
        self.core.loader.waiting.place().ok_or_else(|| self.too_many_waiting())
    }

    /// Starts the claim's own flights, waits for all until `deadline`, and shows them. Returns how many of `rows` the
    /// source has.
    fn fetch(
        &self,
        batch: &mut Batch<'_>,
        place: &Place<'_>,
        claim: Claim,
        rows: &[u32],
        places: &[u32],
        deadline: Instant,
    ) -> Result<usize, DictError> {
        self.start(&claim)?;
        let mut loaded = Vec::with_capacity(claim.flights.len());
        let outcomes = place.wait(|| {
            let outcomes = claim.flights.iter().map(|flight| flight.wait(deadline));
            outcomes.collect::<Vec<_>>()
        });
        for outcome in outcomes.ok_or_else(|| self.core.loader.not_started())? {
            match outcome {
                Some(Ok(rows)) => loaded.push(rows),
                Some(Err(error)) => return Err(self.failed(error)),
                None => {
                    let update = &self.definition.layout.update;
                    return Err(self.core.loader.timed_out(update.query_wait_timeout_ms));
                }
            }
        }
        let failure = |&(flight, slot): &(u32, u32)| loaded[flight as usize].failure(slot);
        if loaded.iter().any(|flight: &Arc<Loaded>| !flight.failures.is_empty())
            && let Some(error) = claim.tickets.iter().find_map(failure)
        {
            return Err(self.failed(error.clone()));
        }
        let row = |unique: usize| {
            let (flight, slot) = claim.tickets[unique];
            loaded[flight as usize].row(slot)
        };
        batch.fill(rows, places, claim.tickets.len(), row)
    }

    pub(crate) fn too_many_waiting(&self) -> DictError {
        DictError::new(
            Code::CacheDictionaryUpdateFail,
            format!(
                "Dictionary {} is missing keys, and as many lookups are waiting for sources already as may \
                 ({} of one dictionary, {} of all)",
                self.core.loader.name,
                limits::LOOKUPS_WAITING_OF_ONE_MAX,
                limits::LOOKUPS_WAITING_MAX
            ),
        )
    }

    fn failed(&self, error: DictError) -> DictError {
        match self.definition.layout.kind {
            LayoutKind::Direct | LayoutKind::FullLoad(_) => error,
            LayoutKind::Ssd(_) | LayoutKind::Memory { .. } => DictError::new(
                Code::CacheDictionaryUpdateFail,
                format!("Update failed for dictionary '{}': {error}", self.core.loader.name),
            )
            .for_the_cause_of(&error),
        }
    }
}

/// A definition completed with its named collections and its database.
fn readied(definition: Definition, environment: &Environment) -> Result<Definition, DictError> {
    let mut definition = definition.completed(&environment.collections)?;
    let database = definition.database.clone();
    definition.source.settle(database.as_deref().unwrap_or("default"));
    Ok(definition)
}

/// DIRECT shares no flights: the caller starts all of them, which bring the unique keys in order.
fn direct_claim(flights: Vec<Arc<Flight>>) -> Claim {
    let tickets = |(at, flight): (usize, &Arc<Flight>)| {
        (0..flight.keys.len() as u32).map(move |slot| (at as u32, slot)).collect::<Vec<_>>()
    };
    Claim { tickets: flights.iter().enumerate().flat_map(tickets).collect(), mine: 0..flights.len(), flights }
}

impl Core {
    pub fn note_use(&self) {
        // Read first: each write would take the cache line from all other processors.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    fn close(&self) {
        // A second close does not wait again.
        if self.loader.is_closing.swap(true, Ordering::SeqCst) {
            return;
        }
        self.pool.close(CLOSE_PATIENCE);
        self.readers.close(CLOSE_PATIENCE);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.close();
    }
}
