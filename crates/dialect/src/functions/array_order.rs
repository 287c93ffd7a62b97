//! Comparisons of arrays that have NULL or floats among their items: NULL and NaN are equal to themselves and greater
//! than everything else, and -0 equals 0. Arrow orders NULL first, -0 before 0, and NaN by its sign.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, make_comparator};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;

/// Whether arrays of a type need this order rather than Arrow's: they may contain NULL or floats.
pub fn has_own_order(data_type: &DataType) -> bool {
    let within = |field: &FieldRef| {
        field.is_nullable() || field.data_type().is_floating() || has_own_order(field.data_type())
    };
    match data_type {
        DataType::List(item) | DataType::Map(item, _) => within(item),
        DataType::Struct(fields) => fields.iter().any(within),
        _ => false,
    }
}

/// By row, whether the order of its two arrays satisfies `holds`.
pub fn compared(
    left: &ArrayRef,
    right: &ArrayRef,
    operator: Operator,
    holds: impl Fn(Option<Ordering>) -> bool,
) -> Result<BooleanBuffer> {
    let types = BinaryTypeCoercer::new(left.data_type(), &operator, right.data_type()).get_input_types()?;
    let (left, right) = (ordered(&cast(left, &types.0)?)?, ordered(&cast(right, &types.1)?)?);
    let order = make_comparator(&left, &right, SortOptions { descending: false, nulls_first: false })?;
    Ok(BooleanBuffer::collect_bool(left.len(), |row| holds(Some(order(row, row)))))
}

/// Returns the values with -0 replaced by 0, and every NaN by the one that is greatest to Arrow.
fn ordered(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let plain = |float: f32| if float.is_nan() { f32::NAN } else { float + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(plain))
        }
        DataType::Float64 => {
            let plain = |float: f64| if float.is_nan() { f64::NAN } else { float + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain))
        }
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, ordered(list.values())?, nulls)?)
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(ordered).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, array.nulls().cloned())?)
        }
        DataType::Map(entry, sorted) => {
            let map = array.as_map();
            let entries = ordered(&(Arc::new(map.entries().clone()) as ArrayRef))?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let entries = entries.as_struct().clone();
            Arc::new(MapArray::try_new(Arc::clone(entry), offsets, entries, nulls, *sorted)?)
        }
        _ => Arc::clone(array),
    })
}
