//! Dictionaries and tables that change their names, and dictionaries that leave and come back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use granary_dialect::statement::{Missing, Noun};
use granary_dialect::{Error, Result};
use granary_dict::{Definition, Dictionary};

use super::{
    CLOSE_PAUSE, Catalogue, Dictionaries, Entry, Failure, already_exists, open_entry, unknown_database,
};

/// How long a dictionary that is to be closed may still be in use by queries.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// A database and a name in it.
pub type FullName = (String, String);

impl Catalogue {
    /// RENAME.
    pub fn rename(&self, noun: Noun, from: &FullName, to: &FullName) -> Result<()> {
        let _changing = self.changing();
        let mut databases = self.write();
        self.check_noun(databases.get(&from.0), noun, from)?;
        let Some(target) = databases.get(&to.0) else { return Err(unknown_database(&to.0)) };
        if target.contains_key(&to.1) {
            return Err(Error::table_already_exists(format!("{}.{} already exists", to.0, to.1)));
        }
        self.check_not_detached(to)?;
        let known = databases.get(&from.0).and_then(|entries| entries.get(&from.1));
        self.keep_as(from, known, to)?;
        self.store.rename(from, to)?;
        if let Some(entry) = databases.get_mut(&from.0).and_then(|entries| entries.remove(&from.1)) {
            databases.entry(to.0.clone()).or_default().insert(to.1.clone(), renamed(entry, to));
        }
        Ok(())
    }

    /// EXCHANGE: each takes the other's name.
    pub fn exchange(&self, noun: Noun, one: &FullName, other: &FullName) -> Result<()> {
        let _changing = self.changing();
        let mut databases = self.write();
        for (dictionary, name) in [(one, other), (other, one)] {
            let entry = databases.get(&dictionary.0).and_then(|entries| entries.get(&dictionary.1));
            if entry
                .and_then(Entry::definition)
                .is_some_and(|definition| definition.reads_own_table(&name.0, &name.1))
            {
                return Err(Error::infinite_loop(format!(
                    "{}.{} would read its rows from itself: it is made of {}.{}",
                    dictionary.0, dictionary.1, name.0, name.1
                )));
            }
        }
        for name in [one, other] {
            self.check_noun(databases.get(&name.0), noun, name)?;
        }
        if one == other {
            return Ok(());
        }
        for (name, to) in [(one, other), (other, one)] {
            self.keep_as(name, databases.get(&name.0).and_then(|entries| entries.get(&name.1)), to)?;
        }
        self.store.exchange(one, other)?;
        let mut take =
            |name: &FullName| databases.get_mut(&name.0).and_then(|entries| entries.remove(&name.1));
        for (entry, to) in [(take(one), other), (take(other), one)] {
            if let Some(entry) = entry {
                databases.entry(to.0.clone()).or_default().insert(to.1.clone(), renamed(entry, to));
            }
        }
        Ok(())
    }

