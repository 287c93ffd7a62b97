//! Dictionaries that configuration files describe.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use granary_dialect::statement::OnConflict;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{CreateDictionary, CreateMode, Definition, XmlDictionary};

use super::{Catalogue, DEFAULT_DATABASE, Entry, Failure};

/// Files of the dictionaries that configuration files describe, by name.
#[derive(Default)]
pub(super) struct Origins(Mutex<BTreeMap<FullName, Origin>>);

/// The file that describes a dictionary.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub path: String,
    /// Whether the file still describes it.
    pub is_described: bool,
    pub home: Home,
    /// Why the file's newest definition could not be made. An earlier one may be in use.
    pub failure: Option<Error>,
}

/// Whether a file says which database a dictionary is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// The file names the database.
    Database,
    /// The file names none: the dictionary is kept in the default database, and found from all.
    Everywhere,
}

impl Origins {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FullName, Origin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, database: &str, name: &str) -> Option<Origin> {
        self.lock().get(&FullName::new(database, name)).cloned()
    }

    /// The dictionary is not described by a file any more.
    pub fn forget(&self, database: &str, name: &str) {
        self.lock().remove(&FullName::new(database, name));
    }

    fn set(&self, name: FullName, origin: Origin) {
        self.lock().insert(name, origin);
    }

    /// The other file that describes the dictionary, if it counts: its path is before this one, and it is still there.
    fn other(&self, name: &FullName, path: &Path) -> Option<String> {
        let other = self.lock().get(name).filter(|origin| origin.is_described)?.path.clone();
        let counts = Path::new(&other) < path && Path::new(&other).try_exists().unwrap_or(true);
        counts.then_some(other)
    }

    /// Notes which of its dictionaries a file describes no longer: another file may describe them now.
    fn note_described(&self, path: &Path, is_described: impl Fn(&FullName) -> bool) {
        for (name, origin) in self.lock().iter_mut().filter(|(_, origin)| Path::new(&origin.path) == path) {
            origin.is_described = is_described(name);
        }
    }
}

impl Catalogue {
    /// The database of a name without one: `database`, the current one, or the database that keeps a dictionary whose
    /// file names none.
    pub fn home_of<'a>(&self, database: &'a str, name: &str) -> &'a str {
        let everywhere = |origin: Origin| origin.home == Home::Everywhere;
        match self.entry(database, name) {
            None if self.origins.of(DEFAULT_DATABASE, name).is_some_and(everywhere) => DEFAULT_DATABASE,
            _ => database,
        }
    }

    /// Creates the dictionary that a file describes. On failure its name is kept as a failed entry, unless an earlier
    /// dictionary of this name works.
    ///
    /// # Errors
    /// Why the dictionary cannot be made; another file describes one of this name.
    pub fn configure(&self, described: XmlDictionary, path: &Path) -> Result<()> {
        let home = if described.database.is_some() { Home::Database } else { Home::Everywhere };
        let name = full_name(&described);
        if let Some(other) = self.origins.other(&name, path) {
            let what =
                format!("Dictionary {name} is described by {other}, too, which counts: remove one of them");
            return Err(Error::bad_arguments(what));
        }
        let outcome = match &described.definition {
            Ok(definition) => self.make(&name, definition.clone()),
            Err(error) => Err(error.clone().into()),
        };
        if let Err(error) = &outcome {
            self.fail(&name, described.definition.ok(), error)?;
        }
        if !name.name.is_empty() {
            let failure = outcome.as_ref().err().cloned();
            let path = path.display().to_string();
            self.origins.set(name, Origin { path, is_described: true, home, failure });
        }
        outcome
    }

    /// Whether the dictionary could not be made when last tried, though an earlier one of its name may be in use. One
    /// that was dropped or replaced since has not failed.
    pub fn has_failed(&self, described: &XmlDictionary, path: &Path) -> bool {
        let FullName { database, name } = full_name(described);
        let has_failed = |origin: Origin| origin.failure.is_some() || Path::new(&origin.path) != path;
        name.is_empty() || self.origins.of(&database, &name).is_some_and(has_failed)
    }

    /// Notes which dictionaries a file describes now.
    pub fn note_described(&self, described: &[XmlDictionary], path: &Path) {
        let names: Vec<FullName> = described.iter().map(full_name).collect();
        self.origins.note_described(path, |name| names.contains(name));
    }

    /// Leaves an identical or a detached dictionary alone, whose comment alone may be new.
    fn make(&self, full_name: &FullName, mut definition: Definition) -> Result<()> {
        let FullName { database, name } = full_name;
        definition.set_default_database(database);
        let same = |known: &Definition| known.is_same_as(&definition);
        let known = self.entry(database, name);
        let is_failed = matches!(known, Some(Entry::Failed(_)));
        let same = known.as_ref().and_then(Entry::definition).filter(|known| !is_failed && same(known));
        if let Some(same) = same {
            let is_commented = same.comment == definition.comment;
            drop(known);
            return if is_commented { Ok(()) } else { self.set_comment(database, name, definition.comment) };
        }
        if known.is_none() && self.is_detached(full_name) {
            return Ok(());
        }
        // Dropped: a held `Arc` would count as use by a query.
        drop(known);
        self.create_database(database, OnConflict::Ignore)?;
        self.create(CreateDictionary { existing: CreateMode::CreateOrReplace, definition }, database)?;
        self.dictionary(full_name).map(drop)
    }

    /// Keeps the name of a dictionary that could not be made, and why.
    fn fail(
        &self,
        FullName { database, name }: &FullName,
        definition: Option<Definition>,
        error: &Error,
    ) -> Result<()> {
        if name.is_empty() {
            return Ok(());
        }
        self.create_database(database, OnConflict::Ignore)?;
        let mut databases = self.write();
        let entries = databases.entry(database.clone()).or_default();
        if matches!(entries.get(name), None | Some(Entry::Failed(_))) {
            let definition = definition.map(Box::new);
            entries.insert(name.clone(), Entry::Failed(Failure { definition, error: error.clone() }));
        }
        Ok(())
    }
}

/// The full name of a dictionary of a file.
fn full_name(described: &XmlDictionary) -> FullName {
    FullName::new(described.database.as_deref().unwrap_or(DEFAULT_DATABASE), &described.name)
}
