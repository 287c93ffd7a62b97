//! CREATE DICTIONARY, and what happens to the dictionary that it replaces.
//!
//! A replacement that fails leaves the old dictionary as it is. It is done once its statement is written. An intent
//! lists the files made before that, another one those removed after it: a kill at any step leaves no file without an
//! owner. Nor does a dictionary find entries of another one: files in the same place lose their names before new ones
//! are made, and the new ones have no entries before the statement is written.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use granary_dialect::statement::Noun;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Code, CreateDictionary, CreateMode, Definition, Dictionary, LayoutKind};

use super::moves::{lock_all, opening_locks};
use super::store::IntentKind;
use super::{Catalogue, Entry, Failure, open_entry, unknown_database};

/// How the files of a new dictionary relate to those of the one it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileOverlap {
    /// Unrelated files.
    None,
    /// The same names, which the old files lose first.
    SameFiles,
    /// The same block device, which only one dictionary can have open.
    SameDevice,
}

impl Catalogue {
    /// CREATE DICTIONARY, in `database` unless the statement names another.
    pub fn create(&self, statement: CreateDictionary, database: &str) -> Result<()> {
        let mut definition = statement.definition;
        let database = definition.database.get_or_insert_with(|| database.to_owned()).clone();
        definition.set_default_database(&database);
        let full_name = FullName::new(database, &definition.name);
        let changing = self.changing();
        let replaced = self.replace(statement.existing, definition, &full_name);
        self.finish(self.store.intents_of(&full_name));
        drop(changing);
        if let Some(Entry::Open(old)) = replaced? {
            self.close_replaced(old);
        }
        Ok(())
    }

    /// Opens a dictionary and gives it its name. Returns the previous entry of that name, not closed yet.
    fn replace(
        &self,
        mode: CreateMode,
        definition: Definition,
        full_name: &FullName,
    ) -> Result<Option<Entry>> {
        let FullName { database, name } = full_name;
        self.check_database_of_names(database)?;
        let there = self.entry(database, name).map(|entry| entry.noun());
        if !self.is_to_be_made(there, mode, full_name)? {
            return Ok(None);
        }
        definition.clone().completed(&self.environment.collections)?;
        self.check_path(&definition, full_name)?;
        let databases = self.lock_names_when_idle(|known| known == (database, name));
        let Some(dictionaries) = databases.get(database) else { return Err(unknown_database(database)) };
        let mut old = dictionaries.get(name).cloned();
        // Queries that need an old dictionary that is not open wait for the new one.
        let opening_locks = opening_locks(&old);
        let _held = lock_all(&opening_locks);
        // Other names can be looked up meanwhile; `changing` keeps other statements from changing this one.
        drop(databases);
        // A dictionary that was never made (one that a configuration file describes, and that failed) has no files.
        let made = old.as_ref().and_then(Entry::definition).filter(|_| self.store.has(full_name)).cloned();
        let overlap = self.overlap(made.as_ref(), &definition)?;
        let sql = definition.to_sql_with_secrets();
        self.note_making(full_name, overlap, &definition, &sql)?;
        // The definition of an old dictionary that had to be closed.
        let mut closed = None;
        let entry = match self.open_beside(overlap, old.as_ref(), &definition)? {
            Some(entry) => entry,
            None => {
                let Some(Entry::Open(old)) = old.take() else {
                    return Err(self.missing(Noun::Dictionary, full_name));
                };
                closed = Some(old.definition().clone());
                self.open_in_place(full_name, old, &definition)?
            }
        };
        let leaves = made.filter(|old| overlap == FileOverlap::None && self.data_file(old).is_some());
        match self.write_statement(full_name, leaves.as_ref(), &sql) {
            Ok(()) => self.publish(full_name, entry, leaves.is_some()),
            Err(error) => {
                self.undo(full_name, entry, closed);
                Err(error)
            }
        }
    }

