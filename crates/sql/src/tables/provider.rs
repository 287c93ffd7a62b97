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
    /// All of its columns.
    fn schema(&self) -> SchemaRef;

    /// A plan whose rows have the columns that are wanted.
    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>>;
}

/// What a query wants of a table.
pub struct Wanted<'a> {
    /// The places of the columns, in the order that they are wanted in; `None`: all of them.
    projection: Option<&'a Vec<usize>>,
    /// The query takes no more rows than so many.
    pub limit: Option<usize>,
    pub config: &'a SessionConfig,
}

impl Wanted<'_> {
    /// The places of the columns that are wanted of a table.
    pub fn columns(&self, schema: &SchemaRef) -> Vec<usize> {
        self.projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect())
    }

    /// The columns that are wanted of a table.
    pub fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        Ok(match self.projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => Arc::clone(schema),
        })
    }

    /// A plan of rows that are in RAM.
    pub fn of_batches(&self, schema: SchemaRef, rows: Vec<RecordBatch>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(MemorySourceConfig::try_new_exec(&[rows], schema, self.projection.cloned())?)
    }
}

/// A table as DataFusion wants one. Filters are left to the plan above.
#[derive(Debug)]
pub struct Provider<T>(pub Arc<T>);

impl<T: Table> Provider<T> {
    /// A table that nobody else has.
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
