//! Rows for tables in RAM: those of INSERT with a FORMAT, and what DEFAULT says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use granary_dict::{DataType, Format, RowReader};

use crate::catalogue::LocalTable;
use crate::error::{Error, Result};
use crate::query;
use crate::session::Session;
use crate::tables::local as tables;
use crate::types::CLICKHOUSE_TYPE;

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
        Ok((name.clone(), DataType::parse_column(data_type)?))
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
pub(super) async fn with_rows(session: &Session, rows: RecordBatch, list: &str) -> Result<RecordBatch> {
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

/// A name in the quotes of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
