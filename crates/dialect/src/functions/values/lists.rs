//! Arrays: their order, parts, extremes.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, Scalar, StringArray, StringBuilder, UInt32Array,
    UInt64Array,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{SortOptions, cast, is_null, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{DataFusionError, Result};

use super::calendar::numbers;
use super::texts::{Texts, add_bytes, all_texts};
use super::{Function, of};
use crate::error::Error;
use crate::functions::default_value::default_value;
use crate::functions::numbers::{array_bits, wrapped};
use crate::functions::{supertype, type_of};

/// A function that picks items of an array, in some order.
macro_rules! picked {
    ($name:literal, $pick:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| item_of(&given[0]).map(|_| given[0].as_ref().clone()),
            answer: |given, field| {
                let pick: fn(Range<u32>) -> Vec<u32> = $pick;
                picked(&given[0], field, |_, items| pick(items))
            },
        }
    };
}

/// The first item in an order.
macro_rules! extreme {
    ($name:literal, $descending:literal) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| {
                item_of(&given[0])
                    .filter(|item| item.data_type().is_numeric())
                    .map(|item| item.as_ref().clone())
            },
            answer: |given, _| {
                extreme(given[0].as_list(), SortOptions { descending: $descending, nulls_first: false })
            },
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    picked!("arrayReverse", |items| items.rev().collect()),
    picked!("arrayPopBack", |items| (items.start..items.end.saturating_sub(1).max(items.start)).collect()),
    picked!("arrayPopFront", |items| items.skip(1).collect()),
    extreme!("arrayMin", false),
    extreme!("arrayMax", true),
    Function {
        name: "arraySlice",
        arguments: 2..=3,
        field: |given| {
            let numbers = given[1..].iter().all(|field| field.data_type().is_integer());
            item_of(&given[0]).filter(|_| numbers).map(|_| given[0].as_ref().clone())
        },
        answer: slice,
    },
    Function {
        name: "arrayEnumerate",
        arguments: 1..=1,
        field: |given| item_of(&given[0]).map(|_| list_field(of_item(DataType::UInt32))),
        answer: |given, field| {
            let list = given[0].as_list::<i32>();
            let lengths: Vec<usize> = (0..list.len()).map(|row| list.value_length(row) as usize).collect();
            let numbers = lengths.iter().flat_map(|length| 1..=*length as u32);
            list_of(field, lengths.iter().copied(), Arc::new(UInt32Array::from_iter_values(numbers)))
        },
    },
    Function {
        name: "arrayStringConcat",
        arguments: 1..=2,
        field: |given| {
            let texts = item_of(&given[0])?.data_type().is_string() && all_texts(&given[1..]);
            texts.then(|| of(DataType::Utf8))
        },
        answer: |given, _| {
            let list = given[0].as_list::<i32>();
            let items = cast(list.values(), &DataType::Utf8)?;
            let items: &StringArray = items.as_string();
            let between = given.get(1).map(Texts::of).transpose()?;
            let (mut joined, mut bytes) = (StringBuilder::new(), 0);
            for row in 0..list.len() {
                let found = range_of(list, row).filter(|at| items.is_valid(*at as usize));
                let found: Vec<&str> = found.map(|at| items.value(at as usize)).collect();
                let between = between.as_ref().map_or("", |between| between.at(row));
                let texts: usize = found.iter().map(|text| text.len()).sum();
                add_bytes(&mut bytes, texts + between.len() * found.len())?;
                joined.append_value(found.join(between));
            }
            Ok(Arc::new(joined.finish()))
        },
    },
    Function {
        name: "range",
        arguments: 1..=3,
        field: |given| {
            let types = given.iter().map(|field| type_of(field)).collect::<Option<Vec<_>>>()?;
            let whole = supertype(&types)?.to_arrow();
            whole.is_integer().then(|| list_field(of_item(whole)))
        },
        answer: range,
    },
];

