//! Comparisons of floats as in IEEE 754, which ClickHouse follows: NaN is not equal to, less or greater than anything,
//! and -0 equals 0. Arrow's kernels use a total order. Integers are compared exactly.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;

use super::numbers::array_bits;

/// By row, whether the order of its two numbers (`None`: unordered) satisfies `holds`.
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
    /// Integers, and whether they are signed.
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

/// A 64-bit integer may have more digits than a float.
fn whole_and_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Floats beyond this are out of the integer's range.
    let trunc = float.trunc().clamp(-1e30, 1e30);
    let fraction = float - trunc;
    // If the integer parts are equal, the fraction decides.
    let by_fraction = 0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal);
    Some(whole.cmp(&(trunc as i128)).then(by_fraction))
}
