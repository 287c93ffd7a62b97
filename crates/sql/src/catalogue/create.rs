//! CREATE DICTIONARY, and what becomes of the dictionary that makes way for it.
//!
//! A replacement that fails leaves the old one as it is. Whatever step a kill interrupts, a statement never finds entries
//! that an older one asked for: the old files lose their names before the new statement is written, and the new files
//! have no entries before that.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use granary_dialect::statement::Noun;
use granary_dialect::{Error, Result};
use granary_dict::{Code, CreateDictionary, Definition, Dictionary, Existing, LayoutKind};

use super::{
    Catalogue, Dictionaries, Entry, Failure, FullName, already_exists, open_entry, unknown_database,
};

/// How the files of a new dictionary lie to those of the one that makes way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// They have nothing to do with each other.
    Apart,
    /// They have the same names, which the old ones lose first.
    Same,
    /// They are a device, which only one of them can have open.
    Device,
}

impl Catalogue {
    /// CREATE DICTIONARY, in `database` unless it says another.
    pub fn create(&self, statement: CreateDictionary, database: &str) -> Result<()> {
        let mut definition = statement.definition;
        let database = definition.database.get_or_insert_with(|| database.to_owned()).clone();
        definition.settle(&database);
        let full_name = (database, definition.name.clone());
        // What was unloaded knows its files when it is open.
        if matches!(statement.existing, Existing::MakesWay | Existing::IsReplaced) {
            self.usable(&full_name.0, &full_name.1);
        }
        let changing = self.changing();
        let old = self.replace(statement.existing, definition, &full_name)?;
        drop(changing);
        if let Some(Entry::Open(old)) = old {
            self.close_replaced(old);
        }
        Ok(())
    }

    /// Opens a dictionary and gives it its name; the one that had the name is returned, and not closed yet.
    fn replace(
        &self,
        existing: Existing,
        definition: Definition,
        full_name: &FullName,
    ) -> Result<Option<Entry>> {
        let (database, name) = full_name;
        let mut databases = self.write();
        let Some(dictionaries) = databases.get(database) else { return Err(unknown_database(database)) };
        match (dictionaries.get(name).map(Entry::noun), existing) {
            (Some(_), Existing::Stays) => return Ok(None),
            (Some(noun), Existing::IsError) => return Err(already_exists(noun, full_name)),
            (Some(Noun::Table), Existing::MakesWay | Existing::IsReplaced) => {
                return Err(Error::incorrect_query(format!(
                    "{database}.{name} is a table: EXCHANGE TABLES or DROP TABLE makes room for a dictionary"
                )));
            }
            (None, Existing::IsReplaced) => return Err(self.missing(Noun::Dictionary, full_name)),
            (None, Existing::Stays) if self.is_detached(full_name) => return Ok(None),
            (None, _) => self.check_not_detached(full_name)?,
            (Some(Noun::Dictionary), Existing::MakesWay | Existing::IsReplaced) => {}
        }
        definition.clone().completed(&self.environment.collections)?;
        self.check_path(&databases, &definition, database, name)?;
        let known = dictionaries.get(name);
        let old_file = known.and_then(Entry::definition).and_then(|old| self.data_file(old));
        let file = self.data_file(&definition);
        // What the old one has there goes with it.
        if old_file.is_none() || old_file != file {
            Dictionary::check_place(definition.clone(), &self.environment)?;
        }
        let mut old = match known {
            Some(Entry::Open(old)) => Some(Arc::clone(old)),
            _ => None,
        };
        let place = match &file {
            Some(file) if old_file.as_ref() == Some(file) => Place::of(file),
            _ => Place::Apart,
        };
        // What an old one that had to be closed was.
        let mut closed = None;
        let entry = match self.open_beside(place, old.as_deref(), &definition)? {
            Some(entry) => entry,
            None => {
                drop(databases);
                let old = old.take().ok_or_else(|| self.missing(Noun::Dictionary, full_name))?;
                closed = Some(old.definition().clone());
                let entry = self.open_in_place(full_name, old, &definition)?;
                databases = self.write();
                entry
            }
        };
        if let (Place::Apart, Some(old)) = (place, &old) {
            old.remove_files();
        }
        let kept = self.store.put(database, name, &definition.to_sql_with_secrets());
        let entries = databases.get_mut(database).ok_or_else(|| unknown_database(database))?;
        match (kept, closed) {
            (Ok(()), _) => {
                // What a file describes is marked as that behind this.
                self.origins.forget(database, name);
                Ok(entries.insert(name.clone(), entry))
            }
            (Err(error), closed) => {
                if let Entry::Open(dictionary) = entry {
                    dictionary.remove();
                }
                if let Some(old) = closed {
                    entries.insert(name.clone(), open_entry(&old, &self.environment));
                }
                Err(error)
            }
        }
    }

