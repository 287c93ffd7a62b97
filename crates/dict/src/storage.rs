//! What a dictionary keeps of its source.

use crate::cache_store::CacheStore;
use crate::config::LayoutKind;
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::DictError;
use crate::full_load::FullLoad;
use crate::row::RowFormat;

/// What a dictionary keeps, by its layout.
#[allow(clippy::large_enum_variant, reason = "a dictionary has one, which does not move")]
pub(crate) enum Storage {
    /// DIRECT asks each time.
    Nothing,
    /// What was looked up, in a cache.
    Cached(CacheStore),
    /// All rows.
    FullLoad(FullLoad),
}

impl Storage {
    /// Opens the cache, if there is one; rows are loaded at their first use.
    ///
    /// # Errors
    /// Errors of the cache's files, or of the layout's settings.
    pub fn open(
        definition: &Definition,
        environment: &Environment,
        format: &RowFormat,
    ) -> Result<Storage, DictError> {
        Ok(match (CacheStore::open(definition, environment)?, &definition.layout.kind) {
            (Some(store), _) => Storage::Cached(store),
            (None, LayoutKind::FullLoad(layout)) => {
                Storage::FullLoad(FullLoad::new(*layout, definition, format, &environment.totals)?)
            }
            (None, _) => Storage::Nothing,
        })
    }

    pub fn store(&self) -> Option<&CacheStore> {
        match self {
            Storage::Cached(store) => Some(store),
            Storage::Nothing | Storage::FullLoad(_) => None,
        }
    }

    pub fn full_load(&self) -> Option<&FullLoad> {
        match self {
            Storage::FullLoad(full_load) => Some(full_load),
            Storage::Nothing | Storage::Cached(_) => None,
        }
    }
}
