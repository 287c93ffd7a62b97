//! Sums and other aggregates over the items of arrays.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::Result;

use super::calendar::numbers;
use super::lists::{item_of, list_field, list_of, range_of};
use super::{Function, of};
use crate::functions::numbers::array_bits;

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "arraySum", arguments: 1..=1, field: |given| sum_type(given).map(of), answer: sum },
    Function {
        name: "arrayAvg",
        arguments: 1..=1,
        field: |given| sum_type(given).map(|_| of(DataType::Float64)),
        answer: |given, _| {
            let (list, items) = floats(&given[0])?;
            let mean = |row| {
                let found = || range_of(&list, row).filter(|at| items.is_valid(*at as usize));
                match found().count() {
                    // 0 without items.
                    0 => 0.0,
                    count => found().map(|at| items.value(at as usize)).sum::<f64>() / count as f64,
                }
            };
            Ok(Arc::new(Float64Array::from_iter_values((0..list.len()).map(mean))))
        },
    },
    Function {
        name: "arrayProduct",
        arguments: 1..=1,
        field: |given| sum_type(given).map(|_| of(DataType::Float64)),
        answer: |given, _| {
            let (list, items) = floats(&given[0])?;
            let found = |row| range_of(&list, row).filter(|at| items.is_valid(*at as usize));
            // 0 without items.
            let product =
                |row| found(row).map(|at| items.value(at as usize)).reduce(|product, item| product * item);
            let product = |row| product(row).unwrap_or(0.0);
            Ok(Arc::new(Float64Array::from_iter_values((0..list.len()).map(product))))
        },
    },
    Function {
        name: "arrayCumSum",
        arguments: 1..=1,
        field: |given| sum_type(given).map(|sum| list_field(Field::new("item", sum, false))),
        answer: running,
    },
];

/// The type of the sum of an array's numbers.
fn sum_type(given: &[FieldRef]) -> Option<DataType> {
    Some(match item_of(&given[0]).filter(|item| !item.is_nullable())?.data_type() {
        whole if whole.is_unsigned_integer() => DataType::UInt64,
        whole if whole.is_signed_integer() => DataType::Int64,
        float if float.is_floating() => DataType::Float64,
        _ => return None,
    })
}

fn sum(given: &[ArrayRef], field: &Field) -> Result<ArrayRef> {
    let list = given[0].as_list::<i32>();
    let items = list.values();
    if let Some(bits) = array_bits(items) {
        let found = |row| range_of(list, row).map(|at| at as usize).filter(|at| items.is_valid(*at));
        let sum = |row| found(row).fold(0_u64, |sum, at| sum.wrapping_add(bits[at]));
        return numbers((0..list.len()).map(sum).collect(), field);
    }
    let (list, items) = floats(&given[0])?;
    let found = |row| range_of(&list, row).filter(|at| items.is_valid(*at as usize));
    let sum = |row| found(row).map(|at| items.value(at as usize)).sum::<f64>();
    Ok(Arc::new(Float64Array::from_iter_values((0..list.len()).map(sum))))
}

fn floats(list: &ArrayRef) -> Result<(ListArray, Float64Array)> {
    let list = list.as_list::<i32>();
    let items = cast(list.values(), &DataType::Float64)?;
    Ok((list.clone(), items.as_primitive::<Float64Type>().clone()))
}

/// The running sums. NULL adds nothing.
fn running(given: &[ArrayRef], field: &Field) -> Result<ArrayRef> {
    let list = given[0].as_list::<i32>();
    let DataType::List(item) = field.data_type() else { return Ok(Arc::clone(&given[0])) };
    let rows = || (0..list.len()).map(|row| range_of(list, row));
    let sums: ArrayRef = match array_bits(list.values()) {
        Some(bits) => {
            let of_row = |places: Range<u32>| {
                let places = places.map(|at| at as usize);
                places.scan(0_u64, |sum, at| {
                    *sum = sum.wrapping_add(if list.values().is_valid(at) { bits[at] } else { 0 });
                    Some(*sum)
                })
            };
            numbers(rows().flat_map(of_row).collect(), item)?
        }
        None => {
            let (_, items) = floats(&given[0])?;
            let of_row = |places: Range<u32>| {
                places.scan(0.0, |sum, at| {
                    *sum += if items.is_valid(at as usize) { items.value(at as usize) } else { 0.0 };
                    Some(*sum)
                })
            };
            Arc::new(Float64Array::from_iter_values(rows().flat_map(of_row)))
        }
    };
    list_of(field, rows().map(|places| places.len()), sums)
}
