//! The dictionaries of a session: opened at its start, found by name, kept in a folder.

mod dictionary_table;
mod provider;
mod store;
mod system;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use granary_dict::{CreateDictionary, Definition, Dictionary, Environment, Storage};

use crate::error::{Error, Result};
pub use provider::Databases;
use store::Store;

/// The database that is there without CREATE DATABASE.
pub const DEFAULT_DATABASE: &str = "default";
/// The database of tables about the session itself.
pub const SYSTEM_DATABASE: &str = "system";

/// How often it is looked whether a dictionary is still in use.
const CLOSE_PAUSE: Duration = Duration::from_millis(2);

/// A name that is known.
#[derive(Clone)]
pub enum Entry {
    /// It works.
    Open(Arc<Dictionary>),
    /// It is in the catalogue but could not be opened; the others do not suffer from it.
    Failed(Failure),
}

/// A dictionary that could not be opened.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What is known of it: nothing, if its metadata cannot be read.
    pub definition: Option<Box<Definition>>,
    pub error: Error,
}

/// Whether a statement may find nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    IsError,
    IsFine,
}

type Dictionaries = BTreeMap<String, Entry>;

/// All databases and their dictionaries, as one session sees them.
pub struct Catalogue {
    shared: Arc<Shared>,
    /// The database of names without one (USE).
    current: RwLock<String>,
}

/// What all sessions see.
struct Shared {
    environment: Environment,
    store: Store,
    databases: RwLock<BTreeMap<String, Dictionaries>>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogue").field("folder", &self.shared.environment.data_dir).finish_non_exhaustive()
    }
}

impl Catalogue {
    /// Opens what the folder keeps. A dictionary that cannot be opened is there as a failed one.
    pub fn open(folder: PathBuf, environment: Environment) -> Result<Catalogue> {
        let store = Store::open(folder)?;
        let mut databases = BTreeMap::from([(DEFAULT_DATABASE.to_owned(), Dictionaries::new())]);
        for kept in store.load()? {
            let dictionaries = databases.entry(kept.database.clone()).or_default();
            let Some(dictionary) = kept.dictionary else { continue };
            let entry = match &kept.definition {
                Ok(definition) => open_entry(definition, &environment),
                Err(error) => Entry::Failed(Failure { definition: None, error: error.clone() }),
            };
            dictionaries.insert(dictionary, entry);
        }
        let shared = Arc::new(Shared { environment, store, databases: RwLock::new(databases) });
        Ok(Catalogue { shared, current: RwLock::new(DEFAULT_DATABASE.to_owned()) })
    }

