//! Tables in RAM: what CREATE TABLE makes, whatever engine it names; and views. They end with the process.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A table and its rows, in the order in which they came.
#[derive(Debug)]
pub struct LocalTable {
    /// As CREATE TABLE said it, for `system.tables`.
    pub engine: String,
    /// The statement that makes it.
    pub create: String,
    /// Columns that have a DEFAULT, and their expressions.
    pub defaults: Vec<(String, String)>,
    /// What is read in place of rows.
    pub view: Option<View>,
    schema: SchemaRef,
    comment: RwLock<String>,
    batches: RwLock<Vec<RecordBatch>>,
}

/// The query that a view is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// A statement, and how many of its tokens stand before the query.
    pub text: String,
    pub head: usize,
    /// The database of names without one.
    pub database: String,
}

impl LocalTable {
    pub fn new(engine: String, create: String, schema: SchemaRef, defaults: Vec<(String, String)>) -> Self {
        Self {
            engine,
            create,
            defaults,
            view: None,
            schema,
            comment: RwLock::default(),
            batches: RwLock::default(),
        }
    }

    /// A view, which has no rows of its own.
    pub fn of_view(engine: &str, create: String, schema: SchemaRef, view: View) -> Self {
        Self { view: Some(view), ..Self::new(engine.to_owned(), create, schema, Vec::new()) }
    }

    /// COMMENT.
    pub fn comment(&self) -> String {
        self.comment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// ALTER .. MODIFY COMMENT.
    pub fn set_comment(&self, comment: String) {
        *self.comment.write().unwrap_or_else(PoisonError::into_inner) = comment;
    }

    /// Adds rows of the table's schema.
    pub fn insert(&self, rows: Vec<RecordBatch>) {
        self.batches.write().unwrap_or_else(PoisonError::into_inner).extend(rows);
    }

    /// TRUNCATE.
    pub fn truncate(&self) {
        self.batches.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.snapshot().iter().map(RecordBatch::num_rows).sum()
    }

    fn snapshot(&self) -> Vec<RecordBatch> {
        self.batches.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl TableProvider for LocalTable {
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
        let rows = [self.snapshot()];
        Ok(MemorySourceConfig::try_new_exec(&rows, Arc::clone(&self.schema), projection.cloned())?)
    }
}
