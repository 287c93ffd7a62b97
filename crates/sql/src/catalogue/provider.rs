//! The catalogue as DataFusion sees it: databases are schemas, dictionaries are tables.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};

use super::dictionary_table::DictionaryTable;
use super::{Catalogue, Entry, SYSTEM_DATABASE, system};

/// All databases.
#[derive(Debug)]
pub struct Databases {
    catalogue: Arc<Catalogue>,
    /// Files given on the command line: visible from every database.
    files: Arc<MemorySchemaProvider>,
}

impl Databases {
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue, files: Arc::new(MemorySchemaProvider::new()) }
    }
}

impl CatalogProvider for Databases {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.catalogue.databases();
        names.push(SYSTEM_DATABASE.to_owned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        // One that is not there is an error of its own when a table of it is wanted.
        Some(Arc::new(Database {
            name: name.to_owned(),
            catalogue: Arc::clone(&self.catalogue),
            files: Arc::clone(&self.files),
        }))
    }
}

/// One database.
#[derive(Debug)]
struct Database {
    name: String,
    catalogue: Arc<Catalogue>,
    files: Arc<MemorySchemaProvider>,
}

#[async_trait]
impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.catalogue.entries(&self.name).into_iter().map(|(name, _)| name).collect();
        names.extend(self.files.table_names());
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        self.catalogue.check_database(&self.name)?;
        if self.name == SYSTEM_DATABASE
            && let Some(table) = system::table(&self.catalogue, name)?
        {
            return Ok(Some(table));
        }
        match self.catalogue.entry(&self.name, name) {
            Some(Entry::Open(dictionary)) => Ok(Some(Arc::new(DictionaryTable::new(dictionary)))),
            Some(Entry::Failed(failure)) => Err(failure.error.into()),
            None => self.files.table(name).await,
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.files.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.files.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.catalogue.entry(&self.name, name).is_some() || self.files.table_exist(name)
    }
}
