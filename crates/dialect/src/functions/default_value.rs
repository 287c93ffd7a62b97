//! The value of a type where there is none.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, ListArray, MapArray, StructArray, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use crate::types::plain_field_name;

/// Zero, an empty text, an array or a map of nothing, a tuple of such values. DataFusion's own forgets what the fields
/// within an array or a tuple say, and has none for a map.
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

/// Of an element of a tuple, which is NULL if it can be.
fn default_element(field: &Field) -> Result<ScalarValue> {
    match field.is_nullable() {
        true => ScalarValue::try_from(field.data_type()),
        false => default_value(field.data_type()),
    }
}

/// The first day that a Date32 can be, which it is where there is none: the beginning of 1900.
const FIRST_DAY: i32 = -25_567;

/// The default value of a column. Its type may be one that Arrow does not tell from another: a Date32 has another default
/// than a Date.
pub fn default_of(field: &Field) -> Result<ScalarValue> {
    match field.data_type() {
        DataType::Date32 if plain_field_name(field) == "Date32" => Ok(ScalarValue::Date32(Some(FIRST_DAY))),
        other => default_value(other),
    }
}
