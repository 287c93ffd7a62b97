//! CREATE TABLE, with or without AS, and CREATE VIEW.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use granary_dialect::statement::{
    ColumnDefinition, CreateTable, CreateView, Engine, OnConflict, Rows, quoted, split,
};
use granary_dialect::text::shown_name;
use granary_dialect::types::{CLICKHOUSE_TYPE, type_name};
use granary_dialect::{Error, Result};
use granary_dict::{DataType, Times};

use super::engines;
use super::insert::with_rows;
use crate::catalogue::{Entry, LocalTable, VIEW, View, definition_columns};
use crate::query;
use crate::session::Session;
use crate::tables::local as tables;
use crate::tables::provider::Table;

/// CREATE TABLE.
pub async fn table(session: &Session, statement: CreateTable, text: &str) -> Result<()> {
    let catalogue = session.catalogue();
    let database = statement.name.database.unwrap_or_else(|| session.database());
    let name = statement.name.name;
    if statement.if_exists == OnConflict::Ignore && catalogue.entry(&database, &name).is_some() {
        return Ok(());
    }
    engines::check(&statement.engine)?;
    let clauses = [vec![engine_clause(&statement.engine)], statement.storage].concat();
    if statement.engine.name == engines::DICTIONARY {
        let [dictionary] = statement.engine.arguments.as_slice() else {
            let what = "ENGINE = Dictionary requires one argument: the dictionary's name";
            return Err(Error::wrong_argument_count(what));
        };
        let table = dictionary_table(session, dictionary, &statement.columns, clauses).await?;
        table.set_comment(statement.comment);
        return catalogue.create_table(&database, &name, table, statement.if_exists);
    }
    let mut defaults = defaults(&statement.columns);
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
    let table = LocalTable::new(statement.engine.name, clauses, schema, defaults);
    table.set_comment(statement.comment);
    let batches = rows.iter().map(|batch| tables::row_batch(&table.schema(), None, batch));
    table.insert(batches.collect::<Result<_>>()?);
    catalogue.create_table(&database, &name, table, statement.if_exists)
}

/// The columns that have a DEFAULT, and its expression.
fn defaults(columns: &[ColumnDefinition]) -> Vec<(String, String)> {
    columns.iter().filter_map(|column| Some((column.name.clone(), column.default.clone()?))).collect()
}

/// ENGINE as ClickHouse spells it: without empty parentheses.
fn engine_clause(engine: &Engine) -> String {
    match engine.arguments.as_slice() {
        [] => format!("ENGINE = {}", engine.name),
        arguments => format!("ENGINE = {}({})", engine.name, arguments.join(", ")),
    }
}

/// The columns that a statement declares. A column without a type has the type of its DEFAULT.
async fn declared(session: &Session, columns: &[ColumnDefinition]) -> Result<SchemaRef> {
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

/// A column's name or, for a column without a type, its DEFAULT under that name.
fn shown_as(column: &ColumnDefinition, typed: &SchemaRef) -> String {
    match &column.default {
        Some(default) if typed.index_of(&column.name).is_err() => {
            format!("({default}) AS {}", quoted(&column.name))
        }
        _ => quoted(&column.name),
    }
}

/// CREATE VIEW. Errors in its query are reported now.
pub async fn view(session: &Session, statement: CreateView, text: &str) -> Result<()> {
    let catalogue = session.catalogue();
    let database = statement.name.database.unwrap_or_else(|| session.database());
    let name = statement.name.name;
    if statement.if_exists == OnConflict::Ignore && catalogue.entry(&database, &name).is_some() {
        return Ok(());
    }
    let view = View { text: text.to_owned(), head: statement.head, database: session.database() };
    let schema = query::columns(session, text, statement.head).await?;
    let table = LocalTable::of_view(VIEW, vec![as_query(text, statement.head)?], schema, view);
    match statement.replaces {
        true => catalogue.replace_view(&database, &name, table),
        false => catalogue.create_table(&database, &name, table, statement.if_exists),
    }
}

/// AS, and the query after the first `head` tokens of a statement.
fn as_query(text: &str, head: usize) -> Result<String> {
    Ok(format!("AS {}", split(text)?.swap_remove(0).spelled_behind(head)))
}

/// ENGINE = Dictionary(..): a view of a dictionary.
async fn dictionary_table(
    session: &Session,
    dictionary: &str,
    columns: &[ColumnDefinition],
    clauses: Vec<String>,
) -> Result<LocalTable> {
    let is_name = |c: char| c.is_alphanumeric() || " ._`".contains(c);
    let name = match dictionary.chars().all(is_name) {
        true => dictionary.replace([' ', '`'], ""),
        false => one_text(session, dictionary).await?,
    };
    let full_name = session.named(&name)?;
    session.catalogue().check_dictionary(&full_name)?;
    let entry = session.catalogue().entry(&full_name.database, &full_name.name);
    if let Some(definition) = entry.as_ref().and_then(Entry::definition) {
        let known = definition_columns(definition, Times::Hidden).0;
        columns.iter().try_for_each(|column| check_column(column, &known, &name))?;
    }
    // A held `Arc` would count as use by a query.
    drop(entry);
    let name = format!("{}.{}", quoted(&full_name.database), quoted(&full_name.name));
    let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let text = format!("SELECT {} FROM {name}", list.join(", "));
    let view = View { text, head: 0, database: session.database() };
    let schema = query::columns(session, &view.text, 0).await?;
    Ok(LocalTable::of_view(engines::DICTIONARY, clauses, schema, view))
}

/// Refuses a column that the dictionary does not have under this name and with this type.
fn check_column(column: &ColumnDefinition, known: &SchemaRef, dictionary: &str) -> Result<()> {
    let wanted = column.data_type.as_deref().map(DataType::parse_column).transpose()?;
    let wanted = wanted.map(|data_type| data_type.to_string()).unwrap_or_default();
    let is_wanted = |field: &Arc<Field>| (field.name(), type_name(field)) == (&column.name, wanted.clone());
    if known.fields().iter().any(is_wanted) {
        return Ok(());
    }
    let known: Vec<String> =
        known.fields().iter().map(|field| format!("{} {}", quoted(field.name()), type_name(field))).collect();
    Err(Error::there_is_no_column(format!(
        "Not found column {} {wanted} in dictionary {dictionary}. There are only columns {}",
        column.name,
        known.join(", ")
    )))
}

/// The text that a constant expression evaluates to.
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

/// The columns of a query's rows. Most functions here declare NULL without returning it: a column that is not declared
/// Nullable becomes so only if it has a NULL.
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
