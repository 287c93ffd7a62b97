//! Changes of names of dictionaries and tables; DETACH, ATTACH and UNLOAD of dictionaries.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};

use granary_dialect::statement::{Noun, OnConflict};
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Definition, Dictionary};

use super::{CLOSE_PAUSE, Catalogue, Dictionaries, Entry, Failure, Unloaded, open_entry, unknown_database};

/// How long to wait for queries to release a dictionary that is to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

impl Catalogue {
    /// RENAME.
    pub fn rename(&self, noun: Noun, from: &FullName, to: &FullName) -> Result<()> {
        let _changing = self.changing();
        self.check_noun(self.read().get(&from.database), noun, from)?;
        self.check_database_of_names(&to.database)?;
        if self.entry(&to.database, &to.name).is_some() {
            return Err(Error::table_already_exists(format!("{to} already exists")));
        }
        self.check_not_detached(to)?;
        let databases = self.lock_names_when_idle(|name| name == (&from.database, &from.name));
        let known = databases.get(&from.database).and_then(|entries| entries.get(&from.name));
        let definition = known.and_then(Entry::definition).cloned();
        let opening_locks = opening_locks(known);
        let _held = lock_all(&opening_locks);
        drop(databases);
        self.keep_as(from, definition, to)?;
        self.store.rename(from, to)?;
        self.origins.forget(&from.database, &from.name);
        let mut databases = self.write();
        if let Some(entry) = databases.get_mut(&from.database).and_then(|entries| entries.remove(&from.name))
        {
            databases.entry(to.database.clone()).or_default().insert(to.name.clone(), renamed(entry, to));
        }
        Ok(())
    }

    /// EXCHANGE: the two swap their names.
    pub fn exchange(&self, noun: Noun, one: &FullName, other: &FullName) -> Result<()> {
        let _changing = self.changing();
        let databases = self.lock_names_when_idle(|name| {
            [one, other].iter().any(|other| name == (&other.database, &other.name))
        });
        for (dictionary, name) in [(one, other), (other, one)] {
            let entry = databases.get(&dictionary.database).and_then(|entries| entries.get(&dictionary.name));
            if entry
                .and_then(Entry::definition)
                .is_some_and(|definition| definition.reads_own_table(&name.database, &name.name))
            {
                return Err(Error::infinite_loop(format!(
                    "{dictionary} would read its rows from itself: it is made of {name}"
                )));
            }
        }
        for name in [one, other] {
            self.check_noun(databases.get(&name.database), noun, name)?;
        }
        if one == other {
            return Ok(());
        }
        let known = [one, other]
            .map(|name| databases.get(&name.database).and_then(|entries| entries.get(&name.name)));
        let [of_one, of_other] = known.map(|entry| entry.and_then(Entry::definition).cloned());
        let opening_locks = opening_locks(known.into_iter().flatten());
        let _held = lock_all(&opening_locks);
        drop(databases);
        self.keep_as(one, of_one, other)?;
        self.keep_as(other, of_other, one)?;
        self.store.exchange(one, other)?;
        [one, other].into_iter().for_each(|name| self.origins.forget(&name.database, &name.name));
        let mut databases = self.write();
        let mut take = |name: &FullName| {
            databases.get_mut(&name.database).and_then(|entries| entries.remove(&name.name))
        };
        for (entry, to) in [(take(one), other), (take(other), one)] {
            if let Some(entry) = entry {
                databases.entry(to.database.clone()).or_default().insert(to.name.clone(), renamed(entry, to));
            }
        }
        Ok(())
    }

