//! Dictionaries that configuration files describe.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use granary_dialect::statement::Missing;
use granary_dialect::{Error, Result};
use granary_dict::{CreateDictionary, Definition, Existing, XmlDictionary};

use super::{Catalogue, DEFAULT_DATABASE, Entry, Failure, FullName};

/// Where dictionaries come from that no CREATE made in this process.
#[derive(Default)]
pub(super) struct Origins(Mutex<BTreeMap<FullName, Origin>>);

/// The file that describes a dictionary.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub path: String,
    pub home: Home,
}

/// Whether a file says which database a dictionary is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// It does.
    Database,
    /// It does not: it is kept in the default one, and found from all.
    Everywhere,
}

impl Origins {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FullName, Origin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, database: &str, name: &str) -> Option<Origin> {
        self.lock().get(&(database.to_owned(), name.to_owned())).cloned()
    }

    /// It is not what a file describes any more.
    pub fn forget(&self, database: &str, name: &str) {
        self.lock().remove(&(database.to_owned(), name.to_owned()));
    }

    fn set(&self, name: FullName, origin: Origin) {
        self.lock().insert(name, origin);
    }
}

impl Catalogue {
    /// The database of a name without one, where `database` is the current one: that, or where a dictionary is kept
    /// whose file names none.
    pub fn home_of<'a>(&self, database: &'a str, name: &str) -> &'a str {
        let everywhere = |origin: Origin| origin.home == Home::Everywhere;
        match self.entry(database, name) {
            None if self.origins.of(DEFAULT_DATABASE, name).is_some_and(everywhere) => DEFAULT_DATABASE,
            _ => database,
        }
    }

    /// `database.name` of such a name.
    pub fn full_name(&self, database: &str, name: &str) -> String {
        format!("{}.{name}", self.home_of(database, name))
    }

    /// Makes a dictionary what a file says. If that is wrong, its name is there and says so, unless an earlier one of
    /// this name works.
    ///
    /// # Errors
    /// What is wrong.
    pub fn configure(&self, described: XmlDictionary, path: &Path) -> Result<()> {
        let home = if described.database.is_some() { Home::Database } else { Home::Everywhere };
        let database = described.database.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
        let name = (database, described.name);
        let outcome = match &described.definition {
            Ok(definition) => self.make(&name, definition.clone()),
            Err(error) => Err(error.clone().into()),
        };
        if let Err(error) = &outcome {
            self.fail(&name, described.definition.ok(), error)?;
        }
        if !name.1.is_empty() {
            self.origins.set(name, Origin { path: path.display().to_string(), home });
        }
        outcome
    }

    /// Whether a dictionary could not be made when that was last tried, and there is none of its name.
    pub fn has_failed(&self, described: &XmlDictionary) -> bool {
        if described.name.is_empty() {
            return true;
        }
        let database = described.database.as_deref().unwrap_or(DEFAULT_DATABASE);
        matches!(self.entry(database, &described.name), Some(Entry::Failed(_)))
    }

    /// One that is that already, or was detached, is not touched.
    fn make(&self, (database, name): &FullName, mut definition: Definition) -> Result<()> {
        definition.settle(database);
        let same = |known: &Definition| known.is_same_as(&definition);
        let known = self.entry(database, name);
        let is_failed = matches!(known, Some(Entry::Failed(_)));
        let is_detached = || self.is_detached(&(database.clone(), name.clone()));
        if !is_failed && known.as_ref().and_then(Entry::definition).is_some_and(same)
            || known.is_none() && is_detached()
        {
            return Ok(());
        }
        // Who holds it passes for a query that has it.
        drop(known);
        self.create_database(database, Missing::IsFine)?;
        self.create(CreateDictionary { existing: Existing::MakesWay, definition }, database)?;
        self.dictionary(&format!("{database}.{name}")).map(drop)
    }

    /// Keeps the name of a dictionary that could not be made, and why.
    fn fail(&self, (database, name): &FullName, definition: Option<Definition>, error: &Error) -> Result<()> {
        if name.is_empty() {
            return Ok(());
        }
        self.create_database(database, Missing::IsFine)?;
        let mut databases = self.write();
        let entries = databases.entry(database.clone()).or_default();
        if matches!(entries.get(name), None | Some(Entry::Failed(_))) {
            let definition = definition.map(Box::new);
            entries.insert(name.clone(), Entry::Failed(Failure { definition, error: error.clone() }));
        }
        Ok(())
    }
}
