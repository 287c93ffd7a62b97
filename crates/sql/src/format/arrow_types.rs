//! Arrow's types as ClickHouse writes them, of columns and of their parts: a DateTime is a number, a FixedString and an
//! integer of more than 64 bits are bytes, and a UUID is one by an extension.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, ListArray, MapArray, RecordBatch, StructArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use granary_dialect::types::{declared, fixed_bytes, is_bounded, said};
use granary_dict::DataType as ClickHouseType;

/// The schema of a stream or a file.
pub fn written_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(written).collect::<Vec<_>>()))
}

/// The field of a stream or a file. ClickHouse's type is not said: Arrow's is as there.
fn written(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 if let Some(width) = fixed_width(field) => DataType::FixedSizeBinary(width),
        DataType::Decimal256(..) if let Some(width) = wide_bytes(field) => DataType::FixedSizeBinary(width),
        DataType::Timestamp(TimeUnit::Second, _) if is_bounded(field) => DataType::UInt32,
        DataType::Timestamp(unit, None) => DataType::Timestamp(*unit, Some("UTC".into())),
        DataType::Boolean if !is_bool(field) => DataType::UInt8,
        DataType::List(item) => DataType::List(written(item)),
        DataType::Map(entry, ordered) => DataType::Map(written(entry), *ordered),
        DataType::Struct(items) => DataType::Struct(items.iter().map(written).collect()),
        other => other.clone(),
    };
    let metadata = if is_uuid(field) { uuid_metadata() } else { HashMap::new() };
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
}

/// Whether a field is a Bool; otherwise its truth values are numbers.
pub fn is_bool(field: &Field) -> bool {
    said(field).is_some_and(|name| name.contains("Bool"))
}

/// The width of a FixedString.
pub fn fixed_width(field: &Field) -> Option<i32> {
    fixed_bytes(field).and_then(|width| i32::try_from(width).ok())
}

/// The bytes of an integer of more than 64 bits.
fn wide_bytes(field: &Field) -> Option<i32> {
    match declared(field)?.inner() {
        ClickHouseType::Int128 | ClickHouseType::UInt128 => Some(16),
        ClickHouseType::Int256 => Some(32),
        _ => None,
    }
}

/// Whether a field holds UUIDs.
pub fn is_uuid(field: &Field) -> bool {
    field.data_type() == &DataType::FixedSizeBinary(16) && declared(field).is_none()
}

fn uuid_metadata() -> HashMap<String, String> {
    let pairs = [
        ("ARROW:extension:name", "arrow.uuid"),
        ("ARROW:extension:metadata", ""),
        ("PARQUET:logical_type", "UUID"),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The rows of a batch under a schema as it is written.
///
/// # Errors
/// A value that the type written does not have.
pub fn written_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(array, field)| converted(array, field.data_type()));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn converted(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    Ok(match (array.data_type(), wanted) {
        (given, wanted) if given == wanted => Arc::clone(array),
        (DataType::Utf8, DataType::FixedSizeBinary(_)) => cast(&cast(array, &DataType::Binary)?, wanted)?,
        (DataType::Decimal256(..), DataType::FixedSizeBinary(width)) => bytes(array, *width)?,
        (DataType::Timestamp(TimeUnit::Second, _), DataType::UInt32) => {
            cast(&cast(array, &DataType::Int64)?, wanted)?
        }
        // Only the zone is another one: the moments stay.
        (DataType::Timestamp(given, _), DataType::Timestamp(unit, _)) if given == unit => {
            cast(&cast(array, &DataType::Int64)?, wanted)?
        }
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let items = converted(list.values(), item.data_type())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?)
        }
        (DataType::Map(..), DataType::Map(entry, ordered)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = converted(&entries, entry.data_type())?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(entry), offsets, entries, nulls, *ordered)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let tuples = array.as_struct();
            let elements = tuples.columns().iter().zip(fields);
            let elements = elements.map(|(element, field)| converted(element, field.data_type()));
            let elements = elements.collect::<Result<Vec<_>, _>>()?;
            let nulls = tuples.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields.clone(), elements, nulls, tuples.len())?)
        }
        _ => cast(array, wanted)?,
    })
}

/// The bytes of integers, the lowest first.
fn bytes(array: &ArrayRef, width: i32) -> Result<ArrayRef, ArrowError> {
    let kept = usize::try_from(width).unwrap_or_default();
    let numbers = array.as_primitive::<Decimal256Type>().iter();
    let values = numbers.map(|number| number.map(|number| number.to_le_bytes()[..kept].to_vec()));
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, width)?))
}
