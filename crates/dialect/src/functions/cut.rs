//! Numbers that become decimals or integers of more than 64 bits: digits that these do not have are cut off, within
//! arrays, maps and tuples, too. Arrow rounds.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, MapArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use datafusion::common::Result;
use granary_dict::DataType as ClickHouseType;

use super::decimal::to_decimal;

/// The values with such numbers in the places where `to` has them. Everything else stays.
pub fn cut(array: &ArrayRef, to: &ClickHouseType) -> Result<ArrayRef> {
    use ClickHouseType::{Array, Decimal, Int128, Int256, Map, Nested, Tuple, UInt128};
    let target = to.inner().to_arrow();
    Ok(match (to.inner(), array.data_type()) {
        (Array(item) | Map(item) | Nested(item), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let items = cut(&within(list.values(), list.offsets()), item)?;
            let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
            Arc::new(ListArray::try_new(like(field, &items), offsets, items, list.nulls().cloned())?)
        }
        (Map(item), DataType::Map(field, ordered)) => {
            let map = array.as_map();
            let entries = Arc::new(map.entries().clone()) as ArrayRef;
            let entries = cut(&within(&entries, map.offsets()), item)?;
            let offsets = OffsetBuffer::from_lengths(map.offsets().lengths());
            let (field, nulls) = (like(field, &entries), map.nulls().cloned());
            Arc::new(MapArray::try_new(field, offsets, entries.as_struct().clone(), nulls, *ordered)?)
        }
        (Tuple(elements), DataType::Struct(fields)) if elements.len() == fields.len() => {
            let row = array.as_struct();
            let columns = row.columns().iter().zip(elements);
            let columns = columns
                .map(|(column, element)| cut(column, &element.data_type))
                .collect::<Result<Vec<_>>>()?;
            let fields: Fields =
                fields.iter().zip(&columns).map(|(field, column)| like(field, column)).collect();
            Arc::new(StructArray::try_new_with_length(fields, columns, row.nulls().cloned(), row.len())?)
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

/// The items that a column's lists have: others may lie before and behind them.
fn within(items: &ArrayRef, offsets: &OffsetBuffer<i32>) -> ArrayRef {
    let (first, end) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    items.slice(first, end - first)
}

fn like(field: &Field, array: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(field.name(), array.data_type().clone(), field.is_nullable()))
}
