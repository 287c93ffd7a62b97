//! Queries: parsed, rewritten, planned by DataFusion, run on all cores.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::TableReference;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::Statement;
use futures::{Stream, StreamExt};
use granary_dialect::plan::{Optimised, optimise, yielding};
use granary_dialect::rewrite::{Extras, Named, WITH_TIMES, keep_aliases, name_behind_wildcards, rewrite};
use granary_dialect::statement::{ParsedQuery, parse_query};
use granary_dialect::text::shown_name;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Helpers, Team};

use crate::catalogue::{DEFAULT_DATABASE, SETTINGS_TABLE, SYSTEM_DATABASE};
use crate::dictionary_joins::dictionary_joins;
use crate::engine::task_context;
use crate::format::Format;
use crate::limits::PARTITION_BATCHES_AHEAD;
use crate::memory::{QueryMemory, QueryPool};
use crate::output::{Limits, Output};
use crate::session::Session;
use crate::settings::{ExplicitSettings, apply, is_on};
use crate::tables::files;
use crate::views;

/// Runs a query.
pub async fn run(session: &Session, text: &str) -> Result<Output> {
    run_behind(session, text, 0).await
}

/// Runs the query after the first `head` tokens of a text.
pub async fn run_behind(session: &Session, text: &str, head: usize) -> Result<Output> {
    run_parsed(session, parse_query(text, head)?).await
}

/// Runs a parsed query.
pub async fn run_parsed(session: &Session, mut parsed: ParsedQuery) -> Result<Output> {
    let settings = [session.settings(), parsed.trailing.settings.clone()].concat();
    if is_on("asterisk_include_materialized_columns", &settings) {
        name_behind_wildcards(&mut parsed.statement, &session.scope());
    }
    let (format, query) = planned_of(session, parsed).await?;
    let limits = Limits::of(query.context.session_config());
    Ok(Output::of_query(format, query, limits))
}

/// The columns of a query's rows.
pub async fn columns(session: &Session, text: &str, head: usize) -> Result<SchemaRef> {
    planned_of(session, parse_query(text, head)?).await.map(|(_, query)| query.schema)
}

type Planned = (Option<Format>, Query);

async fn planned_of(session: &Session, parsed: ParsedQuery) -> Result<Planned> {
    let ParsedQuery { mut statement, named, trailing } = parsed;
    keep_aliases(&mut statement);
    let mut extras = rewrite(&mut statement, named, &session.scope())?;
    views::expand(session, &mut statement, &mut extras)?;
    extras.named.iter().try_for_each(|name| check_read(session, name))?;
    extras.dictionaries.iter().try_for_each(|name| session.catalogue().check_dictionary(name))?;
    extras.format = trailing.format.or(extras.format);
    extras.settings.extend(trailing.settings);
    let format = extras.format.as_deref().map(str::parse).transpose()?;
    // The plan will hold the files; their names are needed only while it is made.
    let mut lent = Vec::with_capacity(extras.files.len());
    for file in &extras.files {
        check_read(session, &Named::File)?;
        let input = file.format.as_deref().map(str::parse).transpose()?;
        let path = session.catalogue().query_file(&file.path)?;
        lent.push(session.lend(file.table.clone(), files::open(&path, input).await?));
    }
    Ok((format, plan(session, statement, &extras).await?))
}

/// Whether the session's user may read a table or dictionary.
fn check_read(session: &Session, named: &Named) -> Result<()> {
    if session.rights().dictionaries.is_none() {
        return Ok(());
    }
    let demands_all = |what: &str| {
        Err(Error::access_denied(format!(
            "{}: Not enough privileges. To {what} one must be allowed to read every dictionary",
            session.user()
        )))
    };
    let FullName { database, name } = match named {
        Named::AnyDictionary => return demands_all("name a dictionary by anything but a constant text"),
        Named::File => return demands_all("read files"),
        Named::Object(name) => name,
    };
    let name = FullName::new(database, name.strip_suffix(WITH_TIMES).unwrap_or(name));
    let text = name.to_string();
    // The functions of dictionaries are given the text, which may be another name's.
    let mut readings = FullName::readings(&text);
    match (name.database.as_str(), name.name.as_str()) {
        // These tables list all dictionaries at once.
        (SYSTEM_DATABASE, "tables" | "columns" | "metrics" | "events" | "named_collections") => {
            demands_all(&format!("read {text}"))
        }
        _ if readings.any(|it| session.catalogue().entry(&it.database, &it.name).is_some()) => {
            session.rights().check_read(session.user(), &text)
        }
        _ => Ok(()),
    }
}

async fn plan(session: &Session, statement: Statement, extras: &Extras) -> Result<Query> {
    let mut state = session.state()?;
    session.check_bounds(&extras.settings)?;
    apply(&extras.settings, state.config_mut())?;
    if extras.named.contains(&Named::Object(FullName::new(SYSTEM_DATABASE, SETTINGS_TABLE))) {
        let said = [session.settings(), extras.settings.clone()].concat();
        state.config_mut().set_extension(Arc::new(ExplicitSettings(said)));
    }
    if session.rights().dictionaries.is_some() {
        // For `system.dictionaries`.
        state.config_mut().set_extension(Arc::new(session.rights().clone()));
    }
    // From here on settings are fixed: functions see these.
    state.mark_start_execution();
    let statement = PlannedStatement::Statement(Box::new(statement));
    let tables = state.resolve_table_references(&statement)?;
    let plan = match state.statement_to_plan(statement).await {
        Ok(plan) => plan,
        Err(error) => {
            let unknown = unknown_table(&state, &tables, &extras.named).await;
            return Err(unknown.unwrap_or_else(|| error.into()));
        }
    };
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&plan)
        .map_err(|error| Error::not_implemented(error.strip_backtrace()))?;
    let Optimised { plan, declared } = optimise(&mut state, plan, dictionary_joins)?;
    let plan = yielding(state.query_planner().create_physical_plan(&plan, &state).await?)?;
    let (context, pool) = task_context(&state, session.memory());
    session.engine.return_state(state);
    let schema = as_declared(&plan.schema(), &declared);
    let memory = Arc::clone(session.memory());
    let helpers = session.catalogue().helpers().clone();
    Ok(Query { plan, schema, context, pool, memory, helpers })
}

