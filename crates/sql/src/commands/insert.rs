//! Rows for tables in RAM: those of INSERT with a FORMAT, and the values of DEFAULT.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::{concat_batches, is_not_null, kernels::zip::zip};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::MemTable;
use datafusion::sql::sqlparser::ast::{Expr, visit_expressions};
use granary_dialect::rewrite::secret_name;
use granary_dialect::statement::{ParsedQuery, parse_expression, quoted};
use granary_dialect::types::CLICKHOUSE_TYPE;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{DataType, Format, RowReader};

use crate::catalogue::LocalTable;
use crate::query;
use crate::session::Session;
use crate::tables::local as tables;
use crate::tables::provider::Table;
use crate::tables::session_tables::TableGuard;

/// Puts rows into the table that INSERT names.
async fn put(
    session: &Session,
    FullName { database, name }: &FullName,
    columns: Option<&[String]>,
    batches: &[RecordBatch],
) -> Result<()> {
    let table = session.catalogue().local_table(database, name)?;
    let mut rows = Vec::with_capacity(batches.len());
    for batch in batches {
        rows.push(rows_of(session, &table, columns, batch).await?);
    }
    table.insert(rows);
    Ok(())
}

/// INSERT of a query's rows: puts them into the table, and returns them.
pub async fn query(
    session: &Session,
    to: &FullName,
    columns: Option<&[String]>,
    parsed: ParsedQuery,
) -> Result<Vec<RecordBatch>> {
    let mut rows = Vec::new();
    let mut output = query::run_parsed(session, parsed).await?;
    while let Some(batch) = output.next().await {
        rows.push(batch?);
    }
    put(session, to, columns, &rows).await?;
    Ok(rows)
}

/// INSERT .. FORMAT: puts the rows that follow it into the table, and returns them.
pub async fn data(
    session: &Session,
    to: &FullName,
    columns: Option<Vec<String>>,
    format: &str,
    bytes: &[u8],
) -> Result<RecordBatch> {
    let format = Format::named(format).ok_or_else(|| {
        let known: Vec<&str> = Format::names().collect();
        Error::unknown_format(format!("Rows cannot be read as {format}; use {}", known.join(", ")))
    })?;
    let schema = session.catalogue().local_table(&to.database, &to.name)?.schema();
    let columns = columns.unwrap_or_else(|| schema.fields().iter().map(|f| f.name().clone()).collect());
    let typed = |name: &String| -> Result<(String, DataType)> {
        let field = schema.field_with_name(name);
        let field =
            field.map_err(|_| Error::no_such_column(format!("No such column {name} in the table")))?;
        let data_type = field.metadata().get(CLICKHOUSE_TYPE).map_or("String", String::as_str);
        Ok((name.clone(), DataType::parse_column(data_type)?))
    };
    let typed: Vec<(String, DataType)> = columns.iter().map(typed).collect::<Result<_>>()?;
    let reader = RowReader::of_columns(format, &typed).within_memory(session.memory_check());
    let arrays = reader.read_all(bytes)?;
    let fields = typed.iter().zip(&arrays).map(|((name, data_type), array)| {
        let metadata = [(CLICKHOUSE_TYPE.to_owned(), data_type.inner().to_string())].into();
        Field::new(name, array.data_type().clone(), true).with_metadata(metadata)
    });
    let fields = Schema::new(fields.collect::<Vec<_>>());
    let batch = RecordBatch::try_new(Arc::new(fields), arrays)?;
    if batch.num_rows() > 0 {
        put(session, to, Some(&columns), std::slice::from_ref(&batch)).await?;
    }
    Ok(batch)
}

/// Makes rows known to queries under a name of their own.
pub(super) fn lend(session: &Session, schema: SchemaRef, rows: Vec<RecordBatch>) -> Result<TableGuard> {
    Ok(session.lend(secret_name(), Arc::new(MemTable::try_new(schema, vec![rows])?)))
}