    /// Whether CREATE makes a dictionary, given what has its name.
    ///
    /// # Errors
    /// The name is taken, or not there to be replaced; or it is too long.
    fn is_to_be_made(&self, there: Option<Noun>, mode: CreateMode, full_name: &FullName) -> Result<bool> {
        match (there, mode) {
            (Some(_), CreateMode::IfNotExists) => return Ok(false),
            (Some(noun), CreateMode::Create) => return Err(self.already_exists(noun, full_name)),
            (Some(Noun::Table), CreateMode::CreateOrReplace | CreateMode::Replace) => {
                return Err(Error::incorrect_query(format!(
                    "{full_name} is a table: EXCHANGE TABLES or DROP TABLE makes room for a dictionary"
                )));
            }
            (None, CreateMode::Replace) => return Err(self.missing(Noun::Dictionary, full_name)),
            (None, CreateMode::IfNotExists) if self.is_detached(full_name) => return Ok(false),
            (None, _) => {
                self.check_not_detached(full_name)?;
                self.store.check_name(full_name)?;
            }
            (Some(Noun::Dictionary), CreateMode::CreateOrReplace | CreateMode::Replace) => {}
        }
        Ok(true)
    }

    /// How a new dictionary's files relate to those of the `old` one that it replaces.
    ///
    /// # Errors
    /// Files of others are in their place.
    fn overlap(&self, old: Option<&Definition>, new: &Definition) -> Result<FileOverlap> {
        let file = self.data_file(new);
        let old_file = old.and_then(|old| self.data_file(old));
        // Files of the dictionary being replaced are removed with it and need no check.
        if old_file.is_none() || old_file != file {
            Dictionary::check_place(new.clone(), &self.environment)?;
        }
        Ok(match &file {
            Some(file) if old_file.as_ref() == Some(file) => FileOverlap::of(file),
            _ => FileOverlap::None,
        })
    }

    /// Notes that a dictionary's files are being made, if this statement makes them: it must not remove others.
    fn note_making(
        &self,
        full_name: &FullName,
        overlap: FileOverlap,
        definition: &Definition,
        sql: &str,
    ) -> Result<()> {
        let makes_files = self.data_file(definition).is_some()
            && (overlap != FileOverlap::None || !Dictionary::has_files(definition, &self.environment)?);
        if makes_files { self.store.record_intent(full_name, IntentKind::Create, sql) } else { Ok(()) }
    }

    /// Writes the new statement, which is when the dictionary is replaced. First the files of the old one that `leaves`
    /// are noted.
    fn write_statement(&self, full_name: &FullName, leaves: Option<&Definition>, sql: &str) -> Result<()> {
        if let Some(old) = leaves {
            self.store.record_intent(full_name, IntentKind::Remove, &old.to_sql_with_secrets())?;
        }
        self.store.put(&full_name.database, &full_name.name, sql)
    }

    /// Gives an entry its name. Returns the previous one, whose files are removed if it `leaves`.
    fn publish(
        &self,
        FullName { database, name }: &FullName,
        entry: Entry,
        leaves: bool,
    ) -> Result<Option<Entry>> {
        let mut databases = self.write();
        let entries = databases.get_mut(database).ok_or_else(|| unknown_database(database))?;
        // Forgotten here; `configure` marks a dictionary that a file describes after this.
        self.origins.forget(database, name);
        let old = entries.insert(name.clone(), entry);
        drop(databases);
        if let (true, Some(Entry::Open(old))) = (leaves, &old) {
            // Files that remain are removed later, by the intent.
            let _ = old.remove_files();
        }
        Ok(old)
    }

    /// Removes a dictionary whose statement could not be written, and opens the one again that was closed for it.
    fn undo(&self, FullName { database, name }: &FullName, entry: Entry, closed: Option<Definition>) {
        if let Entry::Open(dictionary) = entry {
            dictionary.remove();
        }
        if let Some(old) = closed.map(|old| open_entry(&old, &self.environment))
            && let Some(entries) = self.write().get_mut(database)
        {
            entries.insert(name.clone(), old);
        }
    }

