//! Bits of integers.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};

use super::calendar::numbers;
use super::{Function, of};
use crate::error::Error;
use crate::functions::numbers::array_bits;
use crate::types::is_address;

/// A function of two integers, in the wider type; signed if one of them is.
macro_rules! both {
    ($name:literal, $of:expr) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| wider(&given[0], &given[1]).map(of),
            answer: |given, field| zip(given, field, $of),
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    both!("bitAnd", |left, right| left & right),
    both!("bitOr", |left, right| left | right),
    both!("bitXor", |left, right| left ^ right),
    Function {
        name: "bitShiftLeft",
        arguments: 2..=2,
        field: shifted,
        answer: |given, field| {
            within(given, field)?;
            zip(given, field, |bits, by| if by < 64 { bits << by } else { 0 })
        },
    },
    Function {
        name: "bitShiftRight",
        arguments: 2..=2,
        field: shifted,
        // A signed number is extended by its sign.
        answer: |given, field| match within(given, field).map(|()| field.data_type())? {
            DataType::UInt64 => zip(given, field, |bits, by| if by < 64 { bits >> by } else { 0 }),
            _ => zip(given, field, |bits, by| (bits as i64 >> by.min(63)) as u64),
        },
    },
    Function {
        name: "bitNot",
        arguments: 1..=1,
        field: |given| is_whole(&given[0]).then(|| of(given[0].data_type().clone())),
        answer: |given, field| {
            let bits = bits(&given[0])?;
            numbers(bits.iter().map(|bits| !bits).collect(), field)
        },
    },
    Function {
        name: "bitCount",
        arguments: 1..=1,
        field: |given| is_whole(&given[0]).then(|| of(DataType::UInt8)),
        answer: |given, field| {
            let mask = mask(given[0].data_type());
            let bits = bits(&given[0])?;
            numbers(bits.iter().map(|bits| u64::from((bits & mask).count_ones())).collect(), field)
        },
    },
    Function {
        name: "bitTest",
        arguments: 2..=2,
        field: |given| given.iter().all(is_whole).then(|| of(DataType::UInt8)),
        answer: |given, field| {
            within(given, &of(given[0].data_type().clone()))?;
            zip(given, field, |bits, at| if at < 64 { bits >> at & 1 } else { 0 })
        },
    },
];

fn is_whole(field: &FieldRef) -> bool {
    field.data_type().is_integer() && !is_address(field)
}

/// A shifted integer keeps its type; a distance of a wider type is refused.
fn shifted(given: &[FieldRef]) -> Option<Field> {
    let (value, by) = (given[0].data_type(), given[1].data_type());
    (is_whole(&given[0]) && is_whole(&given[1]) && width(by) <= width(value)).then(|| of(value.clone()))
}

/// Refuses distances beyond the bits of a type.
fn within(given: &[ArrayRef], wanted: &Field) -> Result<()> {
    let bits = 8 * width(wanted.data_type()) as u64;
    let distances = self::bits(&given[1])?;
    let is_out = |row: usize| given[1].is_valid(row) && distances[row] >= bits;
    match (0..distances.len()).any(is_out) {
        true => Err(Error::argument_out_of_bound(format!("There are {bits} bits, counted from 0")).into()),
        false => Ok(()),
    }
}

fn width(data_type: &DataType) -> usize {
    data_type.primitive_width().unwrap_or(8)
}

/// The mask of a type's bits.
fn mask(data_type: &DataType) -> u64 {
    u64::MAX >> (64 - 8 * width(data_type))
}

/// The integer type that holds both, up to 64 bits.
pub(super) fn wider(left: &FieldRef, right: &FieldRef) -> Option<DataType> {
    if !is_whole(left) || !is_whole(right) {
        return None;
    }
    let (left, right) = (left.data_type(), right.data_type());
    let signed = left.is_signed_integer() || right.is_signed_integer();
    Some(match (width(left).max(width(right)), signed) {
        (1, false) => DataType::UInt8,
        (2, false) => DataType::UInt16,
        (4, false) => DataType::UInt32,
        (_, false) => DataType::UInt64,
        (1, true) => DataType::Int8,
        (2, true) => DataType::Int16,
        (4, true) => DataType::Int32,
        (_, true) => DataType::Int64,
    })
}

fn bits(array: &ArrayRef) -> Result<ScalarBuffer<u64>> {
    array_bits(array).ok_or_else(|| DataFusionError::Internal(format!("{} is no integer", array.data_type())))
}

fn zip(given: &[ArrayRef], field: &Field, of: fn(u64, u64) -> u64) -> Result<ArrayRef> {
    let (left, right) = (bits(&given[0])?, bits(&given[1])?);
    numbers(left.iter().zip(right.iter()).map(|(left, right)| of(*left, *right)).collect(), field)
}
