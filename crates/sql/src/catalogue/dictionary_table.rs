//! A dictionary as a table: the entries that are resident.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use granary_dict::{Dictionary, Structure};

use crate::error::Error;

/// The table.
pub struct DictionaryTable {
    dictionary: Arc<Dictionary>,
    schema: SchemaRef,
}

impl std::fmt::Debug for DictionaryTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionaryTable").field("name", &self.dictionary.definition().full_name()).finish()
    }
}

impl DictionaryTable {
    pub fn new(dictionary: Arc<Dictionary>) -> Self {
        let schema = schema(&dictionary.definition().structure);
        Self { dictionary, schema }
    }
}

/// Key columns, then attributes.
pub fn schema(structure: &Structure) -> SchemaRef {
    let mut fields = structure.key_fields();
    fields.extend(structure.attribute_fields());
    Arc::new(Schema::new(fields))
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
        let mut batches = Vec::new();
        for batch in self.dictionary.resident().map_err(Error::from)? {
            batches.push(batch.with_schema(Arc::clone(&self.schema))?);
        }
        let exec =
            MemorySourceConfig::try_new_exec(&[batches], Arc::clone(&self.schema), projection.cloned())?;
        Ok(exec)
    }
}
