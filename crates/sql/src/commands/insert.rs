//! Rows for tables in RAM: those of CREATE TABLE .. AS, of INSERT with a FORMAT, and what DEFAULT says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use granary_dict::{DataType, Format, RowReader};

use crate::catalogue::{LocalTable, Missing, View};
use crate::error::{Error, Result};
use crate::format::shown_name;
use crate::query;
use crate::session::Session;
use crate::statement::{Column, CreateTable, CreateView, Rows};
use crate::tables::local as tables;
use crate::types::{CLICKHOUSE_TYPE, type_name};

/// CREATE TABLE, with or without AS.
pub async fn create_table(session: &Session, statement: CreateTable, text: &str) -> Result<()> {
    let catalogue = session.catalogue();
    let database = statement.name.database.unwrap_or_else(|| session.database());
    let name = statement.name.name;
    if statement.exists == Missing::IsFine && catalogue.entry(&database, &name).is_some() {
        return Ok(());
    }
    if let Some(dictionary) = &statement.dictionary {
        let table = dictionary_table(session, dictionary, &statement.columns, text).await?;
        table.set_comment(statement.comment);
        return catalogue.create_table(&database, &name, table, statement.exists);
    }
    let columns = statement.columns.iter();
    let defaults = columns.clone().filter_map(|column| Some((column.name.clone(), column.default.clone()?)));
    let mut defaults: Vec<(String, String)> = defaults.collect();
    let declared = declared(session, &statement.columns).await?;
    let mut rows: Vec<RecordBatch> = Vec::new();
    let schema = match statement.rows {
        Rows::None => declared,
        Rows::Like(other) => {
            let from = other.database.unwrap_or_else(|| session.database());
            let other = catalogue.local_table(&from, &other.name)?;
            defaults.clone_from(&other.defaults);
            other.schema()
        }
        Rows::Query { head } => {
            let mut output = query::run_behind(session, text, head).await?;
            while let Some(batch) = output.next().await {
                rows.push(batch?);
            }
            if declared.fields().is_empty() { found(&output.schema, &rows)? } else { declared }
        }
    };
    let table = LocalTable::new(statement.engine, text.to_owned(), schema, defaults);
    let batches = rows.iter().map(|batch| tables::row_batch(&table.schema(), None, batch));
    table.insert(batches.collect::<Result<_>>()?);
    table.set_comment(statement.comment);
    catalogue.create_table(&database, &name, table, statement.exists)
}

/// The columns that a statement declares. One without a type has that of its DEFAULT.
async fn declared(session: &Session, columns: &[Column]) -> Result<SchemaRef> {
    let typed =
        columns.iter().filter_map(|column| Some((column.name.as_str(), column.data_type.as_deref()?)));
    let typed = tables::schema(typed)?;
    if typed.fields().len() == columns.len() {
        return Ok(typed);
    }
    let list: Vec<String> = columns.iter().map(|column| shown_as(column, &typed)).collect();
    let rows = with_rows(session, RecordBatch::new_empty(typed), &list.join(", ")).await?;
    found(&rows.schema(), &[])
}

