//! The dictionary: a cache in front of a source, or all that the source has.

mod lookup;
mod renewal;
mod requests;
mod updates;

use crate::answer::{Answer, AnswerRows};
use crate::cache_store::CacheStore;
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{Backoff, Batch, Connections, Pace, Pool, Remake, SourceAccess};
use crate::lookup_key::LookupKey;
use crate::resident::{Columns, Resident, Times};
use crate::row::{KeyFormat, RowFormat};
use crate::source::{self, Format, RowReader, SourceFactory};
use crate::status::Status;
use crate::storage::Storage;
use arrow::array::{ArrayRef, BooleanArray};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How long a closing dictionary waits for requests that are under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

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
    pub access: Arc<SourceAccess>,
    opened_at: AtomicU64,
    /// Whether it was ever used.
    used: AtomicBool,
    known: Mutex<updates::ChangesKnown>,
}

impl Dictionary {
    /// Opens the cache (warm, if its file is there and the dictionary is the same) and readies the source,
    /// which is not asked before a lookup needs it.
    pub fn open(definition: Definition, environment: &Environment) -> Result<Dictionary, DictError> {
        let definition = completed(definition, environment)?;
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
        let definition = completed(definition, environment)?;
        source::factory(&definition, environment)?;
        RowFormat::new(&definition.rows(), definition.key_attribute().as_ref())?;
        CacheStore::check_shape(&definition, environment)
    }

    /// Refuses a definition whose files would replace files of others, before its files are first made.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` that names the file.
    pub fn check_place(definition: Definition, environment: &Environment) -> Result<(), DictError> {
        CacheStore::check_place(&completed(definition, environment)?, environment)
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
        let watermark = storage.store().and_then(CacheStore::load_watermark);
        let access = SourceAccess {
            name: RwLock::new(definition.full_name()),
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
            access: Arc::new(access),
            known: Mutex::new(updates::ChangesKnown::since(watermark)),
        };
        Ok(Dictionary { core: Arc::new(core), definition })
    }

    /// Returns the same dictionary under another name, which its errors and log lines use from now on. Both handles may
    /// be used; [`watch`](Self::watch) follows the one that it is called on.
    pub fn renamed(&self, database: Option<String>, name: String) -> Dictionary {
        let definition = self.definition.clone().moved(database, name);
        *self.core.access.name.write().unwrap_or_else(PoisonError::into_inner) = definition.full_name();
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
        let (access, started) = (&*self.core.access, Instant::now());
        let known = self.definition.structure.attributes.len()
            + usize::from(self.definition.key_attribute().is_some());
        if let Some(wrong) = attributes.iter().find(|&&attribute| attribute >= known) {
            return Err(DictError::bad_arguments(format!("There is no attribute {wrong}")));
        }
        if let (Some(full_load), LookupKey::Text) =
            (access.storage.full_load(), self.definition.layout.lookup_key())
        {
            return full_load.read_texts(self, attributes, keys, started);
        }
        let encoded = access.lookup_format.encode(keys)?;
        if encoded.len() > limits::KEYS_PER_LOOKUP_MAX {
            return Err(self.too_many_keys());
        }
        let rows = self.possible_rows(keys, encoded.len());
        self.core.note_use();
        // A key with NULL is never asked for.
        access.counters.keys_requested.add(rows.len());
        let mut batch = Batch::new(access, attributes, encoded);
        match &access.storage {
            Storage::Cached(store) => self.look_up(&mut batch, store, &rows, keys)?,
            Storage::FullLoad(full_load) => full_load.show(self, &mut batch, &rows)?,
            Storage::Nothing => self.look_up_directly(&mut batch, &rows, keys)?,
        }
        let rows = batch.finish();
        access.counters.lookups.add(started.elapsed());
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
        let (access, update) = (&self.core.access, &self.definition.layout.update);
        self.core.note_use();
        match &access.storage {
            Storage::Cached(_) => Ok(Resident::of_cache(access, columns)),
            Storage::FullLoad(full_load) => Ok(Resident::of_full_load(full_load.resident(self, columns)?)),
            Storage::Nothing => Resident::of_source(&self.core.readers, access, update, columns),
        }
    }

    /// Its figures now.
    pub fn status(&self) -> Status {
        Status::collect(
            &self.definition,
            &self.core.access,
            self.core.pool.figures(),
            self.core.opened_at.load(Ordering::Relaxed),
            self.core.used.load(Ordering::Relaxed),
        )
    }

    /// Bytes of RAM that its cache takes; 0: it has none. Layouts that hold all rows are in
    /// [`Totals::full_load_bytes`](crate::Totals::full_load_bytes).
    pub fn cache_bytes(&self) -> u64 {
        self.core.access.storage.store().map_or(0, |store| store.cache().stats().bytes_allocated())
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
        match self.core.access.storage.store() {
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
        let whole = completed(definition.clone(), environment);
        CacheStore::remove_of(whole.as_ref().unwrap_or(definition), environment)
    }

    /// Whether a file exists already where the dictionary would have one.
    ///
    /// # Errors
    /// `PATH_ACCESS_DENIED`, and sizes that do not fit together.
    pub fn has_files(definition: &Definition, environment: &Environment) -> Result<bool, DictError> {
        CacheStore::has_files(definition, environment)
    }

    /// Whether it, another name of it, or its cache is held elsewhere, for instance by a request under way.
    pub fn is_shared(self: &Arc<Self>) -> bool {
        let is_cached = self.core.access.storage.store().is_some();
        Arc::strong_count(self) > 1
            || Arc::strong_count(&self.core) > 1
            || is_cached && Arc::strong_count(&self.core.access) > 1
    }

    /// Stops asking the source. Waits for requests under way, some seconds at most.
    pub fn close(&self) {
        self.core.close();
    }

    pub(crate) fn too_many_keys(&self) -> DictError {
        let message = format!("A lookup has at most {} keys", limits::KEYS_PER_LOOKUP_MAX);
        DictError::new(Code::LimitExceeded, message)
    }
}

/// A definition completed with its named collections and its database.
fn completed(definition: Definition, environment: &Environment) -> Result<Definition, DictError> {
    let mut definition = definition.completed(&environment.collections)?;
    let database = definition.database.clone();
    definition.source.set_default_database(database.as_deref().unwrap_or("default"));
    Ok(definition)
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
        if self.access.is_closing.swap(true, Ordering::SeqCst) {
            return;
        }
        self.pool.close(CLOSE_TIMEOUT);
        self.readers.close(CLOSE_TIMEOUT);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.close();
    }
}
