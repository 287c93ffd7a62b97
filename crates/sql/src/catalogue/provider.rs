//! The catalogue as DataFusion sees it: databases are schemas, dictionaries are tables.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use granary_dialect::rewrite::WITH_TIMES;
use granary_dict::Times;

use super::dictionary_table::DictionaryTable;
use super::{Catalogue, Entry, SYSTEM_DATABASE, system};
use crate::tables::provider::Provider;
use crate::tables::session_tables::SessionTables;

/// All databases.
#[derive(Debug)]
pub struct Databases {
    catalogue: Arc<Catalogue>,
    session_tables: Arc<SessionTables>,
}

impl Databases {
    pub fn new(catalogue: Arc<Catalogue>, session_tables: Arc<SessionTables>) -> Self {
        Self { catalogue, session_tables }
    }
}

impl CatalogProvider for Databases {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.catalogue.databases();
        names.push(SYSTEM_DATABASE.to_owned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        // An unknown database becomes an error of its own when a table in it is looked up.
        Some(Arc::new(Database {
            name: name.to_owned(),
            catalogue: Arc::clone(&self.catalogue),
            session_tables: Arc::clone(&self.session_tables),
        }))
    }
}

/// One database.
#[derive(Debug)]
struct Database {
    name: String,
    catalogue: Arc<Catalogue>,
    session_tables: Arc<SessionTables>,
}

#[async_trait]
impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.catalogue.entries(&self.name).into_iter().map(|(name, _)| name).collect();
        names.extend(self.session_tables.names());
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        self.catalogue.check_database(&self.name)?;
        if self.name == SYSTEM_DATABASE
            && let Some(table) = system::table(&self.catalogue, name)?
        {
            return Ok(Some(table));
        }
        let (name, times) = match name.strip_suffix(WITH_TIMES) {
            Some(name) => (name, Times::Shown),
            None => (name, Times::Hidden),
        };
        match self.catalogue.usable(&self.name, name) {
            Some(Entry::Open(dictionary)) => Ok(Some(Provider::of(DictionaryTable::new(dictionary, times)))),
            Some(Entry::Failed(failure)) => Err(failure.error.into()),
            Some(Entry::Table(table)) => Ok(Some(Arc::new(Provider(table)))),
            Some(Entry::Unloaded(_)) | None => self.session_tables.table(name).await,
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.session_tables.add(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.session_tables.remove(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        let name = name.strip_suffix(WITH_TIMES).unwrap_or(name);
        self.catalogue.entry(&self.name, name).is_some() || self.session_tables.contains(name)
    }
}
