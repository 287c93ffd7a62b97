//! DROP DICTIONARY and DROP DATABASE, and how a dictionary that has lost its name is closed.
//!
//! The statement file becomes an intent in one step. From then on the dictionary is gone. Its files are removed before
//! another dictionary can use them: at once or, after a kill, at the next start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use granary_dialect::statement::OnConflict;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Definition, Dictionary, Environment, LayoutKind};

use super::moves::{lock_all, opening_locks};
use super::store::Intent;
use super::{Catalogue, Entry, unknown_database};

impl Catalogue {
    /// DROP DICTIONARY.
    pub fn drop_dictionary(&self, database: &str, name: &str, if_missing: OnConflict) -> Result<()> {
        let full_name = FullName::new(database, name);
        let changing = self.changing();
        let databases = self.lock_names_when_idle(|known| known == (&full_name.database, &full_name.name));
        match (databases.get(database).and_then(|entries| entries.get(name)), if_missing) {
            (Some(Entry::Table(_)), _) => {
                let message = format!("{database}.{name} is a table, not a dictionary; use DROP TABLE");
                return Err(Error::incorrect_query(message));
            }
            (None, OnConflict::Ignore) => return Ok(()),
            (None, OnConflict::Error) => {
                drop(databases);
                self.check_database(database)?;
                return Err(Error::unknown_table(format!("Dictionary {database}.{name} does not exist")));
            }
            (Some(_), _) => {}
        }
        let opening_locks = opening_locks(databases.get(database).and_then(|entries| entries.get(name)));
        let held = lock_all(&opening_locks);
        drop(databases);
        self.store.drop_dictionary(&full_name)?;
        self.origins.forget(database, name);
        let gone = self.write().get_mut(database).and_then(|all| all.remove(name));
        drop(held);
        let gone: Vec<_> = gone.into_iter().filter_map(left_open).collect();
        self.finish(self.store.intents_of(&full_name));
        drop(changing);
        gone.into_iter().for_each(|dictionary| self.close_replaced(dictionary));
        Ok(())
    }

    /// DROP DATABASE, with its dictionaries, detached ones too.
    pub fn drop_database(&self, name: &str, if_missing: OnConflict) -> Result<()> {
        let changing = self.changing();
        let databases = self.lock_names_when_idle(|(database, _)| database == name);
        let Some(entries) = databases.get(name) else {
            return match if_missing {
                OnConflict::Ignore => Ok(()),
                OnConflict::Error => Err(unknown_database(name)),
            };
        };
        let opening_locks = opening_locks(entries.values());
        let held = lock_all(&opening_locks);
        drop(databases);
        self.store.drop_database(name)?;
        let gone = self.write().remove(name).unwrap_or_default();
        drop(held);
        gone.keys().for_each(|dictionary| self.origins.forget(name, dictionary));
        let gone: Vec<_> = gone.into_values().filter_map(left_open).collect();
        match self.store.intents_of_dropped(name) {
            Ok(intents) => self.finish(intents),
            Err(error) => {
                tracing::error!(%error, "files of dropped dictionaries may stay until the next start")
            }
        }
        drop(changing);
        gone.into_iter().for_each(|dictionary| self.close_replaced(dictionary));
        Ok(())
    }

    /// Removes the files of the dictionaries that intents name, except files that another dictionary uses, and forgets
    /// the intents. Nothing else may be made or dropped meanwhile.
    pub(super) fn finish(&self, intents: Vec<Intent>) {
        for intent in intents {
            let finished = match &intent.definition {
                Ok(definition) => self.remove_unowned(definition),
                Err(error) => {
                    tracing::error!(%error, "files of a dictionary may stay, of which nothing is known");
                    Ok(())
                }
            };
            // If files remain, so does the intent, for the next start.
            if let Err(error) = finished.and_then(|()| self.store.forget(&intent)) {
                tracing::error!(%error, "files of a dictionary that is gone stay until the next start");
            }
        }
    }

    fn remove_unowned(&self, definition: &Definition) -> Result<()> {
        match self.data_file(definition) {
            Some(file) if self.owners(&file)?.iter().any(|owner| self.store.has(owner)) => Ok(()),
            _ => Ok(Dictionary::remove_files_of(definition, &self.environment)?),
        }
    }

    /// The dictionaries, attached or detached, whose data lie in `file`. The caller holds `changing`, so that names and
    /// definitions stay as they are while the disk is looked at, and not the names: a slow disk must not hold these.
    pub(super) fn owners(&self, file: &Path) -> Result<Vec<FullName>> {
        let attached = self.paths();
        let is_known = |database: &str, name: &str| attached.contains_key(&FullName::new(database, name));
        let mut detached = self.store.detached(is_known)?;
        detached.retain(|(_, definition)| self.data_file(definition).as_deref() == Some(file));
        let has = |path: &Option<String>| {
            path.as_ref().and_then(|path| self.environment.resolve(path).ok()).as_deref() == Some(file)
        };
        let attached = attached.iter().filter(|(_, path)| has(path)).map(|(name, _)| name.clone());
        Ok(attached.chain(detached.into_iter().map(|(name, _)| name)).collect())
    }

    /// All names, each with the PATH of its SSD_CACHE if it has one.
    fn paths(&self) -> BTreeMap<FullName, Option<String>> {
        let databases = self.read();
        let entries = databases
            .iter()
            .flat_map(|(database, entries)| entries.iter().map(move |(name, entry)| (database, name, entry)));
        let path = |entry: &Entry| entry.definition().and_then(path_of).map(str::to_owned);
        entries.map(|(database, name, entry)| (FullName::new(database, name), path(entry))).collect()
    }

    /// Where a dictionary's data lie, if they lie in a file.
    pub(super) fn data_file(&self, definition: &Definition) -> Option<PathBuf> {
        self.environment.resolve(path_of(definition)?).ok()
    }

    /// Closes a dictionary that has left the catalogue. Its source may delay that, which must not delay others: the
    /// caller must hold no lock.
    pub(super) fn close_replaced(&self, dictionary: Arc<Dictionary>) {
        self.without_query_permit(|| {
            dictionary.close();
            drop(dictionary);
        });
    }
}

/// The PATH of an SSD_CACHE.
fn path_of(definition: &Definition) -> Option<&str> {
    match &definition.layout.kind {
        LayoutKind::Ssd(ssd) => Some(&ssd.path),
        _ => None,
    }
}

/// The dictionary of a removed entry, if it is open, with its files unlinked.
fn left_open(entry: Entry) -> Option<Arc<Dictionary>> {
    let Entry::Open(dictionary) = entry else { return None };
    // Files that remain are removed later, by the intent.
    let _ = dictionary.remove_files();
    Some(dictionary)
}

impl Entry {
    /// Unlinks a dictionary's files, whether it is open or not.
    pub(super) fn remove_files(&self, environment: &Environment) -> Result<()> {
        match (self, self.definition()) {
            (Entry::Open(dictionary), _) => Ok(dictionary.remove_files()?),
            (_, Some(definition)) => Ok(Dictionary::remove_files_of(definition, environment)?),
            (_, None) => Ok(()),
        }
    }
}
