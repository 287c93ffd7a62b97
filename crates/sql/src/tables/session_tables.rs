//! Tables that are not in the catalogue: files and the piped input, which came with the session, and tables lent to one
//! query.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;

use super::piped::Piped;

/// Visible from every database, after its dictionaries.
#[derive(Debug, Default)]
pub struct SessionTables {
    files: MemorySchemaProvider,
    /// The table's name, and its reader.
    piped: RwLock<Option<(String, Arc<Piped>)>>,
    /// Under secret names.
    lent: RwLock<HashMap<String, Arc<dyn TableProvider>>>,
}

/// A table that one query finds under a secret name while this guard lives.
#[derive(Debug)]
pub struct TableGuard {
    tables: Arc<SessionTables>,
    name: String,
}

impl TableGuard {
    /// The name that the table was lent under.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TableGuard {
    fn drop(&mut self) {
        self.tables.lent.write().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl SessionTables {
    /// Adds a stream as a table, read when a query names it.
    pub fn set_piped(&self, name: &str, piped: Piped) {
        *self.piped.write().unwrap_or_else(PoisonError::into_inner) =
            Some((name.to_owned(), Arc::new(piped)));
    }

    /// The table of this name, if there is one.
    pub async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some(table) = self.files.table(name).await? {
            return Ok(Some(table));
        }
        if let Some(table) = self.lent.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Some(Arc::clone(table)));
        }
        match self.piped(name) {
            Some(piped) => Ok(piped.table().await?),
            None => Ok(None),
        }
    }

    /// Adds a file as a table.
    pub fn add(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        self.files.register_table(name, table)
    }

    /// Removes a file's table.
    pub fn remove(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        self.files.deregister_table(name)
    }

    /// Lends a table under `name` until the returned guard is dropped.
    pub fn lend(self: &Arc<Self>, name: String, table: Arc<dyn TableProvider>) -> TableGuard {
        self.lent.write().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), table);
        TableGuard { tables: Arc::clone(self), name }
    }

    /// The names of all tables except lent ones.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.files.table_names();
        let piped = self.piped.read().unwrap_or_else(PoisonError::into_inner);
        names.extend(piped.as_ref().map(|(name, _)| name.clone()));
        names
    }

    /// Whether there is a table of this name.
    pub fn contains(&self, name: &str) -> bool {
        let is_lent = || self.lent.read().unwrap_or_else(PoisonError::into_inner).contains_key(name);
        self.files.table_exist(name) || self.piped(name).is_some() || is_lent()
    }

    fn piped(&self, name: &str) -> Option<Arc<Piped>> {
        let piped = self.piped.read().unwrap_or_else(PoisonError::into_inner);
        piped.as_ref().filter(|(known, _)| known == name).map(|(_, piped)| Arc::clone(piped))
    }
}
