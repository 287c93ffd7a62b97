//! The dictionaries that all sessions see: opened at the start, found by name, kept in a folder.

mod collections;
mod columns;
mod configured;
mod create;
mod dictionary_names;
mod dictionary_table;
mod drop;
mod folder_lock;
mod local_table;
mod moves;
mod provider;
mod store;
mod system;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use granary_dialect::statement::{Noun, OnConflict};
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Definition, Dictionary, Environment, Helpers, WaitLimit};

use configured::{Home, Origins};
pub use dictionary_table::DictionaryTable;
pub use dictionary_table::columns_of as definition_columns;
pub use folder_lock::FolderLock;
pub use local_table::{LocalTable, VIEW, View};
pub use provider::Databases;
use store::StatementFolder;
pub use system::SETTINGS_TABLE;

/// The database that is there without CREATE DATABASE.
pub const DEFAULT_DATABASE: &str = "default";
/// The database of tables about the session itself.
pub const SYSTEM_DATABASE: &str = "system";

/// How often a dictionary is checked for use before it is closed.
const CLOSE_PAUSE: Duration = Duration::from_millis(2);

/// What a name stands for.
#[derive(Clone)]
pub enum Entry {
    /// An open dictionary.
    Open(Arc<Dictionary>),
    /// A dictionary that was unloaded, and not needed since.
    Unloaded(Unloaded),
    /// A dictionary that could not be opened; the others are not affected.
    Failed(Failure),
    /// Not a dictionary: a table in RAM, or a view.
    Table(Arc<LocalTable>),
}

impl Entry {
    /// The kind of the entry.
    pub fn noun(&self) -> Noun {
        match self {
            Self::Open(_) | Self::Unloaded(_) | Self::Failed(_) => Noun::Dictionary,
            Self::Table(_) => Noun::Table,
        }
    }

    /// Whether it is a view for DROP VIEW and the like.
    pub fn is_view(&self) -> bool {
        matches!(self, Self::Table(table) if table.is_view())
    }

    /// The dictionary's definition, if it is known.
    pub fn definition(&self) -> Option<&Definition> {
        match self {
            Self::Open(dictionary) => Some(dictionary.definition()),
            Self::Unloaded(unloaded) => Some(&unloaded.definition),
            Self::Failed(failure) => failure.definition.as_deref(),
            Self::Table(_) => None,
        }
    }
}

/// A dictionary that is opened when it is needed.
#[derive(Clone)]
pub struct Unloaded {
    pub definition: Box<Definition>,
    /// Held while the dictionary is being closed; until then it cannot be opened.
    closing: Arc<Mutex<()>>,
    /// Held by the thread that opens it, or by a statement that replaces it; taken under the lock of the names.
    opening: Arc<Mutex<()>>,
}

/// A dictionary that could not be opened.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its definition; `None`: its metadata cannot be read.
    pub definition: Option<Box<Definition>>,
    pub error: Error,
}

type Dictionaries = BTreeMap<String, Entry>;

/// All databases and their dictionaries.
pub struct Catalogue {
    environment: Environment,
    store: StatementFolder,
    databases: RwLock<BTreeMap<String, Dictionaries>>,
    /// The dictionaries that configuration files describe.
    origins: Origins,
    /// Held by each operation that adds or removes a name, which may take several steps. Lock order: this, `databases`.
    /// Under the latter, which every query takes, nothing is looked at, read or written on disk: that is done before
    /// or after, while this keeps names and definitions as they are.
    changing: Mutex<()>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogue").field("folder", &self.environment.data_dir).finish_non_exhaustive()
    }
}