/// A column among others, or its DEFAULT under its name.
fn shown_as(column: &Column, typed: &SchemaRef) -> String {
    match &column.default {
        Some(default) if typed.index_of(&column.name).is_err() => {
            format!("({default}) AS {}", quoted(&column.name))
        }
        _ => quoted(&column.name),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

/// CREATE VIEW. What is wrong with its query is said now.
pub async fn create_view(session: &Session, statement: CreateView, text: &str) -> Result<()> {
    let catalogue = session.catalogue();
    let database = statement.name.database.unwrap_or_else(|| session.database());
    let name = statement.name.name;
    if statement.exists == Missing::IsFine && catalogue.entry(&database, &name).is_some() {
        return Ok(());
    }
    let view = View { text: text.to_owned(), head: statement.head, database: session.database() };
    let schema = query::columns(session, text, statement.head).await?;
    let table = LocalTable::of_view("View", text.to_owned(), schema, view);
    match statement.replaces {
        true => catalogue.replace_view(&database, &name, table),
        false => catalogue.create_table(&database, &name, table, statement.exists),
    }
}

/// ENGINE = Dictionary(..): a view of a dictionary.
async fn dictionary_table(
    session: &Session,
    dictionary: &str,
    columns: &[Column],
    create: &str,
) -> Result<LocalTable> {
    let is_name = |c: char| c.is_alphanumeric() || " ._`".contains(c);
    let name = match dictionary.chars().all(is_name) {
        true => dictionary.replace([' ', '`'], ""),
        false => one_text(session, dictionary).await?,
    };
    let name = name.split('.').map(quoted).collect::<Vec<_>>().join(".");
    let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let list = if list.is_empty() { "*".to_owned() } else { list.join(", ") };
    let view = View { text: format!("SELECT {list} FROM {name}"), head: 0, database: session.database() };
    let schema = query::columns(session, &view.text, 0).await?;
    Ok(LocalTable::of_view("Dictionary", create.to_owned(), schema, view))
}

/// The text that a constant expression is.
async fn one_text(session: &Session, expression: &str) -> Result<String> {
    let mut output = query::run(session, &format!("SELECT toString({expression})")).await?;
    let batch = output.next().await.transpose()?;
    let text = batch.and_then(|batch| {
        batch
            .column(0)
            .as_string_opt::<i32>()
            .filter(|texts| texts.len() == 1)
            .map(|texts| texts.value(0).to_owned())
    });
    text.ok_or_else(|| Error::bad_arguments(format!("{expression} does not name a dictionary")))
}

/// The columns that a query's rows are. Most functions here say that they may give NULL, and do not: a column that is
/// not declared to be Nullable is it only if there is a NULL in it.
fn found(schema: &SchemaRef, rows: &[RecordBatch]) -> Result<SchemaRef> {
    let column = |(place, field): (usize, &Arc<Field>)| {
        let declared =
            field.metadata().get(CLICKHOUSE_TYPE).is_some_and(|name| name.starts_with("Nullable("));
        let nullable = declared || rows.iter().any(|batch| batch.column(place).logical_null_count() > 0);
        let field = field.as_ref().clone().with_nullable(nullable);
        (shown_name(field.name()).to_owned(), type_name(&field))
    };
    let columns: Vec<(String, String)> = schema.fields().iter().enumerate().map(column).collect();
    tables::schema(columns.iter().map(|(name, data_type)| (name.as_str(), data_type.as_str())))
}

/// INSERT .. FORMAT: the rows that stand behind it.
pub async fn data(
    session: &Session,
    table: &LocalTable,
    columns: Option<Vec<String>>,
    format: &str,
    bytes: &[u8],
) -> Result<()> {
    let format = Format::named(format).ok_or_else(|| {
        let known: Vec<&str> = Format::names().collect();
        Error::unknown_format(format!("Rows cannot be read as {format}; use {}", known.join(", ")))
    })?;
    let schema = table.schema();
    let columns = columns.unwrap_or_else(|| schema.fields().iter().map(|f| f.name().clone()).collect());
    let typed = |name: &String| -> Result<(String, DataType)> {
        let field = schema.field_with_name(name);
        let field =
            field.map_err(|_| Error::no_such_column(format!("No such column {name} in the table")))?;
        let data_type = field.metadata().get(CLICKHOUSE_TYPE).map_or("String", String::as_str);
        Ok((name.clone(), DataType::parse(data_type)?))
    };
    let typed: Vec<(String, DataType)> = columns.iter().map(typed).collect::<Result<_>>()?;
    let arrays = RowReader::of_columns(format, &typed).read_all(bytes)?;
    let fields = typed.iter().zip(&arrays).map(|((name, data_type), array)| {
        let metadata = [(CLICKHOUSE_TYPE.to_owned(), data_type.inner().to_string())].into();
        Field::new(name, array.data_type().clone(), true).with_metadata(metadata)
    });
    let fields = Schema::new(fields.collect::<Vec<_>>());
    let batch = RecordBatch::try_new(Arc::new(fields), arrays)?;
    if batch.num_rows() > 0 {
        table.insert(vec![rows_of(session, table, Some(&columns), &batch).await?]);
    }
    Ok(())
}

/// Rows of the table: a column that was not given is what its DEFAULT says of the others.
pub async fn rows_of(
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
    // A format whose rows need not have all columns leaves NULLs where a column is missing altogether.
    let is_default = |name: &String| table.defaults.iter().any(|(column, _)| column == name);
    let is_absent = |array: &ArrayRef| !array.is_empty() && array.logical_null_count() == array.len();
    let takes_null = |name: &String| schema.field_with_name(name).is_ok_and(Field::is_nullable);
    let given: Vec<usize> = (0..names.len())
        .filter(|&i| !is_default(&names[i]) || takes_null(&names[i]) || !is_absent(batch.column(i)))
        .collect();
    let given_names: Vec<String> = given.iter().map(|&i| names[i].clone()).collect();
    let missing: Vec<&(String, String)> =
        table.defaults.iter().filter(|(name, _)| !given_names.contains(name)).collect();
    if missing.is_empty() {
        return tables::row_batch(&schema, columns, batch);
    }
    let places = given_names.iter().map(|name| {
        schema
            .index_of(name)
            .map_err(|_| Error::no_such_column(format!("No such column {name} in the table")))
    });
    let part = Arc::new(schema.project(&places.collect::<Result<Vec<_>>>()?)?);
    let known = tables::row_batch(&part, Some(&given_names), &batch.project(&given)?)?;
    let list = given_names
        .iter()
        .map(|name| quoted(name))
        .chain(missing.iter().map(|(name, expression)| format!("({expression}) AS {}", quoted(name))));
    let list = list.collect::<Vec<_>>().join(", ");
    let names = [given_names.clone(), missing.iter().map(|(name, _)| name.clone()).collect()].concat();
    let rows = with_rows(session, known, &list).await?;
    tables::row_batch(&schema, Some(&names), &rows)
}

/// `SELECT list` of some rows, in their order.
async fn with_rows(session: &Session, rows: RecordBatch, list: &str) -> Result<RecordBatch> {
    // Statements of one session may run at once: no two have the same name.
    static NAMES: AtomicU64 = AtomicU64::new(1);
    let name = format!("rows {}", NAMES.fetch_add(1, Ordering::Relaxed));
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    session.add_table(&name, Arc::new(table))?;
    let output = query::run(session, &format!("SELECT {list} FROM `{name}`")).await;
    session.remove_file(&name)?;
    let mut output = output?;
    let mut batches = Vec::new();
    while let Some(batch) = output.next().await {
        batches.push(batch?);
    }
    Ok(concat_batches(&output.schema, &batches)?)
}
