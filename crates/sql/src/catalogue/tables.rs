//! Tables and views, by name.

use std::sync::Arc;

use granary_dialect::statement::{Noun, OnConflict};
use granary_dialect::{Error, FullName, Result};

use super::{Catalogue, Entry, LocalTable, View};

impl Catalogue {
    /// CREATE TABLE.
    pub fn create_table(
        &self,
        database: &str,
        name: &str,
        table: LocalTable,
        if_exists: OnConflict,
    ) -> Result<()> {
        let _changing = self.changing();
        self.check_database_of_names(database)?;
        let full_name = FullName::new(database, name);
        match (self.entry(database, name), if_exists) {
            (Some(_), OnConflict::Ignore) => Ok(()),
            (Some(entry), OnConflict::Error) => Err(self.already_exists(entry.noun(), &full_name)),
            (None, OnConflict::Ignore) if self.is_detached(&full_name) => Ok(()),
            (None, _) => {
                self.check_not_detached(&full_name)?;
                self.put_entry(database, name, Entry::Table(Arc::new(table)))
            }
        }
    }

    /// The table in RAM of this name.
    pub fn local_table(&self, database: &str, name: &str) -> Result<Arc<LocalTable>> {
        match self.entry(database, name) {
            Some(Entry::Table(table)) if table.view.is_some() => Err(Error::not_implemented(format!(
                "{database}.{name} has no rows of its own: they are those of its query"
            ))),
            Some(Entry::Table(table)) => Ok(table),
            Some(_) => Err(Error::not_implemented(format!(
                "{database}.{name} is a dictionary: its rows come from its source"
            ))),
            None => Err(self.unknown_table(database, name)),
        }
    }

    /// The query of the view of this name.
    pub fn view(&self, database: &str, name: &str) -> Option<View> {
        match self.read().get(database)?.get(name)? {
            Entry::Table(table) => table.view.clone(),
            _ => None,
        }
    }

    /// CREATE OR REPLACE VIEW; an entry that is no view stays.
    pub fn replace_view(&self, database: &str, name: &str, view: LocalTable) -> Result<()> {
        let _changing = self.changing();
        self.check_database_of_names(database)?;
        match self.entry(database, name) {
            Some(Entry::Table(table)) if table.view.is_some() => {}
            None => self.check_not_detached(&FullName::new(database, name))?,
            Some(_) => return Err(Error::incorrect_query(format!("{database}.{name} is not a view"))),
        }
        self.put_entry(database, name, Entry::Table(Arc::new(view)))
    }

    /// DROP VIEW.
    pub fn drop_view(&self, database: &str, name: &str, if_missing: OnConflict) -> Result<()> {
        self.check_view(database, name)?;
        self.drop_table(database, name, if_missing)
    }

