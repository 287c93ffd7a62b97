//! Conversions in which ClickHouse differs from Arrow, also within arrays, maps and tuples: numbers to decimals or
//! integers of more than 64 bits, whose excess digits are cut off where Arrow rounds, and values to texts as ClickHouse
//! writes them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, MapArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use datafusion::common::Result;
use granary_dict::DataType as ClickHouseType;

use super::convert::{check_range, clamped, convert};
use super::cut_decimal::to_decimal;
use crate::error::Error;
use crate::text::texts;
use crate::types::{is_time, plain_field_name};

/// Converts such values of a column to their types within `to`. Everything else stays.
pub fn cut(column: &Field, array: &ArrayRef, to: &ClickHouseType) -> Result<ArrayRef> {
    use ClickHouseType::{
        Array, Date, DateTime, Decimal, Int128, Int256, Map, Nested, String, Tuple, UInt128,
    };
    let target = to.inner().to_arrow();
    Ok(match (to.inner(), array.data_type()) {
        (Array(item) | Map(item) | Nested(item), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let items = cut(field, &within(list.values(), list.offsets()), item)?;
            let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
            Arc::new(ListArray::try_new(like(field, &items), offsets, items, list.nulls().cloned())?)
        }
        (Map(item), DataType::Map(field, ordered)) => {
            let map = array.as_map();
            let entries = Arc::new(map.entries().clone()) as ArrayRef;
            let entries = cut(field, &within(&entries, map.offsets()), item)?;
            let offsets = OffsetBuffer::from_lengths(map.offsets().lengths());
            let (field, nulls) = (like(field, &entries), map.nulls().cloned());
            Arc::new(MapArray::try_new(field, offsets, entries.as_struct().clone(), nulls, *ordered)?)
        }
        (Tuple(elements), DataType::Struct(fields)) if elements.len() == fields.len() => {
            let row = array.as_struct();
            let columns = fields.iter().zip(row.columns()).zip(elements);
            let columns = columns
                .map(|((field, column), element)| cut(field, column, &element.data_type))
                .collect::<Result<Vec<_>>>()?;
            let fields: Fields =
                fields.iter().zip(&columns).map(|(field, column)| like(field, column)).collect();
            Arc::new(StructArray::try_new_with_length(fields, columns, row.nulls().cloned(), row.len())?)
        }
        (String, from) if from.is_nested() => {
            let (from, whole) = (plain_field_name(column), "an array, a map or a tuple");
            return Err(Error::type_mismatch(format!(
                "{from} is {whole}, and becomes no String within another"
            ))
            .into());
        }
        (String, from) if !from.is_string() && !from.is_null() => Arc::new(texts(column, array)?),
        // Seconds, within the range of moments.
        (DateTime { .. } | Date, from) if from.is_numeric() || is_time(from) => {
            check_range(column, array, &target)?;
            clamped(convert(column, array, &target)?)
        }
        (whole, from)
            if is_time(from) && whole.to_arrow().is_numeric() && !matches!(whole, Decimal { .. }) =>
        {
            convert(column, array, &target)?
        }
        (Decimal { .. }, _) => to_decimal(array, &target)?.unwrap_or_else(|| Arc::clone(array)),
        (Int128 | UInt128 | Int256, from) if from.is_floating() => {
            let floats = cast(array, &DataType::Float64)?;
            let whole: Float64Array = floats.as_primitive::<Float64Type>().unary(f64::trunc);
            Arc::new(whole)
        }
        (Int128 | UInt128 | Int256, DataType::Decimal128(_, 1..) | DataType::Decimal256(_, 1..)) => {
            to_decimal(array, &target)?.unwrap_or_else(|| Arc::clone(array))
        }
        _ => Arc::clone(array),
    })
}

/// The items that a column's lists refer to; others may lie before and after them.
fn within(items: &ArrayRef, offsets: &OffsetBuffer<i32>) -> ArrayRef {
    let (first, end) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    items.slice(first, end - first)
}

fn like(field: &Field, array: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(field.name(), array.data_type().clone(), field.is_nullable()))
}