/// The first of the tables named by a statement that does not exist.
async fn unknown_table(state: &SessionState, tables: &[TableReference], named: &[Named]) -> Option<Error> {
    let options = &state.config_options().catalog;
    let databases = state.catalog_list().catalog(&options.default_catalog)?;
    for table in tables {
        let (database, table) = (table.schema().unwrap_or(&options.default_schema), table.table());
        // Other names are table functions.
        if named.contains(&Named::Object(FullName::new(database, table)))
            && let Ok(None) = databases.schema(database)?.table(table).await
        {
            let table = table.strip_suffix(WITH_TIMES).unwrap_or(table);
            let shown =
                if database == DEFAULT_DATABASE { table.to_owned() } else { format!("{database}.{table}") };
            return Some(Error::unknown_table(format!("Unknown table expression identifier '{shown}'")));
        }
    }
    None
}

/// The plan's columns, with the names and nullability that the query declares. The plan no longer knows that moved
/// parts of the query are never NULL.
fn as_declared(given: &SchemaRef, declared: &SchemaRef) -> SchemaRef {
    let field = |(given, declared): (&FieldRef, &FieldRef)| {
        given.as_ref().clone().with_name(declared.name()).with_nullable(declared.is_nullable())
    };
    let fields: Vec<Field> = given.fields().iter().zip(declared.fields()).map(field).collect();
    if fields.len() < given.fields().len() {
        return Arc::clone(given);
    }
    Arc::new(Schema::new_with_metadata(fields, given.metadata().clone()))
}

/// Refuses NULL in a column that is not Nullable: formats have no place for it.
fn check_nulls(schema: &SchemaRef, batch: &RecordBatch) -> Result<()> {
    let columns = schema.fields().iter().zip(batch.columns());
    match columns.into_iter().find(|(field, column)| !field.is_nullable() && column.null_count() > 0) {
        None => Ok(()),
        Some((field, _)) => {
            let name = shown_name(field.name());
            Err(Error::logical_error(format!("There is NULL in column {name}, which is not Nullable")))
        }
    }
}

/// Maximum number of parts of a plan that run in parallel.
fn partitions_max(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below = plan.children().into_iter().map(partitions_max).max().unwrap_or(1);
    below.max(plan.output_partitioning().partition_count())
}

type Batch = datafusion::common::Result<RecordBatch>;

/// A query that can be run.
pub struct Query {
    pub plan: Arc<dyn ExecutionPlan>,
    pub schema: SchemaRef,
    context: Arc<TaskContext>,
    pool: Arc<QueryPool>,
    memory: Arc<QueryMemory>,
    helpers: Helpers,
}

impl Query {
    /// All partitions in order. They run ahead on other threads: rows keep the order of their table, all cores work,
    /// and the reader may be busy writing.
    pub fn ahead(&self) -> Result<SendableRecordBatchStream> {
        let team = self.team();
        let partitions = 0..self.partitions();
        let streams = partitions.map(|i| self.partition_ahead(i)).collect::<Result<Vec<_>>>()?;
        let all = futures::stream::iter(streams).flatten().inspect(move |_| _ = &team);
        let all = self.bounded(all);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.plan.schema(), all)))
    }

    /// All batches, on the reading thread if there is one partition. That thread may wait for sources; nothing is
    /// handed between threads, and a query that waits holds only one.
    pub fn here(&self) -> Result<SendableRecordBatchStream> {
        match self.partitions() {
            1 => {
                let team = self.team();
                let all = self.plan.execute(0, Arc::clone(&self.context))?.inspect(move |_| _ = &team);
                let all = self.bounded(all);
                Ok(Box::pin(RecordBatchStreamAdapter::new(self.plan.schema(), all)))
            }
            _ => self.ahead(),
        }
    }

    /// The same batches, with an error when queries exceed their memory: no operator reserves an answer's buffers.
    fn bounded<S: Stream<Item = Batch>>(&self, batches: S) -> impl Stream<Item = Batch> + use<S> {
        let (memory, pool) = (Arc::clone(&self.memory), Arc::clone(&self.pool));
        let schema = Arc::clone(&self.schema);
        batches.map(move |batch| {
            let batch = batch.map_err(|error| pool.explain(error))?;
            check_nulls(&schema, &batch)?;
            memory.check(0).map(|()| batch)
        })
    }

    /// The query's threads, made known to dictionaries while it runs.
    fn team(&self) -> Team {
        self.helpers.team(partitions_max(&self.plan))
    }

    fn partitions(&self) -> usize {
        self.plan.output_partitioning().partition_count()
    }

    fn partition_ahead(&self, partition: usize) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.plan.schema(), PARTITION_BATCHES_AHEAD);
        let sender = builder.tx();
        let mut stream = self.plan.execute(partition, Arc::clone(&self.context))?;
        builder.spawn(async move {
            while let Some(batch) = stream.next().await {
                let failed = batch.is_err();
                if sender.send(batch).await.is_err() || failed {
                    break;
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}
