//! DROP DICTIONARY, and how a dictionary that has lost its name is closed.

use std::sync::Arc;

use granary_dialect::statement::Missing;
use granary_dialect::{Error, Result};
use granary_dict::Dictionary;

use super::{Catalogue, Entry};

impl Catalogue {
    /// DROP DICTIONARY.
    pub fn drop_dictionary(&self, database: &str, name: &str, missing: Missing) -> Result<()> {
        // What is unloaded has files, too, and knows them when it is open.
        self.usable(database, name);
        let changing = self.changing();
        let mut databases = self.write();
        let known = match databases.get(database).and_then(|entries| entries.get(name)) {
            Some(Entry::Table(_)) => {
                let message = format!("{database}.{name} is a table, not a dictionary; use DROP TABLE");
                return Err(Error::incorrect_query(message));
            }
            other => other,
        };
        match (known, missing) {
            (None, Missing::IsFine) => return Ok(()),
            (None, Missing::IsError) => {
                drop(databases);
                self.check_database(database)?;
                return Err(Error::unknown_table(format!("Dictionary {database}.{name} does not exist")));
            }
            // The files first: nobody else of this name and PATH is to find them after a kill.
            (Some(Entry::Open(dictionary)), _) => dictionary.remove_files(),
            (Some(_), _) => {}
        }
        self.store.remove(database, name)?;
        self.origins.forget(database, name);
        let gone = databases.get_mut(database).and_then(|all| all.remove(name));
        drop(databases);
        drop(changing);
        if let Some(Entry::Open(dictionary)) = gone {
            self.close_replaced(dictionary);
        }
        Ok(())
    }

    /// Closes a dictionary that is in the catalogue no more. Its source may let that wait, with which nobody else has to
    /// do: no lock may be held.
    pub(super) fn close_replaced(&self, dictionary: Arc<Dictionary>) {
        let waiting = self.environment.waiting.beside(usize::MAX);
        waiting.wait(|| {
            dictionary.close();
            drop(dictionary);
        });
    }
}
