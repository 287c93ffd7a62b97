//! A dictionary as a table: the entries that are resident.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use granary_dict::{Dictionary, Times};

use crate::error::Error;

/// The table.
pub struct DictionaryTable {
    dictionary: Arc<Dictionary>,
    schema: SchemaRef,
    times: Times,
}

impl std::fmt::Debug for DictionaryTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionaryTable").field("name", &self.dictionary.definition().full_name()).finish()
    }
}

impl DictionaryTable {
    pub fn new(dictionary: Arc<Dictionary>, times: Times) -> Self {
        let schema = dictionary.definition().structure.schema_with(times);
        Self { dictionary, schema, times }
    }
}

#[async_trait]
impl TableProvider for DictionaryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batches = self.dictionary.resident_with(self.times).map_err(Error::from)?;
        let exec =
            MemorySourceConfig::try_new_exec(&[batches], Arc::clone(&self.schema), projection.cloned())?;
        Ok(exec)
    }
}
