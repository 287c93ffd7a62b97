//! Named collections: made, changed and kept by statements, read by sources.

use granary_dialect::statement::{CollectionChange, OnConflict, quoted};
use granary_dialect::{Error, Result};
use granary_dict::{Collection, quote};

use super::Catalogue;

/// Shown in place of values, which may be passwords.
const HIDDEN: &str = "[HIDDEN]";

impl Catalogue {
    /// CREATE, ALTER or DROP NAMED COLLECTION. Dictionaries that are open keep what they were opened with.
    pub fn change_collection(&self, name: &str, change: CollectionChange) -> Result<()> {
        // Changes are made one at a time, so that each sees those before it.
        let _changing = self.changing();
        let collections = &self.environment.collections;
        let known = collections.get(name).ok();
        let collection = match (change, known) {
            (CollectionChange::Create { if_exists: OnConflict::Ignore, .. }, Some(_)) => return Ok(()),
            (CollectionChange::Create { .. }, Some(_)) => {
                let message = format!("A named collection `{name}` already exists");
                return Err(Error::named_collection_already_exists(message));
            }
            (CollectionChange::Create { values, .. }, None) => Some(changed(Vec::new(), values, &[])),
            (CollectionChange::Alter { set, delete, .. }, Some(known)) => Some(changed(known, set, &delete)),
            (CollectionChange::Drop { .. }, Some(_)) => None,
            (CollectionChange::Alter { if_missing, .. } | CollectionChange::Drop { if_missing }, None) => {
                return match if_missing {
                    OnConflict::Ignore => Ok(()),
                    OnConflict::Error => Err(collections.get(name).map(drop).unwrap_err().into()),
                };
            }
        };
        match &collection {
            Some(collection) if collection.is_empty() => {
                return Err(Error::bad_arguments(format!(
                    "Named collection `{name}` would have no values; DROP NAMED COLLECTION removes it"
                )));
            }
            Some(collection) => self.store.put_collection(name, &statement(name, collection, None))?,
            None => self.store.remove_collection(name)?,
        }
        collections.set(name, collection);
        Ok(())
    }

    /// The names of the collections, and the statements that make them, without their values.
    pub fn collections(&self) -> Vec<(String, String)> {
        let collections = &self.environment.collections;
        let shown = |name: String| {
            let collection = collections.get(&name).ok()?;
            let sql = statement(&name, &collection, Some(HIDDEN));
            Some((name, sql))
        };
        collections.names().into_iter().filter_map(shown).collect()
    }
}

/// The collection with the values of `set`, and without the names in `delete`.
fn changed(mut collection: Collection, set: Collection, delete: &[String]) -> Collection {
    collection.retain(|(name, _)| !delete.contains(name) && !set.iter().any(|(other, _)| other == name));
    collection.extend(set);
    collection
}

fn statement(name: &str, collection: &[(String, String)], hidden: Option<&str>) -> String {
    let value =
        |(name, value): &(String, String)| format!("{} = {}", quoted(name), quote(hidden.unwrap_or(value)));
    let values: Vec<String> = collection.iter().map(value).collect();
    format!("CREATE NAMED COLLECTION {} AS {}", quoted(name), values.join(", "))
}