/// The field of an array's items.
pub(super) fn item_of(field: &FieldRef) -> Option<&FieldRef> {
    match field.data_type() {
        DataType::List(item) => Some(item),
        _ => None,
    }
}

fn of_item(data_type: DataType) -> Field {
    Field::new("item", data_type, false)
}

/// The field of an array of these items.
pub(super) fn list_field(item: Field) -> Field {
    of(DataType::List(Arc::new(item)))
}

/// The range of a row's items among all; empty for NULL.
pub(super) fn range_of(list: &ListArray, row: usize) -> Range<u32> {
    let (start, end) = (list.value_offsets()[row] as u32, list.value_offsets()[row + 1] as u32);
    if list.is_null(row) { start..start } else { start..end }
}

/// An array of the field's type, with the given number of items in each row.
pub(super) fn list_of(
    field: &Field,
    lengths: impl Iterator<Item = usize>,
    items: ArrayRef,
) -> Result<ArrayRef> {
    let DataType::List(item) = field.data_type() else {
        return Err(DataFusionError::Internal(format!("{} is no array", field.data_type())));
    };
    let item = if items.null_count() > 0 {
        Arc::new(item.as_ref().clone().with_nullable(true))
    } else {
        Arc::clone(item)
    };
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), items, None)?))
}

/// An array of texts; `of_row` adds those of each row.
pub(super) fn list_of_texts(
    field: &Field,
    rows: usize,
    of_row: impl Fn(usize, &mut Vec<String>) -> Result<()>,
) -> Result<ArrayRef> {
    let (mut texts, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        let before = texts.len();
        of_row(row, &mut texts)?;
        lengths.push(texts.len() - before);
    }
    list_of(field, lengths.into_iter(), Arc::new(StringArray::from(texts)))
}

/// Values as order-preserving bytes.
pub(super) fn ordered(values: &ArrayRef, options: SortOptions) -> Result<Rows> {
    let converter =
        RowConverter::new(vec![SortField::new_with_options(values.data_type().clone(), options)])?;
    Ok(converter.convert_columns(std::slice::from_ref(values))?)
}

/// Which values are NaN; NaN comes last in either order.
pub fn nans(values: &ArrayRef) -> Result<Vec<bool>> {
    if !values.data_type().is_floating() {
        return Ok(vec![false; values.len()]);
    }
    let floats = cast(values, &DataType::Float64)?;
    let floats = floats.as_primitive::<Float64Type>();
    Ok((0..floats.len()).map(|at| floats.is_valid(at) && floats.value(at).is_nan()).collect())
}

/// The items at the places that `pick` chooses among each row's.
pub(super) fn picked(
    list: &ArrayRef,
    field: &Field,
    mut pick: impl FnMut(usize, Range<u32>) -> Vec<u32>,
) -> Result<ArrayRef> {
    let list = list.as_list::<i32>();
    let mut places = Vec::with_capacity(list.values().len());
    let mut lengths = Vec::with_capacity(list.len());
    for row in 0..list.len() {
        let chosen = pick(row, range_of(list, row));
        lengths.push(chosen.len());
        places.extend(chosen);
    }
    list_of(field, lengths.into_iter(), take(list.values(), &UInt32Array::from(places), None)?)
}

