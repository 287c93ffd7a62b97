//! Tables in RAM: what CREATE TABLE makes, whatever engine it names; and views. They end with the process.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use granary_dict::{Form, identifier, quote};

use super::join_keys::JoinKeys;
use super::moves::FullName;
use crate::statement::quoted;
use crate::types::type_name;

/// The engine of materialized views.
pub const MATERIALIZED_VIEW: &str = "MaterializedView";
/// The engine of one that is a query and nothing else.
pub const VIEW: &str = "View";

/// A table and its rows, in the order in which they came.
#[derive(Debug)]
pub struct LocalTable {
    /// As CREATE TABLE said it, for `system.tables`.
    pub engine: String,
    /// The clauses behind the columns of the statement that makes it.
    clauses: Vec<String>,
    /// Columns that have a DEFAULT, and their expressions.
    pub defaults: Vec<(String, String)>,
    /// What is read in place of rows.
    pub view: Option<View>,
    /// Where rows go that are inserted, if not into the table itself; they are read there, too.
    pub target: Option<Target>,
    /// Of ENGINE = Join.
    pub join_keys: Option<JoinKeys>,
    /// Of a materialized view.
    feed: RwLock<Option<Feed>>,
    schema: SchemaRef,
    comment: RwLock<String>,
    batches: RwLock<Vec<RecordBatch>>,
}

/// Another table, which has the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Table(FullName),
    /// One that is there for this one alone, and called after it.
    Inner,
}

impl Target {
    /// Its name, of the table that has this one.
    pub fn name(&self, database: &str, name: &str) -> FullName {
        match self {
            Target::Table(target) => target.clone(),
            Target::Inner => (database.to_owned(), format!(".inner.{name}")),
        }
    }
}

/// What a materialized view makes of rows that are inserted into its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    pub source: FullName,
    pub query: View,
    /// AS and the query, as SHOW CREATE has it.
    pub clause: String,
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
            target: None,
            join_keys: None,
            feed: RwLock::default(),
            schema,
            comment: RwLock::default(),
            batches: RwLock::default(),
        }
    }

    /// A view, which has no rows of its own.
    pub fn of_view(engine: &str, clauses: Vec<String>, schema: SchemaRef, view: View) -> Self {
        Self { view: Some(view), ..Self::new(engine.to_owned(), clauses, schema, Vec::new()) }
    }

    /// A table whose rows are another's.
    pub fn over(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// A table of ENGINE = Join.
    pub fn found_by(self, join_keys: Option<JoinKeys>) -> Self {
        Self { join_keys, ..self }
    }

    /// Whether it is a view for DROP VIEW.
    pub fn is_view(&self) -> bool {
        [VIEW, MATERIALIZED_VIEW].contains(&self.engine.as_str())
    }

    /// What a materialized view makes of rows.
    pub fn feed(&self) -> Option<Feed> {
        self.feed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// ALTER .. MODIFY QUERY.
    pub fn set_feed(&self, feed: Feed) {
        *self.feed.write().unwrap_or_else(PoisonError::into_inner) = Some(feed);
    }

    /// The query that is read in its place, under the name that it has.
    pub fn read_as(&self, database: &str, name: &str) -> Option<View> {
        let Some(target) = &self.target else { return self.view.clone() };
        let columns: Vec<String> = self.schema.fields().iter().map(|field| quoted(field.name())).collect();
        let (target_database, target_name) = target.name(database, name);
        let (list, from) =
            (columns.join(", "), format!("{}.{}", quoted(&target_database), quoted(&target_name)));
        let text = format!("SELECT {list} FROM {from}");
        Some(View { text, head: 0, database: target_database })
    }

    /// The statement that makes it, under the name that it has.
    pub fn to_sql(&self, database: &str, name: &str, form: Form) -> String {
        let default = |field: &Field| self.defaults.iter().find(|(column, _)| column == field.name());
        let column = |field: &Arc<Field>| {
            let text = format!("{} {}", quoted(field.name()), type_name(field));
            default(field).map_or(text.clone(), |(_, default)| format!("{text} DEFAULT {default}"))
        };
        let columns: Vec<String> = self.schema.fields().iter().map(column).collect();
        let noun = match self.engine.as_str() {
            VIEW => "VIEW",
            MATERIALIZED_VIEW => "MATERIALIZED VIEW",
            _ => "TABLE",
        };
        let mut sql = format!("CREATE {noun} {}.{}", identifier(database), identifier(name));
        if let (MATERIALIZED_VIEW, Some(Target::Table(target))) = (self.engine.as_str(), &self.target) {
            sql += &format!(" TO {}.{}", identifier(&target.0), identifier(&target.1));
        }
        sql += &form.columns(&columns);
        let comment = Some(self.comment()).filter(|comment| !comment.is_empty());
        let comment = comment.map(|comment| format!("COMMENT {}", quote(&comment)));
        let query = self.feed().map(|feed| feed.clause);
        for clause in self.clauses.iter().chain(&query).chain(&comment) {
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

    /// Adds rows of the table's schema; one of ENGINE = Null keeps none.
    pub fn insert(&self, rows: Vec<RecordBatch>) -> Result<()> {
        if self.engine == "Null" {
            return Ok(());
        }
        let mut batches = self.batches.write().unwrap_or_else(PoisonError::into_inner);
        let rows = match &self.join_keys {
            Some(keys) => keys.kept(&self.schema, &batches, rows)?,
            None => rows,
        };
        batches.extend(rows);
        Ok(())
    }

    /// TRUNCATE.
    pub fn truncate(&self) {
        self.batches.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.snapshot().iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows as they are now.
    pub fn snapshot(&self) -> Vec<RecordBatch> {
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
