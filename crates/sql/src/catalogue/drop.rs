//! DROP DICTIONARY and DROP DATABASE, and how a dictionary that has lost its name is closed.
//!
//! The statement file becomes a note in one step. From then on the dictionary is gone. Its files are removed before
//! another dictionary can use them: at once or, after a kill, at the next start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use granary_dialect::statement::OnConflict;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Definition, Dictionary, Environment, LayoutKind};

use super::moves::{lock_all, opening_locks};
use super::store::Note;
use super::{Catalogue, Dictionaries, Entry, unknown_database};

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
        self.finish(self.store.notes_of(&full_name));
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
        match self.store.notes_of_dropped(name) {
            Ok(notes) => self.finish(notes),
            Err(error) => {
                tracing::error!(%error, "files of dropped dictionaries may stay until the next start")
            }
        }
        drop(changing);
        gone.into_iter().for_each(|dictionary| self.close_replaced(dictionary));
        Ok(())
    }

    /// Removes the files of the dictionaries that notes name, except files that another dictionary uses, and forgets
    /// the notes. Nothing else may be made or dropped meanwhile.
    pub(super) fn finish(&self, notes: Vec<Note>) {
        for note in notes {
            let finished = match &note.definition {
                Ok(definition) => self.remove_unowned(definition),
                Err(error) => {
                    tracing::error!(%error, "files of a dictionary may stay, of which nothing is known");
                    Ok(())
                }
            };
            // If files remain, so does the note, for the next start.
            if let Err(error) = finished.and_then(|()| self.store.forget(&note)) {
                tracing::error!(%error, "files of a dictionary that is gone stay until the next start");
            }
        }
    }

    fn remove_unowned(&self, definition: &Definition) -> Result<()> {
        match self.data_file(definition) {
            Some(file) if self.owners(&self.read(), &file)?.iter().any(|owner| self.store.has(owner)) => {
                Ok(())
            }
            _ => Ok(Dictionary::remove_files_of(definition, &self.environment)?),
        }
    }

    /// The dictionaries, attached or detached, whose data lie in `file`.
    pub(super) fn owners(
        &self,
        databases: &BTreeMap<String, Dictionaries>,
        file: &Path,
    ) -> Result<Vec<FullName>> {
        let is_known = |database: &str, name: &str| {
            databases.get(database).is_some_and(|entries| entries.contains_key(name))
        };
        let has = |definition: &Definition| self.data_file(definition).as_deref() == Some(file);
        let entries = databases
            .iter()
            .flat_map(|(database, entries)| entries.iter().map(move |(name, entry)| (database, name, entry)));
        let attached = entries
            .filter(|(_, _, entry)| entry.definition().is_some_and(has))
            .map(|(database, name, _)| FullName::new(database, name));
        let detached = self.store.detached(is_known)?.into_iter();
        Ok(attached.chain(detached.filter(|(_, definition)| has(definition)).map(|(name, _)| name)).collect())
    }

    /// Where a dictionary's data lie, if they lie in a file.
    pub(super) fn data_file(&self, definition: &Definition) -> Option<PathBuf> {
        match &definition.layout.kind {
            LayoutKind::Ssd(ssd) => self.environment.resolve(&ssd.path).ok(),
            _ => None,
        }
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

/// The dictionary of a removed entry, if it is open, with its files unlinked.
fn left_open(entry: Entry) -> Option<Arc<Dictionary>> {
    let Entry::Open(dictionary) = entry else { return None };
    // Files that remain are removed later, by the note.
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