/// A number of items from an offset, which counts from 1, or backwards from -1; a negative length excludes that many at
/// the end.
fn slice(given: &[ArrayRef], field: &Field) -> Result<ArrayRef> {
    let numbers: Vec<Int64Array> = given[1..].iter().map(wrapped).collect();
    let number = |at: usize, row| numbers.get(at).map(|numbers| numbers.value(row));
    if numbers.get(1).is_some_and(|lengths| lengths.iter().flatten().any(|length| length == i64::MIN)) {
        return Err(
            Error::argument_out_of_bound("Overflow in the length argument of function arraySlice").into()
        );
    }
    picked(&given[0], field, |row, items| {
        let count = i64::from(items.end - items.start);
        let start = match number(0, row).unwrap_or_default() {
            0 => return Vec::new(),
            offset if offset > 0 => (offset - 1).min(count),
            offset => (count + offset.max(-count)).max(0),
        };
        // Items before the first one count towards the length.
        let before = number(0, row).map_or(0, |offset| offset.saturating_neg().saturating_sub(count).max(0));
        let end = match number(1, row) {
            None => count,
            Some(length) if length >= 0 => start.saturating_add((length - before).max(0)).min(count),
            Some(length) => count.saturating_add(length).max(start),
        };
        (items.start + start as u32..items.start + end as u32).collect()
    })
}

fn extreme(list: &ListArray, options: SortOptions) -> Result<ArrayRef> {
    let order = ordered(list.values(), options)?;
    let nan = nans(list.values())?;
    let first = |row| {
        let found = range_of(list, row).filter(|at| list.values().is_valid(*at as usize));
        found.min_by_key(|at| (nan[*at as usize], order.row(*at as usize))).map(u64::from)
    };
    let places: UInt64Array = (0..list.len()).map(first).collect();
    let found = take(list.values(), &places, None)?;
    if matches!(list.data_type(), DataType::List(item) if item.is_nullable()) {
        return Ok(found);
    }
    let zero = default_value(found.data_type())?.to_array()?;
    Ok(zip(&is_null(&places)?, &Scalar::new(zero), &found)?)
}

/// Maximum number of items of one block of `range`.
const RANGE_ITEMS_MAX: usize = 1 << 24;

/// `range(end)`, `range(start, end)`, `range(start, end, step)`.
fn range(given: &[ArrayRef], field: &Field) -> Result<ArrayRef> {
    let columns: Vec<Wholes> = given.iter().map(Wholes::of).collect();
    let at = |column: usize, row: usize| columns[column].at(row);
    let DataType::List(item) = field.data_type() else {
        return Err(DataFusionError::Internal(format!("{} is no array", field.data_type())));
    };
    let (mut items, mut lengths) = (Vec::new(), Vec::new());
    let is_null = |row: usize| given.iter().any(|array| array.is_null(row));
    for row in 0..given[0].len() {
        if columns.len() == 1 && !is_null(row) && at(0, row) < 0 {
            return Err(
                Error::argument_out_of_bound("A call to function range wants fewer than no items").into()
            );
        }
        let (start, end, step) = match columns.len() {
            _ if is_null(row) => (0, 0, 1),
            1 => (0, at(0, row), 1),
            2 => (at(0, row), at(1, row), 1),
            _ => (at(0, row), at(1, row), at(2, row)),
        };
        if step == 0 {
            return Err(Error::argument_out_of_bound("The step of function range is 0").into());
        }
        let distance = if step > 0 { end - start } else { start - end };
        let count = usize::try_from((distance.max(0) + step.abs() - 1) / step.abs()).unwrap_or(usize::MAX);
        if count > RANGE_ITEMS_MAX - items.len() {
            let what = format!("A call to function range would make more than {RANGE_ITEMS_MAX} items");
            return Err(Error::argument_out_of_bound(what).into());
        }
        items.extend((0..count).map(|at| (start + at as i128 * step) as u64));
        lengths.push(count);
    }
    list_of(field, lengths.into_iter(), numbers(items, item)?)
}

/// Integers of any type, by value.
struct Wholes {
    bits: ScalarBuffer<u64>,
    is_signed: bool,
}

impl Wholes {
    fn of(array: &ArrayRef) -> Wholes {
        let is_signed = array.data_type().is_signed_integer();
        Wholes { bits: array_bits(array).unwrap_or_default(), is_signed }
    }

    fn at(&self, row: usize) -> i128 {
        if self.is_signed { i128::from(self.bits[row] as i64) } else { i128::from(self.bits[row]) }
    }
}
