//! Rows for tables in RAM: those of INSERT with a FORMAT, and what DEFAULT says.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::MemTable;
use granary_dialect::rewrite::secret_name;
use granary_dialect::statement::{ParsedQuery, quoted};
use granary_dialect::types::CLICKHOUSE_TYPE;
use granary_dialect::{Error, Result};
use granary_dict::{DataType, Format, RowReader};

use crate::catalogue::{FullName, LocalTable};
use crate::query;
use crate::session::Session;
use crate::tables::given::Lent;
use crate::tables::local as tables;
use crate::tables::provider::Table;

/// Puts rows where INSERT says.
async fn put(
    session: &Session,
    (database, name): &FullName,
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

/// INSERT of what a query gives: puts these rows, and gives them.
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

/// INSERT .. FORMAT: puts the rows that stand behind it, and gives them.
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
    let schema = session.catalogue().local_table(&to.0, &to.1)?.schema();
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
        put(session, to, Some(&columns), std::slice::from_ref(&batch)).await?;
    }
    Ok(batch)
}

/// Makes rows known to queries under a name of their own.
pub(super) fn lend(session: &Session, schema: SchemaRef, rows: Vec<RecordBatch>) -> Result<Lent> {
    Ok(session.lend(secret_name(), Arc::new(MemTable::try_new(schema, vec![rows])?)))
}

/// Rows of the table: a column that was not given is what its DEFAULT says of the others.
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
    let lent = lend(session, rows.schema(), vec![rows])?;
    let mut output = query::run(session, &format!("SELECT {list} FROM `{}`", lent.name())).await?;
    let mut batches = Vec::new();
    while let Some(batch) = output.next().await {
        batches.push(batch?);
    }
    Ok(concat_batches(&output.schema, &batches)?)
}