    /// DETACH DICTIONARY: ATTACH brings it back, and so does the next start unless `permanently`.
    pub fn detach(&self, name: &FullName, if_missing: OnConflict, permanently: bool) -> Result<()> {
        match self.check_noun(self.read().get(&name.database), Noun::Dictionary, name) {
            Ok(()) => {}
            Err(error)
                if [Error::unknown_table("").code, Error::unknown_database("").code]
                    .contains(&error.code)
                    && if_missing == OnConflict::Ignore =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let changing = self.changing();
        let Some(entry) = self.take_out(name) else { return Err(self.missing(Noun::Dictionary, name)) };
        let entry = match entry {
            Entry::Open(dictionary) => match self.wait_until_unused(name, dictionary) {
                Ok(dictionary) => Entry::Open(dictionary),
                Err((dictionary, error)) => {
                    self.put_entry(&name.database, &name.name, Entry::Open(dictionary))?;
                    return Err(error);
                }
            },
            entry => entry,
        };
        if permanently && let Err(error) = self.store.detach(name) {
            self.put_entry(&name.database, &name.name, entry)?;
            return Err(error);
        }
        drop(changing);
        if let Entry::Open(dictionary) = entry {
            self.close_unused(name, dictionary);
        }
        Ok(())
    }

    /// ATTACH DICTIONARY, of a detached one.
    pub fn attach(&self, name: &FullName, if_exists: OnConflict) -> Result<()> {
        let _changing = self.changing();
        self.check_database(&name.database)?;
        match self.entry(&name.database, &name.name).map(|entry| entry.noun()) {
            Some(_) if if_exists == OnConflict::Ignore => return Ok(()),
            Some(Noun::Table) => {
                let message = format!("{name} is a table, not a dictionary");
                return Err(Error::incorrect_query(message));
            }
            Some(noun) => return Err(self.already_exists(noun, name)),
            None => {}
        }
        let Some(definition) = self.store.read_detached(name)? else {
            let message = format!("There is no {} in database {} to be attached", name.name, name.database);
            return Err(Error::cannot_get_create_query(message));
        };
        self.check_path(&definition, name)?;
        match open_entry(&definition, &self.environment) {
            Entry::Failed(failure) => Err(failure.error),
            entry => {
                self.store.reattach(name)?;
                self.put_entry(&name.database, &name.name, entry)
            }
        }
    }

    /// SYSTEM UNLOAD DICTIONARY: gives its RAM back. Its name stays: queries that ask before it begins to close use it,
    /// and later ones open it again, as warm as it was.
    ///
    /// # Errors
    /// TIMEOUT_EXCEEDED if queries use it all the time.
    pub fn unload(&self, name: &FullName) -> Result<()> {
        self.check_noun(self.read().get(&name.database), Noun::Dictionary, name)
            .map_err(|_| Error::bad_arguments(format!("Dictionary (`{name}`) not found")))?;
        self.unload_all(vec![name.clone()])
    }

    /// Unloads dictionaries, as [`unload`](Self::unload) does one. Those in use are waited for together.
    ///
    /// # Errors
    /// TIMEOUT_EXCEEDED if queries use some of them all the time; the others are unloaded.
    pub fn unload_all(&self, mut names: Vec<FullName>) -> Result<()> {
        // Only the pauses count: closing a dictionary may take long, and other statements may hold the catalogue.
        let mut waited = Duration::ZERO;
        loop {
            names.retain(|name| !self.try_unload(name));
            if names.is_empty() {
                return Ok(());
            }
            if waited >= CLOSE_TIMEOUT {
                let names: Vec<String> = names.iter().map(FullName::to_string).collect();
                return Err(in_use(names.join(", ")));
            }
            std::thread::sleep(CLOSE_PAUSE);
            waited += CLOSE_PAUSE;
        }
    }

    /// Unloads a dictionary that is there and open, unless queries use it (`false`).
    fn try_unload(&self, name: &FullName) -> bool {
        let closing = Arc::<Mutex<()>>::default();
        let held = closing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.unload_unused(name, &closing) {
            DictionaryUse::Nobody(dictionary) => self.close_unused(name, dictionary),
            DictionaryUse::IsClosed => {}
            DictionaryUse::Queries => return false,
        }
        drop(held);
        true
    }

    /// Takes a dictionary that no query uses. Its entry is closing from here on.
    fn unload_unused(
        &self,
        FullName { database, name }: &FullName,
        closing: &Arc<Mutex<()>>,
    ) -> DictionaryUse {
        // A dictionary that is being replaced stays as it is meanwhile.
        let _changing = self.changing();
        let mut databases = self.lock_names_when_idle(|known| known == (database, name));
        let entry = databases.get_mut(database).and_then(|entries| entries.get_mut(name));
        let Some(entry) = entry else { return DictionaryUse::IsClosed };
        // No query can begin to use it meanwhile: that takes the lock, too.
        let definition = match entry {
            Entry::Open(dictionary) if dictionary.is_shared() => return DictionaryUse::Queries,
            Entry::Open(dictionary) => Box::new(dictionary.definition().clone()),
            _ => return DictionaryUse::IsClosed,
        };
        let closing = Arc::clone(closing);
        let unloaded = Entry::Unloaded(Unloaded { definition, closing, opening: Arc::default() });
        match std::mem::replace(entry, unloaded) {
            Entry::Open(dictionary) => DictionaryUse::Nobody(dictionary),
            _ => DictionaryUse::IsClosed,
        }
    }

    /// Inserts an entry that was taken out, or a new one, unless its database is gone.
    pub(super) fn put_entry(&self, database: &str, name: &str, entry: Entry) -> Result<()> {
        let mut databases = self.write();
        let entries = databases.get_mut(database).ok_or_else(|| unknown_database(database))?;
        let replaced = entries.insert(name.to_owned(), entry);
        // Closing may take long.
        drop(databases);
        drop(replaced);
        Ok(())
    }

    /// Opens an unloaded entry once it is closed; concurrent callers wait for the one that opens it. Other names can be
    /// looked up meanwhile.
    pub(super) fn load(&self, database: &str, name: &str) -> Entry {
        loop {
            let databases = self.read();
            let unloaded = match databases.get(database).and_then(|entries| entries.get(name)) {
                Some(Entry::Unloaded(unloaded)) => unloaded.clone(),
                Some(entry) => return entry.clone(),
                // It was dropped meanwhile.
                None => {
                    return Entry::Failed(Failure {
                        definition: None,
                        error: Error::bad_arguments(format!("Dictionary (`{database}.{name}`) not found")),
                    });
                }
            };
            let is_closed = try_lock(&unloaded.closing).is_some();
            let opening = try_lock(&unloaded.opening).filter(|_| is_closed);
            drop(databases);
            let Some(opening) = opening else {
                let held = if is_closed { &unloaded.opening } else { &unloaded.closing };
                self.without_query_permit(|| drop(held.lock()));
                continue;
            };
            let opened = self.without_query_permit(|| open_entry(&unloaded.definition, &self.environment));
            let opened = self.put_opened(database, name, &unloaded, opened);
            drop(opening);
            if let Some(entry) = opened {
                return entry;
            }
        }
    }

    /// Replaces the entry that a dictionary was opened for, and returns the new one. The entry is there unless
    /// everything was closed meanwhile: statements that change names wait.
    fn put_opened(&self, database: &str, name: &str, of: &Unloaded, opened: Entry) -> Option<Entry> {
        let mut databases = self.write();
        let entry = databases.get_mut(database).and_then(|entries| entries.get_mut(name));
        let selects =
            |entry: &Entry| matches!(entry, Entry::Unloaded(it) if Arc::ptr_eq(&it.opening, &of.opening));
        match entry.filter(|entry| selects(entry)) {
            Some(entry) => {
                *entry = opened.clone();
                Some(opened)
            }
            None => {
                // Closing may take long.
                drop(databases);
                drop(opened);
                None
            }
        }
    }

    /// Write-locks the names once no dictionary that `selects` is true for is being opened.
    pub(super) fn lock_names_when_idle(
        &self,
        selects: impl Fn((&String, &String)) -> bool,
    ) -> RwLockWriteGuard<'_, BTreeMap<String, Dictionaries>> {
        loop {
            let databases = self.write();
            let mut all = databases.iter().flat_map(|(database, entries)| {
                entries.iter().map(move |(name, entry)| (database, name, entry))
            });
            let opening = all.find_map(|(database, name, entry)| match entry {
                Entry::Unloaded(unloaded)
                    if selects((database, name)) && try_lock(&unloaded.opening).is_none() =>
                {
                    Some(Arc::clone(&unloaded.opening))
                }
                _ => None,
            });
            drop(all);
            let Some(opening) = opening else { return databases };
            drop(databases);
            self.without_query_permit(|| drop(opening.lock()));
        }
    }

