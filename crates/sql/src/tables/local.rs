//! Conversion of inserted rows to the types of a table in RAM.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, Scalar, UInt64Array, new_null_array};
use datafusion::arrow::compute::{cast, is_not_null, kernels::zip::zip};
use datafusion::arrow::datatypes::{DataType as Arrow, Decimal128Type, Field, Schema, SchemaRef};
use granary_dialect::functions::{clamped, convert, default_of, exact, inserted};
use granary_dialect::types::{CLICKHOUSE_TYPE, declared, is_bounded};
use granary_dialect::{Error, Result};
use granary_dict::DataType;

/// The schema of columns with ClickHouse's types.
///
/// # Errors
/// UNKNOWN_TYPE.
pub fn schema<'a>(columns: impl Iterator<Item = (&'a str, &'a str)>) -> Result<SchemaRef> {
    let field = |(name, text): (&str, &str)| -> Result<Field> {
        let data_type = DataType::parse_column(text)?;
        let metadata = [(CLICKHOUSE_TYPE.to_owned(), data_type.to_string())].into();
        Ok(Field::new(name, data_type.to_arrow(), data_type.is_nullable()).with_metadata(metadata))
    };
    Ok(Arc::new(Schema::new(columns.map(field).collect::<Result<Vec<_>>>()?)))
}

/// Rows of the table: each column converted, with defaults for columns not given, and for NULL in columns that are not
/// Nullable.
///
/// # Errors
/// A wrong number of columns, and values that a column's type does not have.
pub fn row_batch(schema: &SchemaRef, columns: Option<&[String]>, rows: &RecordBatch) -> Result<RecordBatch> {
    let names: Vec<&str> = match columns {
        Some(columns) => columns.iter().map(String::as_str).collect(),
        None => schema.fields().iter().map(|field| field.name().as_str()).collect(),
    };
    if names.len() != rows.num_columns() {
        let (wanted, given) = (names.len(), rows.num_columns());
        return Err(Error::wrong_column_count(format!("Expected {wanted} columns, got {given}")));
    }
    if let Some(unknown) = names.iter().find(|name| schema.index_of(name).is_err()) {
        return Err(Error::no_such_column(format!("No such column {unknown} in the table")));
    }
    if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        return Err(Error::duplicate_column(format!("Column {} specified more than once", twice.1)));
    }
    let source = rows.schema();
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        let to = field.data_type();
        let given = match names.iter().position(|name| name == field.name()) {
            // A literal of VALUES is read as Float64 here, but in ClickHouse as the column's type.
            Some(place) if (rows.column(place).data_type(), to) == (&Arrow::Float64, &Arrow::Float32) => {
                cast(rows.column(place), to)?
            }
            Some(place)
                if to.is_integer()
                    && is_whole(rows.column(place).data_type())
                    && declared(field).is_none() =>
            {
                low_bits(source.field(place), rows.column(place), to)?
            }
            Some(place) if let Some(wanted) = converted_to(field, source.field(place)) => {
                inserted(source.field(place), rows.column(place), &wanted)?
            }
            Some(place) => {
                let exact = exact(source.field(place), rows.column(place), field)?;
                if is_bounded(field) { clamped(exact) } else { exact }
            }
            None => new_null_array(to, rows.num_rows()),
        };
        if field.is_nullable() || given.logical_null_count() == 0 {
            return Ok(given);
        }
        let default = Scalar::new(default_of(field)?.to_array()?);
        Ok(zip(&is_not_null(&given)?, &given, &default)?)
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The type of a column that a number or a time is converted to as by CAST, which drops what the type cannot hold.
fn converted_to(to: &Field, from: &Field) -> Option<DataType> {
    use DataType::{Date32, DateTime, DateTime64, Decimal, Int128, Int256, UInt128};
    let wanted = DataType::parse_column(to.metadata().get(CLICKHOUSE_TYPE)?).ok()?;
    let given = from.data_type();
    let converts = match wanted.inner() {
        Int128 | UInt128 | Int256 | Date32 | DateTime64 { .. } => true,
        Decimal { .. } => matches!(given, Arrow::Timestamp(..)),
        DateTime { .. } => given.is_floating(),
        _ => false,
    };
    let is_same = declared(from).is_some_and(|declared| declared.inner() == wanted.inner());
    let is_number = given.is_numeric() || matches!(given, Arrow::Timestamp(..) | Arrow::FixedSizeBinary(_));
    (converts && is_number && !is_same).then_some(wanted)
}

/// Whether a type holds integers, or what integers become beside others that exceed 64 bits.
fn is_whole(data_type: &Arrow) -> bool {
    data_type.is_integer() || matches!(data_type, Arrow::Decimal128(_, 0))
}

/// Converts integers to another type: one that does not fit keeps its low bits.
fn low_bits(field: &Field, array: &ArrayRef, to: &Arrow) -> Result<ArrayRef> {
    if array.data_type().is_integer() {
        return Ok(convert(field, array, to)?);
    }
    let wide = array.as_primitive::<Decimal128Type>();
    let low: UInt64Array = wide.iter().map(|value| value.map(|value| value as u64)).collect();
    Ok(convert(field, &(Arc::new(low) as ArrayRef), to)?)
}