impl Catalogue {
    /// Opens what the folder of `lock` keeps. A dictionary that cannot be opened becomes a failed entry, and is logged.
    pub fn open(folder: &Path, lock: FolderLock, environment: Environment) -> Result<Catalogue> {
        let store = StatementFolder::open(folder, lock)?;
        for (name, collection) in store.load_collections()? {
            environment.collections.set(&name, Some(collection));
        }
        let catalogue = Catalogue {
            environment,
            store,
            databases: RwLock::default(),
            origins: Origins::default(),
            changing: Mutex::default(),
        };
        // Before a dictionary is opened in the place of a dropped one.
        catalogue.finish(catalogue.store.intents()?);
        let mut databases = BTreeMap::from([(DEFAULT_DATABASE.to_owned(), Dictionaries::new())]);
        for kept in catalogue.store.load()? {
            let dictionaries = databases.entry(kept.database.clone()).or_default();
            let Some(dictionary) = kept.dictionary else { continue };
            let entry = match &kept.definition {
                Ok(definition) => open_entry(definition, &catalogue.environment),
                Err(error) => Entry::Failed(Failure { definition: None, error: error.clone() }),
            };
            if let Entry::Failed(failure) = &entry {
                let name = format!("{}.{dictionary}", kept.database);
                tracing::error!(dictionary = name, error = %failure.error, "a dictionary cannot be opened");
            }
            dictionaries.insert(dictionary, entry);
        }
        *catalogue.write() = databases;
        Ok(catalogue)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Dictionaries>> {
        self.databases.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Dictionaries>> {
        self.databases.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock for statements that change names. Its holder may open a dictionary, or wait for queries to finish;
    /// waiters give up their query's turn meanwhile.
    fn changing(&self) -> MutexGuard<'_, ()> {
        let lock = || self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        moves::try_lock(&self.changing).unwrap_or_else(|| self.without_query_permit(lock))
    }

    /// Returns the result of `wait`, which may take long: another query has this one's turn meanwhile.
    fn without_query_permit<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.environment.waiting.with_own_limit(usize::MAX).wait(wait).expect("any number may wait")
    }

    /// Returns an error if there is no such database.
    pub fn check_database(&self, database: &str) -> Result<()> {
        if database == SYSTEM_DATABASE { Ok(()) } else { self.check_database_of_names(database) }
    }

    /// Like [`check_database`](Self::check_database), for one that names can be put into.
    fn check_database_of_names(&self, database: &str) -> Result<()> {
        match self.read().contains_key(database) {
            true => Ok(()),
            false => Err(unknown_database(database)),
        }
    }

    /// How queries wait for sources.
    pub(crate) fn waiting(&self) -> &WaitLimit {
        &self.environment.waiting
    }

    /// The threads that help the dictionaries with large batches.
    pub(crate) fn helpers(&self) -> &Helpers {
        &self.environment.helpers
    }

    /// The names of all databases.
    pub fn databases(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// The dictionaries of a database, in the order of their names.
    pub fn entries(&self, database: &str) -> Vec<(String, Entry)> {
        self.read()
            .get(database)
            .into_iter()
            .flatten()
            .map(|(name, entry)| (name.clone(), entry.clone()))
            .collect()
    }

    /// All dictionaries; `None`: it is not open.
    pub fn dictionaries(&self) -> Vec<(FullName, Option<Arc<Dictionary>>)> {
        let of_database = |database: String| {
            self.entries(&database).into_iter().filter_map(move |(name, entry)| match entry {
                Entry::Open(dictionary) => Some((FullName::new(&database, name), Some(dictionary))),
                Entry::Failed(_) | Entry::Unloaded(_) => Some((FullName::new(&database, name), None)),
                Entry::Table(_) => None,
            })
        };
        self.databases().into_iter().flat_map(of_database).collect()
    }

    /// Bytes of RAM of all dictionaries' caches, without the layouts that hold all rows.
    pub fn cache_bytes(&self) -> u64 {
        let open = self.dictionaries().into_iter().filter_map(|(_, dictionary)| dictionary);
        open.map(|dictionary| dictionary.cache_bytes()).sum()
    }

    /// Bytes of RAM of the layouts that hold all rows, with rows that are being loaded.
    pub fn full_load_bytes(&self) -> u64 {
        self.environment.totals.full_load_bytes()
    }

    /// The entry of a name.
    pub fn entry(&self, database: &str, name: &str) -> Option<Entry> {
        self.read().get(database)?.get(name).cloned()
    }

    /// The entry of a name, for use: an unloaded dictionary is opened.
    pub fn usable(&self, database: &str, name: &str) -> Option<Entry> {
        match self.entry(database, name)? {
            Entry::Unloaded(_) => Some(self.load(database, name)),
            entry => Some(entry),
        }
    }

    /// The dictionary of a name, opened if it is not.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if there is none, or the error of opening it.
    pub fn dictionary(&self, name: &FullName) -> Result<Arc<Dictionary>> {
        match self.usable(&name.database, &name.name) {
            Some(Entry::Open(dictionary)) => Ok(dictionary),
            Some(Entry::Failed(failure)) => Err(failure.error),
            Some(Entry::Table(_) | Entry::Unloaded(_)) | None => Err(not_found(name)),
        }
    }

    /// The path of a file that a query names.
    ///
    /// # Errors
    /// PATH_ACCESS_DENIED if files are confined to a folder and it lies elsewhere.
    pub fn query_file(&self, path: &Path) -> Result<PathBuf> {
        if self.environment.user_files.is_none() {
            return Ok(path.to_owned());
        }
        Ok(self.environment.resolve(&path.to_string_lossy())?)
    }

    /// Closes every dictionary once it is unused, and empties the catalogue. Dictionaries still in use after `timeout`
    /// are left open, as after a kill; their caches recover from that.
    pub fn close(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let databases = std::mem::take(&mut *self.write());
        // In parallel: each may wait for its source, or for its programs.
        std::thread::scope(|scope| {
            for entry in databases.into_values().flat_map(BTreeMap::into_values) {
                let Entry::Open(dictionary) = entry else { continue };
                let close = move || {
                    while Arc::strong_count(&dictionary) > 1 && Instant::now() < deadline {
                        std::thread::sleep(CLOSE_PAUSE);
                    }
                };
                // If no thread can be started, it is dropped here, even while in use.
                let _ = std::thread::Builder::new().name("granary-close".into()).spawn_scoped(scope, close);
            }
        });
    }

    /// SYSTEM RELOAD DICTIONARY: forgets the entries; a failed dictionary is tried again.
    pub fn reload(&self, database: &str, name: &str) -> Result<()> {
        match self.usable(database, name) {
            Some(Entry::Open(dictionary)) => Ok(dictionary.reload()?),
            Some(Entry::Failed(Failure { definition: Some(_), .. })) => self.open_again(database, name),
            Some(Entry::Failed(failure)) => Err(failure.error),
            Some(Entry::Table(_) | Entry::Unloaded(_)) | None => {
                Err(not_found(FullName::new(database, name)))
            }
        }
    }

    fn open_again(&self, database: &str, name: &str) -> Result<()> {
        let _changing = self.changing();
        // The name may have gone meanwhile.
        let Some(Entry::Failed(Failure { definition: Some(definition), .. })) = self.entry(database, name)
        else {
            return Ok(());
        };
        self.check_path(&definition, &FullName::new(database, name))?;
        let entry = open_entry(&definition, &self.environment);
        let error = if let Entry::Failed(failure) = &entry { Some(failure.error.clone()) } else { None };
        self.put_entry(database, name, entry)?;
        error.map_or(Ok(()), Err)
    }

    /// The error for a name that is taken. It names the configuration file that describes the dictionary, if one does.
    fn already_exists(&self, noun: Noun, name: &FullName) -> Error {
        match noun {
            Noun::Table => Error::table_already_exists(format!("Table {name} already exists")),
            Noun::Dictionary => {
                let origin = self.origins.of(&name.database, &name.name);
                let origin = origin.filter(|origin| origin.is_described);
                let origin = origin.map_or(String::new(), |origin| format!("; {} describes it", origin.path));
                Error::dictionary_already_exists(format!("Dictionary {name} already exists{origin}"))
            }
        }
    }

    /// CREATE DATABASE.
    pub fn create_database(&self, name: &str, if_exists: OnConflict) -> Result<()> {
        let _changing = self.changing();
        if self.check_database(name).is_ok() {
            return match if_exists {
                OnConflict::Ignore => Ok(()),
                OnConflict::Error => {
                    Err(Error::database_already_exists(format!("Database {name} already exists")))
                }
            };
        }
        self.store.create_database(name)?;
        self.write().entry(name.to_owned()).or_default();
        Ok(())
    }
}

fn open_entry(definition: &Definition, environment: &Environment) -> Entry {
    match opened(definition.clone(), environment) {
        Ok(dictionary) => Entry::Open(dictionary),
        Err(error) => Entry::Failed(Failure { definition: Some(Box::new(definition.clone())), error }),
    }
}

/// An open dictionary, polling its source for changes if it is defined to.
fn opened(definition: Definition, environment: &Environment) -> Result<Arc<Dictionary>> {
    let dictionary = Arc::new(Dictionary::open(definition, environment)?);
    dictionary.watch();
    Ok(dictionary)
}

fn not_found(dictionary: impl std::fmt::Display) -> Error {
    Error::bad_arguments(format!("Dictionary (`{dictionary}`) not found"))
}

fn unknown_database(name: &str) -> Error {
    Error::unknown_database(format!("Database {name} does not exist"))
}
