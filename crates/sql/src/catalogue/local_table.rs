//! Tables in RAM, made by CREATE TABLE whatever engine it names, and views. They end with the process.

use std::sync::{Arc, PoisonError, RwLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use granary_dialect::statement::quoted;
use granary_dialect::types::type_name;
use granary_dict::{Form, identifier, quote};

use crate::tables::provider::{Table, Wanted};

/// The engine of views.
pub const VIEW: &str = "View";

/// A table and its rows, in the order in which they came.
#[derive(Debug)]
pub struct LocalTable {
    /// The engine as CREATE TABLE named it, for `system.tables`.
    pub engine: String,
    /// The clauses after the columns in the statement that makes it.
    clauses: Vec<String>,
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
    /// A statement, and the number of its tokens before the query.
    pub text: String,
    pub head: usize,
    /// The database of names without one.
    pub database: String,
}

impl LocalTable {
    pub fn new(
        engine: String,
        clauses: Vec<String>,
        schema: SchemaRef,
        defaults: Vec<(String, String)>,
    ) -> Self {
        Self {
            engine,
            clauses,
            defaults,
            view: None,
            schema,
            comment: RwLock::default(),
            batches: RwLock::default(),
        }
    }

    /// A view, which has no rows of its own.
    pub fn of_view(engine: &str, clauses: Vec<String>, schema: SchemaRef, view: View) -> Self {
        Self { view: Some(view), ..Self::new(engine.to_owned(), clauses, schema, Vec::new()) }
    }

    /// Whether it is a view for DROP VIEW.
    pub fn is_view(&self) -> bool {
        self.engine == VIEW
    }

    /// The statement that makes it, under the given name.
    pub fn to_sql(&self, database: &str, name: &str, form: Form) -> String {
        let default = |field: &Field| self.defaults.iter().find(|(column, _)| column == field.name());
        let column = |field: &Arc<Field>| {
            let text = format!("{} {}", quoted(field.name()), type_name(field));
            default(field).map_or(text.clone(), |(_, default)| format!("{text} DEFAULT {default}"))
        };
        let columns: Vec<String> = self.schema.fields().iter().map(column).collect();
        let noun = if self.is_view() { "VIEW" } else { "TABLE" };
        let mut sql = format!("CREATE {noun} {}.{}", identifier(database), identifier(name));
        sql += &form.columns(&columns);
        let comment = Some(self.comment()).filter(|comment| !comment.is_empty());
        let comment = comment.map(|comment| format!("COMMENT {}", quote(&comment)));
        for clause in self.clauses.iter().chain(&comment) {
            sql.push(form.between());
            sql += clause;
        }
        sql
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

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.snapshot().iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows as they are now.
    pub fn snapshot(&self) -> Vec<RecordBatch> {
        self.batches.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Table for LocalTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        wanted.of_batches(Arc::clone(&self.schema), self.snapshot())
    }
}