    /// Takes a dictionary out of the catalogue, unless the name is a table's by now.
    fn take_out(&self, FullName { database, name }: &FullName) -> Option<Entry> {
        let mut databases = self.lock_names_when_idle(|known| known == (database, name));
        let entries = databases.get_mut(database)?;
        match entries.get(name)? {
            Entry::Table(_) => None,
            _ => entries.remove(name),
        }
    }

    /// Waits until no query uses a dictionary that was taken out; returns it in either case.
    ///
    /// # Errors
    /// TIMEOUT_EXCEEDED if queries use it for too long.
    pub(super) fn wait_until_unused(
        &self,
        name: &FullName,
        dictionary: Arc<Dictionary>,
    ) -> Result<Arc<Dictionary>, (Arc<Dictionary>, Error)> {
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while dictionary.is_shared() {
            if Instant::now() > deadline {
                return Err((dictionary, in_use(name)));
            }
            std::thread::sleep(CLOSE_PAUSE);
        }
        Ok(dictionary)
    }

    /// Like [`wait_until_unused`](Self::wait_until_unused), for a dictionary that will be dropped: also until the
    /// thread that looks for changes has ended its look. It finds no dictionary any more.
    pub(super) fn wait_until_alone(
        &self,
        name: &FullName,
        mut dictionary: Arc<Dictionary>,
    ) -> Result<Dictionary, (Arc<Dictionary>, Error)> {
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        loop {
            dictionary = match Arc::try_unwrap(self.wait_until_unused(name, dictionary)?) {
                Ok(alone) => return Ok(alone),
                // A look has begun in between.
                Err(shared) => shared,
            };
            if Instant::now() > deadline {
                return Err((dictionary, in_use(name)));
            }
        }
    }

