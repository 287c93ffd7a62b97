//! Comparisons of floating-point numbers as IEEE 754 has them, which ClickHouse's are: NaN is neither equal to anything
//! nor less or greater, and -0 is 0. Arrow's kernels order all floats in one line. An integer is compared as it is.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;

use super::numbers::array_bits;

/// Of each row, whether its two numbers stand to each other as `holds` says; `None`: there is no order.
pub fn compared(
    left: &ArrayRef,
    right: &ArrayRef,
    holds: impl Fn(Option<Ordering>) -> bool,
) -> Result<BooleanBuffer> {
    let rows = left.len();
    let (left, right) = (Numbers::of(left)?, Numbers::of(right)?);
    Ok(match (&left, &right) {
        (Numbers::Floats(left), Numbers::Floats(right)) => {
            let (left, right) = (left.values(), right.values());
            BooleanBuffer::collect_bool(rows, |row| holds(left[row].partial_cmp(&right[row])))
        }
        _ => BooleanBuffer::collect_bool(rows, |row| holds(left.at(row).order(right.at(row)))),
    })
}

/// A column of numbers.
enum Numbers {
    Floats(Float64Array),
    /// Integers, and whether they have a sign.
    Whole(datafusion::arrow::buffer::ScalarBuffer<u64>, bool),
}

#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Whole(i128),
}

impl Numbers {
    fn of(array: &ArrayRef) -> Result<Numbers> {
        match array_bits(array) {
            Some(bits) => Ok(Numbers::Whole(bits, array.data_type().is_signed_integer())),
            None => {
                Ok(Numbers::Floats(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone()))
            }
        }
    }

    fn at(&self, row: usize) -> Number {
        match self {
            Numbers::Floats(floats) => Number::Float(floats.value(row)),
            Numbers::Whole(bits, true) => Number::Whole(i128::from(bits[row] as i64)),
            Numbers::Whole(bits, false) => Number::Whole(i128::from(bits[row])),
        }
    }
}

impl Number {
    fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Float(one), Number::Float(other)) => one.partial_cmp(&other),
            (Number::Whole(one), Number::Whole(other)) => Some(one.cmp(&other)),
            (Number::Whole(one), Number::Float(other)) => whole_and_float(one, other),
            (Number::Float(one), Number::Whole(other)) => whole_and_float(other, one).map(Ordering::reverse),
        }
    }
}

/// An integer of 64 bits may have more digits than a float.
fn whole_and_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Beyond these a float is out of the integer's reach.
    let trunc = float.trunc().clamp(-1e30, 1e30);
    let fraction = float - trunc;
    // Between equals the fraction decides.
    let by_fraction = 0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal);
    Some(whole.cmp(&(trunc as i128)).then(by_fraction))
}
