//! Numbers to decimals by ClickHouse's rules: excess digits are cut off, and a number that is too large is an error.
//! Arrow rounds, and makes it NULL.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal256Type, Float64Type, i256};
use datafusion::common::Result;

use super::numbers::array_bits;
use crate::error::Error;
use crate::types::plain_name;

/// Digits that a Decimal256 has.
const DIGITS_MAX: u8 = 76;

/// Converts numbers to decimals of type `to`; `None`: one of the types is not numeric.
pub fn to_decimal(array: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>> {
    let (precision, scale) = match *to {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => (precision, scale),
        _ => return Ok(None),
    };
    let Some((numbers, digits)) = numbers(array, scale)? else { return Ok(None) };
    let too_large = || Error::decimal_overflow(format!("A value is too large for {}", plain_name(to)));
    let power = |digits: i8| i256::from_i128(10).wrapping_pow(u32::from(digits.unsigned_abs()));
    let (shift, bound) = (power(scale - digits), power(precision as i8));
    let fitted = |number: i256| {
        let number = if scale >= digits { number.checked_mul(shift) } else { number.checked_div(shift) };
        number.filter(|number| (bound.wrapping_neg() < *number) && (*number < bound)).ok_or_else(too_large)
    };
    let fitted: Decimal256Array =
        numbers.into_iter().map(|number| number.map(fitted).transpose()).collect::<Result<_, Error>>()?;
    let fitted = fitted.with_precision_and_scale(DIGITS_MAX, scale)?;
    Ok(Some(cast(&(Arc::new(fitted) as ArrayRef), to)?))
}

/// Numbers as integers scaled by a power of 10, and that power; for floats it is `scale`.
fn numbers(array: &ArrayRef, scale: i8) -> Result<Option<(Vec<Option<i256>>, i8)>> {
    let from = array.data_type();
    Ok(Some(match from {
        DataType::Decimal128(_, digits) | DataType::Decimal256(_, digits) => {
            let wide = cast(array, &DataType::Decimal256(DIGITS_MAX, *digits))?;
            (wide.as_primitive::<Decimal256Type>().iter().collect(), *digits)
        }
        from if from.is_integer() || from == &DataType::Boolean => {
            let signed = from.is_signed_integer();
            let wide =
                |bits: u64| i256::from_i128(if signed { i128::from(bits as i64) } else { i128::from(bits) });
            let nulls = array.logical_nulls();
            let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let bits = array_bits(array).unwrap_or_default();
            (bits.iter().enumerate().map(|(row, bits)| valid(row).then(|| wide(*bits))).collect(), 0)
        }
        from if from.is_floating() => {
            let power = 10f64.powi(scale.into());
            let floats = cast(array, &DataType::Float64)?;
            let whole: Float64Array =
                floats.as_primitive::<Float64Type>().unary(|float| (float * power).trunc());
            let wide = cast(&(Arc::new(whole) as ArrayRef), &DataType::Decimal256(DIGITS_MAX, 0))?;
            if wide.logical_null_count() > array.logical_null_count() {
                return Err(Error::decimal_overflow("A float is too large for a Decimal").into());
            }
            (wide.as_primitive::<Decimal256Type>().iter().collect(), scale)
        }
        _ => return Ok(None),
    }))
}