    /// DETACH DICTIONARY: it is there again with ATTACH, and at the next start unless it is for good.
    pub fn detach(&self, name: &FullName, missing: Missing, permanently: bool) -> Result<()> {
        match self.check_noun(self.read().get(&name.0), Noun::Dictionary, name) {
            Ok(()) => {}
            Err(error)
                if [Error::unknown_table("").code, Error::unknown_database("").code]
                    .contains(&error.code)
                    && missing == Missing::IsFine =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if self.close_entry(name)?.is_none() {
            return Err(self.missing(Noun::Dictionary, name));
        }
        if permanently { self.store.set_aside(&name.0, &name.1) } else { Ok(()) }
    }

    /// ATTACH DICTIONARY, of one that was detached.
    pub fn attach(&self, name: &FullName, exists: Missing) -> Result<()> {
        let _changing = self.changing();
        self.check_database(&name.0)?;
        match self.entry(&name.0, &name.1).map(|entry| entry.noun()) {
            Some(_) if exists == Missing::IsFine => return Ok(()),
            Some(Noun::Table) => {
                let message = format!("{}.{} is a table, not a dictionary", name.0, name.1);
                return Err(Error::incorrect_query(message));
            }
            Some(noun) => return Err(already_exists(noun, name)),
            None => {}
        }
        let Some(definition) = self.store.take_back(&name.0, &name.1)? else {
            let message = format!("There is no {} in database {} to be attached", name.1, name.0);
            return Err(Error::cannot_get_create_query(message));
        };
        match open_entry(&definition, &self.environment) {
            Entry::Failed(failure) => Err(failure.error),
            entry => self.put_back(&name.0, &name.1, entry),
        }
    }

    /// SYSTEM UNLOAD DICTIONARY: its RAM is given back. Whoever needs it next opens it again, as warm as it was.
    pub fn unload(&self, name: &FullName) -> Result<()> {
        self.check_noun(self.read().get(&name.0), Noun::Dictionary, name)
            .map_err(|_| Error::bad_arguments(format!("Dictionary (`{}.{}`) not found", name.0, name.1)))?;
        match self.close_entry(name)? {
            Some(entry) => self.put_back(&name.0, &name.1, entry),
            None => Ok(()),
        }
    }

    /// What was taken out, or is to be there anew, unless its database went or was renamed meanwhile.
    pub(super) fn put_back(&self, database: &str, name: &str, entry: Entry) -> Result<()> {
        let mut databases = self.write();
        let entries = databases.get_mut(database).ok_or_else(|| unknown_database(database))?;
        let replaced = entries.insert(name.to_owned(), entry);
        // Closing may take long.
        drop(databases);
        drop(replaced);
        Ok(())
    }

    /// An entry that was unloaded, opened again.
    pub(super) fn load(&self, database: &str, name: &str) -> Entry {
        let mut databases = self.write();
        match databases.get_mut(database).and_then(|entries| entries.get_mut(name)) {
            Some(entry) => {
                if let Entry::Unloaded(definition) = entry {
                    *entry = open_entry(definition, &self.environment);
                }
                entry.clone()
            }
            // It was dropped meanwhile.
            None => Entry::Failed(Failure {
                definition: None,
                error: Error::bad_arguments(format!("Dictionary (`{database}.{name}`) not found")),
            }),
        }
    }

    /// Takes a dictionary out. It is closed when no query has it any more, and what this returns is left of it.
    fn close_entry(&self, full_name: &FullName) -> Result<Option<Entry>> {
        let (database, name) = full_name;
        let entry = match self.write().get_mut(database) {
            // The name may be a table's by now.
            Some(entries) if !matches!(entries.get(name), Some(Entry::Table(_))) => entries.remove(name),
            _ => None,
        };
        let dictionary = match entry {
            Some(Entry::Open(dictionary)) => dictionary,
            closed => return Ok(closed),
        };
        match self.wait_until_unused(full_name, dictionary) {
            Ok(dictionary) => Ok(Some(Entry::Unloaded(Box::new(dictionary.definition().clone())))),
            Err((dictionary, error)) => {
                self.put_back(database, name, Entry::Open(dictionary))?;
                Err(error)
            }
        }
    }

    /// Waits until nobody else has a dictionary that was taken out, which is given back either way.
    ///
    /// # Errors
    /// TIMEOUT_EXCEEDED if queries have it for too long.
    pub(super) fn wait_until_unused(
        &self,
        (database, name): &FullName,
        dictionary: Arc<Dictionary>,
    ) -> Result<Arc<Dictionary>, (Arc<Dictionary>, Error)> {
        let deadline = Instant::now() + CLOSE_PATIENCE;
        while Arc::strong_count(&dictionary) > 1 {
            if Instant::now() > deadline {
                let message = format!("Dictionary {database}.{name} is in use by a query");
                return Err((dictionary, Error::timeout_exceeded(message)));
            }
            std::thread::sleep(CLOSE_PAUSE);
        }
        Ok(dictionary)
    }

    /// Whether a name is there, and what a statement says it is. A dictionary is a table, too.
    fn check_noun(&self, entries: Option<&Dictionaries>, noun: Noun, name: &FullName) -> Result<()> {
        let Some(entries) = entries else { return Err(unknown_database(&name.0)) };
        match (noun, entries.get(&name.1).map(Entry::noun)) {
            (_, None) => Err(self.missing(noun, name)),
            (Noun::Dictionary, Some(Noun::Table)) => Err(Error::incorrect_query(format!(
                "{}.{} is a table: say TABLE, not DICTIONARY",
                name.0, name.1
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a dictionary was detached under a name that nothing else has now.
    pub(super) fn is_detached(&self, (database, name): &FullName) -> bool {
        self.store.has(database, name)
    }

    /// Refuses a name that ATTACH gives back.
    pub(super) fn check_not_detached(&self, name: &FullName) -> Result<()> {
        match self.is_detached(name) {
            false => Ok(()),
            true => Err(Error::table_already_exists(format!(
                "Table `{}`.`{}` already exists (detached); ATTACH brings it back",
                name.0, name.1
            ))),
        }
    }

    pub(super) fn missing(&self, noun: Noun, (database, name): &FullName) -> Error {
        let noun = if noun == Noun::Table { "Table" } else { "Dictionary" };
        Error::unknown_table(format!("{noun} {database}.{name} does not exist"))
    }

    /// Writes a dictionary's statement in its place as it is going to be in another one: then what moves says so. Until it
    /// does, this means the same, for a file's place decides what a dictionary is called.
    fn keep_as(&self, (database, name): &FullName, entry: Option<&Entry>, to: &FullName) -> Result<()> {
        match entry.and_then(Entry::definition) {
            Some(definition) => {
                let moved = definition.clone().moved(Some(to.0.clone()), to.1.clone());
                self.store.put(database, name, &moved.to_sql_with_secrets())
            }
            None => Ok(()),
        }
    }
}

/// The same under another name. Queries that have it go on under the old one.
fn renamed(entry: Entry, (database, name): &FullName) -> Entry {
    let of = |definition: Definition| definition.moved(Some(database.clone()), name.clone());
    match entry {
        Entry::Open(dictionary) => {
            let dictionary: Arc<Dictionary> =
                Arc::new(dictionary.renamed(Some(database.clone()), name.clone()));
            dictionary.watch();
            Entry::Open(dictionary)
        }
        Entry::Unloaded(definition) => Entry::Unloaded(Box::new(of(*definition))),
        Entry::Failed(failure) => Entry::Failed(Failure {
            definition: failure.definition.map(|definition| Box::new(of(*definition))),
            error: failure.error,
        }),
        Entry::Table(table) => Entry::Table(table),
    }
}
