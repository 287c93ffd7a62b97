//! Tables of our own as DataFusion reads them.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;

/// A table: its columns, and a plan that reads them.
pub trait Table: Debug + Send + Sync + 'static {
    /// All columns of the table.
    fn schema(&self) -> SchemaRef;

    /// A plan whose rows have the wanted columns.
    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>>;
}

/// The columns and rows that a query wants of a table.
pub struct Wanted<'a> {
    /// Places of the wanted columns, in the wanted order; `None`: all of them.
    projection: Option<&'a Vec<usize>>,
    /// Maximum number of rows that the query takes.
    pub limit: Option<usize>,
    pub config: &'a SessionConfig,
}

impl Wanted<'_> {
    /// Places of the wanted columns.
    pub fn columns(&self, schema: &SchemaRef) -> Vec<usize> {
        self.projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect())
    }

    /// Schema of the wanted columns.
    pub fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        Ok(match self.projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => Arc::clone(schema),
        })
    }

    /// A plan over rows in RAM.
    pub fn of_batches(&self, schema: SchemaRef, rows: Vec<RecordBatch>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(MemorySourceConfig::try_new_exec(&[rows], schema, self.projection.cloned())?)
    }
}

/// A table as DataFusion's TableProvider. Filters are left to the plan above.
#[derive(Debug)]
pub struct Provider<T>(pub Arc<T>);

impl<T: Table> Provider<T> {
    /// Wraps a table that is not shared.
    pub fn of(table: T) -> Arc<dyn TableProvider> {
        Arc::new(Self(Arc::new(table)))
    }
}

#[async_trait]
impl<T: Table> TableProvider for Provider<T> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(&Wanted { projection, limit, config: state.config() })
    }
}
