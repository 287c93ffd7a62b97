//! Named collections: parameters of sources that are kept apart from the dictionaries, under a name.

use crate::error::{Code, DictError};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Parameters and their values, as they were written.
pub type Collection = Vec<(String, String)>;

/// All collections. Clones share them.
#[derive(Clone, Default)]
pub struct Collections(Arc<RwLock<BTreeMap<String, Collection>>>);

impl Collections {
    /// The collection of this name.
    ///
    /// # Errors
    /// `NAMED_COLLECTION_DOESNT_EXIST`.
    pub fn get(&self, name: &str) -> Result<Collection, DictError> {
        let collections = self.0.read().unwrap_or_else(PoisonError::into_inner);
        collections.get(name).cloned().ok_or_else(|| {
            DictError::new(Code::NamedCollectionDoesntExist, format!("There is no named collection `{name}`"))
        })
    }

    /// Replaces the collection `name`, or removes it. Open dictionaries keep the parameters that they were opened with.
    pub fn set(&self, name: &str, collection: Option<Collection>) {
        let mut collections = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match collection {
            Some(collection) => collections.insert(name.to_string(), collection),
            None => collections.remove(name),
        };
    }

    /// Names of the collections.
    pub fn names(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl fmt::Debug for Collections {
    /// Without values: there are passwords among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collections").field(&self.names()).finish()
    }
}