    /// Refuses an entry that is no view.
    pub fn check_view(&self, database: &str, name: &str) -> Result<()> {
        match self.entry(database, name) {
            Some(entry) if !entry.is_view() => {
                Err(Error::incorrect_query(format!("Table {database}.{name} is not a View")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a table that has rows, for DROP IF EMPTY. As in ClickHouse, views and dictionaries have none.
    pub fn check_empty(&self, database: &str, name: &str) -> Result<()> {
        match self.entry(database, name) {
            Some(Entry::Table(table)) if table.rows() > 0 => {
                Err(Error::table_not_empty(format!("Table {name} is not empty")))
            }
            _ => Ok(()),
        }
    }

    /// ALTER TABLE .. MODIFY COMMENT, of a table or a dictionary.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` for a dictionary that a configuration file describes: the file says what its comment is.
    pub fn comment(&self, database: &str, name: &str, comment: String) -> Result<()> {
        // Where the file's dictionary could not be made, another one has its name.
        let origin = self.origins.of(database, name).filter(|origin| origin.failure.is_none());
        match origin {
            Some(origin) => Err(Error::not_implemented(format!(
                "The comment of {database}.{name} is in {}: write <comment> there",
                origin.path
            ))),
            None => self.set_comment(database, name, comment),
        }
    }

    /// Replaces the comment of a table or a dictionary.
    pub(super) fn set_comment(&self, database: &str, name: &str, comment: String) -> Result<()> {
        let _changing = self.changing();
        match self.usable(database, name) {
            Some(Entry::Table(table)) => table.set_comment(comment),
            Some(Entry::Open(dictionary)) => {
                let commented = Arc::new(dictionary.commented(comment));
                self.store.put(database, name, &commented.definition().to_sql_with_secrets())?;
                // The entry is there unless everything was closed meanwhile: statements that change names wait.
                let mut databases = self.write();
                let Some(entry) = databases.get_mut(database).and_then(|entries| entries.get_mut(name))
                else {
                    drop(databases);
                    return Err(self.unknown_table(database, name));
                };
                commented.watch();
                *entry = Entry::Open(commented);
            }
            Some(Entry::Failed(failure)) => return Err(failure.error),
            Some(Entry::Unloaded(_)) | None => return Err(self.unknown_table(database, name)),
        }
        Ok(())
    }

    /// TRUNCATE.
    pub fn truncate(&self, database: &str, name: &str, if_missing: OnConflict) -> Result<()> {
        match (self.entry(database, name), if_missing) {
            (None, OnConflict::Ignore) => Ok(()),
            (Some(entry), _) if entry.noun() == Noun::Dictionary => Err(Error::syntax_error(format!(
                "Cannot TRUNCATE dictionary {database}.{name}: its rows come from its source"
            ))),
            _ => {
                self.local_table(database, name)?.truncate();
                Ok(())
            }
        }
    }

    /// Refuses a table that dictionaries read their rows from, except dictionaries of the database `going`, which is
    /// dropped as well. A dictionary that is its own source does not count.
    pub fn check_unread(&self, FullName { database, name }: &FullName, going: Option<&str>) -> Result<()> {
        let databases = self.read();
        let reads = |entry: &Entry| entry.definition().is_some_and(|it| it.reads_own_table(database, name));
        let readers: Vec<String> = databases
            .iter()
            .filter(|(reader, _)| going != Some(reader.as_str()))
            .flat_map(|(of, entries)| entries.iter().map(move |(reader, entry)| (of, reader, entry)))
            .filter(|(of, reader, entry)| (of.as_str(), reader.as_str()) != (database, name) && reads(entry))
            .filter_map(|(_, _, entry)| entry.definition().map(|it| it.full_name()))
            .collect();
        match readers.as_slice() {
            [] => Ok(()),
            readers => Err(Error::have_dependent_objects(format!(
                "Cannot drop or rename {database}.{name}, because some tables depend on it: {}",
                readers.join(", ")
            ))),
        }
    }

    /// The error for a missing table: its own, or its database's.
    fn unknown_table(&self, database: &str, name: &str) -> Error {
        let table = || Error::unknown_table(format!("Table {database}.{name} does not exist"));
        self.check_database(database).err().unwrap_or_else(table)
    }

    /// DROP TABLE; refuses a dictionary, which must not go by mistake.
    pub fn drop_table(&self, database: &str, name: &str, if_missing: OnConflict) -> Result<()> {
        let _changing = self.changing();
        match self.entry(database, name) {
            Some(Entry::Table(_)) => {
                let mut databases = self.write();
                // A dictionary may have taken its name meanwhile.
                if let Some(entries) = databases.get_mut(database)
                    && matches!(entries.get(name), Some(Entry::Table(_)))
                {
                    entries.remove(name);
                }
                return Ok(());
            }
            Some(_) => {
                return Err(Error::cannot_detach_dictionary_as_table(format!(
                    "Cannot drop/detach dictionary {database}.{name} as table, use DROP DICTIONARY query instead"
                )));
            }
            None => {}
        }
        match if_missing {
            OnConflict::Ignore => Ok(()),
            OnConflict::Error => Err(self.unknown_table(database, name)),
        }
    }
}