    /// Opens a dictionary while the old one is open; `None`: that has to be closed first.
    fn open_beside(
        &self,
        place: Place,
        old: Option<&Dictionary>,
        definition: &Definition,
    ) -> Result<Option<Entry>> {
        let Some(old) = old.filter(|_| place != Place::Apart) else {
            return self.open_replacement(definition).map(Some);
        };
        // The old one loses its files only to one that nothing else is wrong with.
        match Dictionary::check(definition.clone(), &self.environment).map_err(Error::from) {
            Err(error) if !is_of_program(&error) => return Err(error),
            _ => {}
        }
        if place == Place::Device {
            return Ok(None);
        }
        old.remove_files();
        match self.open_replacement(definition) {
            // The old one takes the room until it is closed.
            Err(error)
                if error.code == Code::CannotOpenFile as i32 && has_room(old.definition(), definition) =>
            {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// A dictionary that can be opened, or whose program may not be run: as in ClickHouse, that is said to whoever needs
    /// its rows.
    fn open_replacement(&self, definition: &Definition) -> Result<Entry> {
        match open_entry(definition, &self.environment) {
            Entry::Failed(failure) if !is_of_program(&failure.error) => Err(failure.error),
            entry => Ok(entry),
        }
    }

    /// Opens a dictionary where the old one has to be closed first, for which no query may have it. If that fails, the old
    /// one is opened again, empty.
    fn open_in_place(
        &self,
        full_name: &FullName,
        old: Arc<Dictionary>,
        definition: &Definition,
    ) -> Result<Entry> {
        let (database, name) = full_name;
        let old_definition = old.definition().clone();
        let error = Error::timeout_exceeded(format!("Dictionary {database}.{name} is being replaced"));
        let definition_of_old = Some(Box::new(old_definition.clone()));
        self.put_back(database, name, Entry::Failed(Failure { definition: definition_of_old, error }))?;
        let old = match self.wait_until_unused(full_name, old) {
            Ok(old) => old,
            Err((old, error)) => {
                self.put_back(database, name, Entry::Open(old))?;
                return Err(error);
            }
        };
        old.remove_files();
        drop(old);
        self.open_replacement(definition).or_else(|error| {
            self.put_back(database, name, open_entry(&old_definition, &self.environment))?;
            Err(error)
        })
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
                let taken = entry.definition().and_then(|definition| self.data_file(definition));
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

    fn data_file(&self, definition: &Definition) -> Option<PathBuf> {
        match &definition.layout.kind {
            LayoutKind::Ssd(ssd) => self.environment.resolve(&ssd.path).ok(),
            _ => None,
        }
    }
}

impl Place {
    fn of(file: &Path) -> Place {
        match std::fs::metadata(file) {
            Ok(metadata) if metadata.file_type().is_block_device() => Place::Device,
            _ => Place::Same,
        }
    }
}

/// Whether it is wrong only that a program would have to be run.
fn is_of_program(error: &Error) -> bool {
    error.code == Code::DictionaryAccessDenied as i32
}

/// Whether what the old files take is enough for the new ones.
fn has_room(old: &Definition, new: &Definition) -> bool {
    match (&old.layout.kind, &new.layout.kind) {
        (LayoutKind::Ssd(old), LayoutKind::Ssd(new)) => new.total_bytes() <= old.total_bytes(),
        _ => false,
    }
}
