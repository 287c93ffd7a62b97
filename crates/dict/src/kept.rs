//! What a dictionary keeps of its source.

use crate::config::Storage;
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::DictError;
use crate::full_load::FullLoad;
use crate::row::RowFormat;
use crate::store::Store;

/// What a dictionary keeps, by its layout.
pub(crate) enum Kept {
    /// DIRECT asks each time.
    Nothing,
    /// What was looked up, in a cache.
    Cached(Store),
    /// All rows.
    FullLoad(FullLoad),
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
            (None, Storage::FullLoad(layout)) => Kept::FullLoad(FullLoad::new(*layout, definition, format)?),
            (None, _) => Kept::Nothing,
        })
    }

    pub fn store(&self) -> Option<&Store> {
        match self {
            Kept::Cached(store) => Some(store),
            Kept::Nothing | Kept::FullLoad(_) => None,
        }
    }

    pub fn full_load(&self) -> Option<&FullLoad> {
        match self {
            Kept::FullLoad(full_load) => Some(full_load),
            Kept::Nothing | Kept::Cached(_) => None,
        }
    }
}