/// Rows of the table: a missing value is computed by the column's DEFAULT from the row's other columns.
async fn rows_of(
    session: &Session,
    table: &LocalTable,
    columns: Option<&[String]>,
    batch: &RecordBatch,
) -> Result<RecordBatch> {
    let schema = table.schema();
    let all: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let names = columns.unwrap_or(&all);
    if table.defaults.is_empty() || names.len() != batch.num_columns() {
        return tables::row_batch(&schema, columns, batch);
    }
    let lacking = lacking(table, names, batch)?;
    // A column that all rows lack counts as not given.
    let is_given = |&place: &usize| {
        let array = batch.column(place);
        let is_there = array.logical_null_count() < array.len();
        is_there || lacking.iter().all(|column| *column.name != names[place])
    };
    let given: Vec<usize> = (0..names.len()).filter(is_given).collect();
    let given_names: Vec<String> = given.iter().map(|&place| names[place].clone()).collect();
    // A missing value is NULL until the end.
    let field = |(place, field): (usize, &Arc<Field>)| {
        let is_lacking = lacking.iter().any(|column| column.place == place);
        field.as_ref().clone().with_nullable(field.is_nullable() || is_lacking)
    };
    let fields: Vec<Field> = schema.fields().iter().enumerate().map(field).collect();
    let fields = Arc::new(Schema::new(fields));
    let mut rows = tables::row_batch(&fields, Some(&given_names), &batch.project(&given)?)?;
    let mut left: Vec<&Lacking<'_>> = lacking.iter().collect();
    while !left.is_empty() {
        // A DEFAULT may use other columns with a DEFAULT: these are computed first.
        let is_ready = |column: &&Lacking<'_>| {
            left.iter().all(|other| other.place == column.place || !column.looks_at.contains(other.name))
        };
        let (ready, later): (Vec<_>, Vec<_>) = left.iter().copied().partition(is_ready);
        // Columns whose DEFAULTs use each other are computed together, where they see each other as aliases.
        let (ready, later) = if ready.is_empty() { (later, ready) } else { (ready, later) };
        rows = with_defaults(session, &schema, &rows, &ready, &left).await?;
        left = later;
    }
    Ok(RecordBatch::try_new(schema, rows.columns().to_vec())?)
}

/// A column that was not given, in all rows or in some.
struct Lacking<'a> {
    name: &'a String,
    place: usize,
    /// Its DEFAULT.
    expression: &'a str,
    looks_at: Vec<String>,
}

/// The columns with a DEFAULT that rows lack. A format whose rows may omit columns leaves NULL for a missing value; in
/// a Nullable column that is a value, in any other it stands for the DEFAULT.
fn lacking<'a>(table: &'a LocalTable, names: &[String], batch: &RecordBatch) -> Result<Vec<Lacking<'a>>> {
    let schema = table.schema();
    let mut lacking = Vec::new();
    for (name, expression) in &table.defaults {
        let place = schema.index_of(name)?;
        let given = names.iter().position(|given| given == name).map(|given| batch.column(given));
        let has_all = |given: &ArrayRef| schema.field(place).is_nullable() || given.logical_null_count() == 0;
        if !given.is_some_and(has_all) {
            lacking.push(Lacking { name, place, expression, looks_at: names_in(expression) });
        }
    }
    Ok(lacking)
}

/// Names in an expression that may be columns. One that cannot be parsed has none: the query it becomes part of reports
/// that.
fn names_in(expression: &str) -> Vec<String> {
    let mut names = Vec::new();
    let Ok(expression) = parse_expression(expression) else { return names };
    _ = visit_expressions(&expression, |expr: &Expr| {
        match expr {
            Expr::Identifier(name) => names.push(name.value.clone()),
            // An element of a tuple, or a column whose name has a dot.
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                names.extend([parts[0].to_owned(), parts.join(".")]);
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

/// Fills NULLs of some columns with their DEFAULT, computed from columns that no row lacks.
async fn with_defaults(
    session: &Session,
    schema: &SchemaRef,
    rows: &RecordBatch,
    columns: &[&Lacking<'_>],
    lacking: &[&Lacking<'_>],
) -> Result<RecordBatch> {
    let is_known = |place: &usize| lacking.iter().all(|column| column.place != *place);
    let known: Vec<usize> = (0..rows.num_columns()).filter(is_known).collect();
    let known = match known.is_empty() {
        // A table has at least one column.
        true => rows.clone(),
        false => {
            let columns = rows.project(&known)?.columns().to_vec();
            RecordBatch::try_new(Arc::new(schema.project(&known)?), columns)?
        }
    };
    let shown = |column: &&Lacking<'_>| format!("({}) AS {}", column.expression, quoted(column.name));
    let list = columns.iter().map(shown).collect::<Vec<_>>().join(", ");
    let defaults = with_rows(session, known, &list).await?;
    let places: Vec<usize> = columns.iter().map(|column| column.place).collect();
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let defaults = tables::row_batch(&Arc::new(schema.project(&places)?), Some(&names), &defaults)?;
    let mut all = rows.columns().to_vec();
    for (column, default) in columns.iter().zip(defaults.columns()) {
        let given = &all[column.place];
        all[column.place] = zip(&is_not_null(given)?, given, default)?;
    }
    Ok(RecordBatch::try_new(rows.schema(), all)?)
}

/// `SELECT list` over some rows, in their order: on one thread, as several would mix them.
pub(super) async fn with_rows(session: &Session, rows: RecordBatch, list: &str) -> Result<RecordBatch> {
    let lent = lend(session, rows.schema(), vec![rows])?;
    let text = format!("SELECT {list} FROM `{}` SETTINGS max_threads = 1", lent.name());
    let mut output = query::run(session, &text).await?;
    let mut batches = Vec::new();
    while let Some(batch) = output.next().await {
        batches.push(batch?);
    }
    Ok(concat_batches(&output.schema, &batches)?)
}