    /// Opens a dictionary while the old one is open; `None`: the old one has to be closed first.
    fn open_beside(
        &self,
        overlap: FileOverlap,
        old: Option<&Entry>,
        definition: &Definition,
    ) -> Result<Option<Entry>> {
        let Some(old) = old.filter(|_| overlap != FileOverlap::None) else {
            return self.open_replacement(definition).map(Some);
        };
        // Check the new definition first: the old files are removed only for a valid one.
        match Dictionary::check(definition.clone(), &self.environment).map_err(Error::from) {
            Err(error) if !is_of_program(&error) => return Err(error),
            _ => {}
        }
        let open = match old {
            Entry::Open(dictionary) => Some(dictionary.definition()),
            _ => None,
        };
        if overlap == FileOverlap::SameDevice && open.is_some() {
            return Ok(None);
        }
        old.remove_files(&self.environment)?;
        match (self.open_replacement(definition), open) {
            // The old files take their space until they are closed.
            (Err(error), Some(old))
                if error.code == Code::CannotOpenFile as i32 && has_room(old, definition) =>
            {
                Ok(None)
            }
            (opened, _) => opened.map(Some),
        }
    }

    /// Opens a dictionary; one whose program may not be run is kept as a failed entry: as in ClickHouse, queries that
    /// need its rows get the error.
    fn open_replacement(&self, definition: &Definition) -> Result<Entry> {
        match open_entry(definition, &self.environment) {
            Entry::Failed(failure) if !is_of_program(&failure.error) => Err(failure.error),
            entry => Ok(entry),
        }
    }

    /// Opens a dictionary after closing the old one, which no query may be using. If that fails, the old one is opened
    /// again, empty.
    fn open_in_place(
        &self,
        full_name: &FullName,
        old: Arc<Dictionary>,
        definition: &Definition,
    ) -> Result<Entry> {
        let FullName { database, name } = full_name;
        let old_definition = old.definition().clone();
        let error = Error::timeout_exceeded(format!("Dictionary {database}.{name} is being replaced"));
        let definition_of_old = Some(Box::new(old_definition.clone()));
        self.put_entry(database, name, Entry::Failed(Failure { definition: definition_of_old, error }))?;
        let old = match self.wait_until_alone(full_name, old) {
            Ok(old) => old,
            Err((old, error)) => {
                self.put_entry(database, name, Entry::Open(old))?;
                return Err(error);
            }
        };
        let removed = old.remove_files().map_err(Error::from);
        drop(old);
        removed.and_then(|()| self.open_replacement(definition)).or_else(|error| {
            self.put_entry(database, name, open_entry(&old_definition, &self.environment))?;
            Err(error)
        })
    }

    /// Refuses a PATH that another dictionary writes to, or will when it is attached again: each would overwrite the
    /// other's entries. The caller holds `changing`, and not the names.
    pub(super) fn check_path(&self, definition: &Definition, full_name: &FullName) -> Result<()> {
        let Some(file) = self.data_file(definition) else { return Ok(()) };
        let owners = self.owners(&file)?;
        let Some(other) = owners.iter().find(|owner| *owner != full_name) else { return Ok(()) };
        let is_attached = self.entry(&other.database, &other.name).is_some();
        let detached = if is_attached { "" } else { " (detached)" };
        let file = file.display();
        Err(Error::bad_arguments(format!(
            "PATH {file} is in use by dictionary {other}{detached}; each dictionary needs its own"
        )))
    }
}

impl FileOverlap {
    fn of(file: &Path) -> FileOverlap {
        match std::fs::metadata(file) {
            Ok(metadata) if metadata.file_type().is_block_device() => FileOverlap::SameDevice,
            _ => FileOverlap::SameFiles,
        }
    }
}

/// Whether the only error is that a program would have to be run.
fn is_of_program(error: &Error) -> bool {
    error.code == Code::DictionaryAccessDenied as i32
}

/// Whether the space that the old files take is enough for the new ones.
fn has_room(old: &Definition, new: &Definition) -> bool {
    match (&old.layout.kind, &new.layout.kind) {
        (LayoutKind::Ssd(old), LayoutKind::Ssd(new)) => new.total_bytes() <= old.total_bytes(),
        _ => false,
    }
}