    /// The same dictionaries for another session, which begins in the default database.
    pub fn another(&self) -> Catalogue {
        let current = RwLock::new(DEFAULT_DATABASE.to_owned());
        Catalogue { shared: Arc::clone(&self.shared), current }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Dictionaries>> {
        self.shared.databases.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Dictionaries>> {
        self.shared.databases.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database of names without one.
    pub fn current(&self) -> String {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// USE.
    pub fn set_current(&self, database: &str) -> Result<()> {
        self.check_database(database)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = database.to_owned();
        Ok(())
    }

    /// Whether there is such a database; an error says that there is not.
    pub fn check_database(&self, database: &str) -> Result<()> {
        match database == SYSTEM_DATABASE || self.read().contains_key(database) {
            true => Ok(()),
            false => Err(unknown_database(database)),
        }
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

    /// What stands under a name.
    pub fn entry(&self, database: &str, name: &str) -> Option<Entry> {
        self.read().get(database)?.get(name).cloned()
    }

    /// Finds a dictionary as the functions name it: `db.name`, or `name` in the current database.
    pub fn dictionary(&self, name: &str) -> Result<Arc<Dictionary>> {
        let (database, name) = self.split(name);
        match self.entry(&database, &name) {
            Some(Entry::Open(dictionary)) => Ok(dictionary),
            Some(Entry::Failed(failure)) => Err(failure.error),
            None => Err(Error::bad_arguments(format!("Dictionary (`{database}.{name}`) not found"))),
        }
    }

    /// `db.name` in two.
    pub fn split(&self, name: &str) -> (String, String) {
        match name.split_once('.') {
            Some((database, name)) => (database.to_owned(), name.to_owned()),
            None => (self.current(), name.to_owned()),
        }
    }

    /// CREATE DICTIONARY.
    pub fn create(&self, statement: CreateDictionary) -> Result<()> {
        let mut definition = statement.definition;
        let database = definition.database.get_or_insert_with(|| self.current()).clone();
        let name = definition.name.clone();
        let mut databases = self.write();
        let Some(dictionaries) = databases.get(&database) else { return Err(unknown_database(&database)) };
        if dictionaries.contains_key(&name) && !statement.or_replace {
            if statement.if_not_exists {
                return Ok(());
            }
            return Err(Error::dictionary_already_exists(format!(
                "Dictionary {database}.{name} already exists"
            )));
        }
        definition.validate()?;
        self.check_path(&databases, &definition, &database, &name)?;
        let Some(dictionaries) = databases.get_mut(&database) else {
            return Err(unknown_database(&database));
        };
        // Two dictionaries must not have one file open: the old one goes first.
        if let Some(Entry::Open(old)) = dictionaries.remove(&name) {
            old.remove();
        }
        let sql = definition.to_sql_with_secrets();
        let dictionary = match Dictionary::open(definition, &self.shared.environment) {
            Ok(dictionary) => dictionary,
            Err(error) => {
                self.shared.store.remove(&database, &name)?;
                return Err(error.into());
            }
        };
        self.shared.store.put(&database, &name, &sql)?;
        dictionaries.insert(name, Entry::Open(Arc::new(dictionary)));
        Ok(())
    }

    /// Makes a dictionary what a configuration says, in a database that is made for it if need be. One that is
    /// that already is not touched.
    pub fn configure(&self, mut definition: Definition) -> Result<()> {
        let database = definition.database.get_or_insert_with(|| self.current()).clone();
        let same = |known: &Definition| known.to_sql_with_secrets() == definition.to_sql_with_secrets();
        let unchanged = match self.entry(&database, &definition.name) {
            Some(Entry::Open(dictionary)) => same(dictionary.definition()),
            Some(Entry::Failed(failure)) => failure.definition.as_deref().is_some_and(same),
            None => false,
        };
        if unchanged {
            return Ok(());
        }
        self.create_database(&database, Missing::IsFine)?;
        self.create(CreateDictionary { or_replace: true, if_not_exists: false, definition })
    }

    /// Refuses a PATH that another dictionary writes to: each would overwrite the other's entries.
    fn check_path(
        &self,
        databases: &BTreeMap<String, Dictionaries>,
        definition: &Definition,
        database: &str,
        name: &str,
    ) -> Result<()> {
        let Some(path) = self.data_file(definition) else { return Ok(()) };
        for (other_database, dictionaries) in databases {
            for (other, entry) in dictionaries {
                let taken = match entry {
                    Entry::Open(dictionary) => self.data_file(dictionary.definition()),
                    Entry::Failed(failure) => failure.definition.as_ref().and_then(|d| self.data_file(d)),
                };
                if taken.as_ref() == Some(&path)
                    && (other_database.as_str(), other.as_str()) != (database, name)
                {
                    let path = path.display();
                    return Err(Error::bad_arguments(format!(
                        "PATH {path} is in use by dictionary {other_database}.{other}; each dictionary needs its own"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Where a file that a query names is.
    ///
    /// # Errors
    /// PATH_ACCESS_DENIED if files are confined to a folder and it is not in there.
    pub fn query_file(&self, path: &Path) -> Result<PathBuf> {
        if self.shared.environment.user_files.is_none() {
            return Ok(path.to_owned());
        }
        Ok(self.shared.environment.resolve(&path.to_string_lossy())?)
    }

    fn data_file(&self, definition: &Definition) -> Option<PathBuf> {
        match &definition.layout.storage {
            Storage::Ssd(ssd) => self.shared.environment.resolve(&ssd.path).ok(),
            _ => None,
        }
    }

    /// DROP DICTIONARY.
    pub fn drop_dictionary(&self, database: &str, name: &str, missing: Missing) -> Result<()> {
        let mut databases = self.write();
        let known = databases.get(database).is_some_and(|dictionaries| dictionaries.contains_key(name));
        match (known, missing) {
            (false, Missing::IsFine) => return Ok(()),
            (false, Missing::IsError) => {
                drop(databases);
                self.check_database(database)?;
                return Err(Error::unknown_table(format!("Dictionary {database}.{name} does not exist")));
            }
            (true, _) => {}
        }
        self.shared.store.remove(database, name)?;
        if let Some(Entry::Open(dictionary)) = databases.get_mut(database).and_then(|all| all.remove(name)) {
            dictionary.remove();
        }
        Ok(())
    }

    /// Closes every dictionary as soon as nobody else has it, and forgets all of them. Those still in use behind
    /// `patience` are left as they are: what they hold is as safe as it is from a kill.
    pub fn close(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let databases = std::mem::take(&mut *self.write());
        for entry in databases.into_values().flat_map(BTreeMap::into_values) {
            let Entry::Open(dictionary) = entry else { continue };
            while Arc::strong_count(&dictionary) > 1 && Instant::now() < deadline {
                std::thread::sleep(CLOSE_PAUSE);
            }
        }
    }

    /// DROP TABLE: there are no tables to be dropped, only dictionaries that must not go by mistake.
    pub fn drop_table(&self, database: &str, name: &str, missing: Missing) -> Result<()> {
        if self.entry(database, name).is_some() {
            return Err(Error::cannot_detach_dictionary_as_table(format!(
                "Cannot drop/detach dictionary {database}.{name} as table, use DROP DICTIONARY query instead"
            )));
        }
        match missing {
            Missing::IsFine => Ok(()),
            Missing::IsError => {
                self.check_database(database)?;
                Err(Error::unknown_table(format!("Table {database}.{name} does not exist")))
            }
        }
    }

    /// SYSTEM RELOAD DICTIONARY: forgets the entries; a failed dictionary is tried again.
    pub fn reload(&self, database: &str, name: &str) -> Result<()> {
        match self.entry(database, name) {
            Some(Entry::Open(dictionary)) => Ok(dictionary.reload()?),
            Some(Entry::Failed(Failure { definition: Some(definition), .. })) => {
                let entry = open_entry(&definition, &self.shared.environment);
                let error =
                    if let Entry::Failed(failure) = &entry { Some(failure.error.clone()) } else { None };
                self.write().entry(database.to_owned()).or_default().insert(name.to_owned(), entry);
                error.map_or(Ok(()), Err)
            }
            Some(Entry::Failed(failure)) => Err(failure.error),
            None => Err(Error::bad_arguments(format!("Dictionary (`{database}.{name}`) not found"))),
        }
    }

    /// CREATE DATABASE.
    pub fn create_database(&self, name: &str, exists: Missing) -> Result<()> {
        let mut databases = self.write();
        if databases.contains_key(name) || name == SYSTEM_DATABASE {
            return match exists {
                Missing::IsFine => Ok(()),
                Missing::IsError => {
                    Err(Error::database_already_exists(format!("Database {name} already exists")))
                }
            };
        }
        self.shared.store.create_database(name)?;
        databases.insert(name.to_owned(), Dictionaries::new());
        Ok(())
    }

    /// DROP DATABASE, with the dictionaries in it.
    pub fn drop_database(&self, name: &str, missing: Missing) -> Result<()> {
        let Some(dictionaries) = self.read().get(name).map(|all| all.keys().cloned().collect::<Vec<_>>())
        else {
            return match missing {
                Missing::IsFine => Ok(()),
                Missing::IsError => Err(unknown_database(name)),
            };
        };
        for dictionary in dictionaries {
            self.drop_dictionary(name, &dictionary, Missing::IsFine)?;
        }
        self.shared.store.remove_database(name)?;
        self.write().remove(name);
        Ok(())
    }
}

fn open_entry(definition: &Definition, environment: &Environment) -> Entry {
    match Dictionary::open(definition.clone(), environment) {
        Ok(dictionary) => Entry::Open(Arc::new(dictionary)),
        Err(error) => {
            Entry::Failed(Failure { definition: Some(Box::new(definition.clone())), error: error.into() })
        }
    }
}

fn unknown_database(name: &str) -> Error {
    Error::unknown_database(format!("Database {name} does not exist"))
}
