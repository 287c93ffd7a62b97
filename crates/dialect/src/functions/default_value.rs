//! The default value of a type.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, ListArray, MapArray, StructArray, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use crate::types::plain_field_name;

/// Zero, an empty text, an empty array or map, a tuple of such values. DataFusion's own default drops the metadata of
/// fields within arrays and tuples, and has none for maps.
pub fn default_value(data_type: &DataType) -> Result<ScalarValue> {
    let empty = OffsetBuffer::from_lengths([0]);
    Ok(match data_type {
        DataType::List(item) => {
            let items = new_empty_array(item.data_type());
            ScalarValue::List(Arc::new(ListArray::try_new(Arc::clone(item), empty, items, None)?))
        }
        DataType::Map(entry, ordered) => {
            let entries = new_empty_array(entry.data_type()).as_struct().clone();
            ScalarValue::Map(Arc::new(MapArray::try_new(Arc::clone(entry), empty, entries, None, *ordered)?))
        }
        DataType::Struct(fields) => {
            let elements = fields.iter().map(|field| default_element(field)?.to_array());
            let elements = elements.collect::<Result<Vec<_>>>()?;
            let row = StructArray::try_new_with_length(fields.clone(), elements, None, 1)?;
            ScalarValue::Struct(Arc::new(row))
        }
        other => ScalarValue::new_default(other)?,
    })
}

/// The default of a tuple's element, NULL if it is Nullable.
fn default_element(field: &Field) -> Result<ScalarValue> {
    match field.is_nullable() {
        true => ScalarValue::try_from(field.data_type()),
        false => default_value(field.data_type()),
    }
}

/// The default of a Date32: the beginning of 1900.
const FIRST_DAY: i32 = -25_567;

/// The default of a column. Arrow does not tell all types apart: Date32 and Date have different defaults.
pub fn default_of(field: &Field) -> Result<ScalarValue> {
    match field.data_type() {
        DataType::Date32 if plain_field_name(field) == "Date32" => Ok(ScalarValue::Date32(Some(FIRST_DAY))),
        other => default_value(other),
    }
}