    /// Closes a dictionary that no query uses, so that it may be opened again: its files too, which the thread that
    /// looks for changes may hold a moment longer. The caller must hold no lock that queries wait for with a permit.
    fn close_unused(&self, name: &FullName, dictionary: Arc<Dictionary>) {
        self.without_query_permit(|| {
            dictionary.close();
            let deadline = Instant::now() + CLOSE_TIMEOUT;
            while dictionary.is_shared() {
                if Instant::now() > deadline {
                    tracing::warn!("{name} is closed, but its source does not answer: until it does, its files are in use");
                    return;
                }
                std::thread::sleep(CLOSE_PAUSE);
            }
            drop(dictionary);
        });
    }

    /// Checks that a name exists and is of the kind that the statement says. A dictionary counts as a table, too.
    fn check_noun(&self, entries: Option<&Dictionaries>, noun: Noun, name: &FullName) -> Result<()> {
        let Some(entries) = entries else { return Err(unknown_database(&name.database)) };
        match (noun, entries.get(&name.name).map(Entry::noun)) {
            (_, None) => Err(self.missing(noun, name)),
            (Noun::Dictionary, Some(Noun::Table)) => {
                Err(Error::incorrect_query(format!("{name} is a table: say TABLE, not DICTIONARY")))
            }
            _ => Ok(()),
        }
    }

    /// Whether a dictionary was detached under this name, given that no entry has the name: looks at the disk, under
    /// `changing` and not under the lock of the names.
    pub(super) fn is_detached(&self, name: &FullName) -> bool {
        self.store.has(name)
    }

    /// Refuses a name that ATTACH would bring back.
    pub(super) fn check_not_detached(&self, name: &FullName) -> Result<()> {
        match self.is_detached(name) {
            false => Ok(()),
            true => Err(Error::table_already_exists(format!(
                "Table `{}`.`{}` already exists (detached); ATTACH brings it back",
                name.database, name.name
            ))),
        }
    }

    pub(super) fn missing(&self, noun: Noun, name: &FullName) -> Error {
        let noun = if noun == Noun::Table { "Table" } else { "Dictionary" };
        Error::unknown_table(format!("{noun} {name} does not exist"))
    }

    /// Rewrites a dictionary's statement in place with its future name, before the file is moved. Until it is, this
    /// means the same: the file's place decides the dictionary's name.
    fn keep_as(&self, from: &FullName, definition: Option<Definition>, to: &FullName) -> Result<()> {
        match definition {
            // A dictionary that a configuration file describes, and that could not be made, has no statement.
            Some(definition) if self.store.has(from) => {
                self.store.check_name(to)?;
                let moved = definition.moved(Some(to.database.clone()), to.name.clone());
                self.store.put(&from.database, &from.name, &moved.to_sql_with_secrets())
            }
            _ => Ok(()),
        }
    }
}

/// The locks of the entries that are not open. A change of their files on disk is made under these, and not under the
/// lock of the names, which every query takes and a slow disk must not hold.
pub(super) fn opening_locks<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Arc<Mutex<()>>> {
    let opening = |entry: &Entry| match entry {
        Entry::Unloaded(unloaded) => Some(Arc::clone(&unloaded.opening)),
        _ => None,
    };
    entries.into_iter().filter_map(opening).collect()
}

/// Keeps these dictionaries from being opened while the guards live. Called under the lock of the names, when they are
/// [settled](Catalogue::lock_names_when_idle): the locks are free then, and this does not wait.
pub(super) fn lock_all(locks: &[Arc<Mutex<()>>]) -> Vec<MutexGuard<'_, ()>> {
    locks.iter().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Whether queries use a dictionary that is to be closed.
enum DictionaryUse {
    /// No query uses it; the caller has it alone.
    Nobody(Arc<Dictionary>),
    Queries,
    /// It is not open.
    IsClosed,
}

/// Locks `lock` if it is free.
pub(super) fn try_lock(lock: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    match lock.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn in_use(name: impl Display) -> Error {
    Error::timeout_exceeded(format!("Dictionary {name} is in use by a query, or waits for its source"))
}

/// The entry under another name. Queries in progress keep the old name.
fn renamed(entry: Entry, FullName { database, name }: &FullName) -> Entry {
    let of = |definition: Definition| definition.moved(Some(database.clone()), name.clone());
    match entry {
        Entry::Open(dictionary) => {
            let dictionary: Arc<Dictionary> =
                Arc::new(dictionary.renamed(Some(database.clone()), name.clone()));
            dictionary.watch();
            Entry::Open(dictionary)
        }
        Entry::Unloaded(unloaded) => {
            Entry::Unloaded(Unloaded { definition: Box::new(of(*unloaded.definition)), ..unloaded })
        }
        Entry::Failed(failure) => Entry::Failed(Failure {
            definition: failure.definition.map(|definition| Box::new(of(*definition))),
            error: failure.error,
        }),
        Entry::Table(table) => Entry::Table(table),
    }
}
