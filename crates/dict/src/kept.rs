//! What a dictionary keeps of its source.

use crate::config::Storage;
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::DictError;
use crate::row::RowFormat;
use crate::store::Store;
use crate::whole::Whole;

/// That, by the layout.
pub(crate) enum Kept {
    /// DIRECT asks each time.
    Nothing,
    /// What was looked up, in a cache.
    Cached(Store),
    /// All rows.
    Whole(Whole),
}

impl Kept {
    /// Opens the cache, if there is one; rows are not loaded before somebody needs them.
    ///
    /// # Errors
    /// What is wrong with the cache's files, or with the settings of the layout.
    pub fn open(
        definition: &Definition,
        environment: &Environment,
        format: &RowFormat,
    ) -> Result<Kept, DictError> {
        Ok(match (Store::open(definition, environment)?, &definition.layout.storage) {
            (Some(store), _) => Kept::Cached(store),
            (None, Storage::Whole(form)) => Kept::Whole(Whole::new(*form, definition, format)?),
            (None, _) => Kept::Nothing,
        })
    }

    pub fn store(&self) -> Option<&Store> {
        match self {
            Kept::Cached(store) => Some(store),
            Kept::Nothing | Kept::Whole(_) => None,
        }
    }

    pub fn whole(&self) -> Option<&Whole> {
        match self {
            Kept::Whole(whole) => Some(whole),
            Kept::Nothing | Kept::Cached(_) => None,
        }
    }
}
