//! `+ - * /` of decimals by ClickHouse's rules: in the wider type of the two, with the fraction digits that the
//! operation needs, and an error if the result does not fit.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal256Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal256Type, i256};
use datafusion::common::Result;

use super::arithmetic::Operation;
use crate::error::Error;
use crate::types::plain_name;

/// Digits of a Decimal256.
const DIGITS_MAX: u8 = 76;

/// An operand: a decimal, or an integer, which has no fraction digits.
#[derive(Clone, Copy)]
struct Operand {
    precision: Option<u8>,
    scale: i8,
}

impl Operand {
    fn of(data_type: &DataType) -> Option<Operand> {
        match *data_type {
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
                Some(Operand { precision: Some(precision), scale })
            }
            ref whole if whole.is_integer() => Some(Operand { precision: None, scale: 0 }),
            _ => None,
        }
    }
}

/// The type of the result; `None` if neither operand is a decimal, or one is no number that goes with it.
pub fn result_type(operation: Operation, left: &DataType, right: &DataType) -> Option<DataType> {
    let (left_type, right_type) = (left, right);
    let (left, right) = (Operand::of(left)?, Operand::of(right)?);
    let widest = left.precision.max(right.precision)?;
    let precision = [9, 18, 38, DIGITS_MAX].into_iter().find(|precision| *precision >= widest)?;
    if operation == Operation::Divide && !divides(precision, left_type, right_type) {
        return None;
    }
    let scale = match operation {
        Operation::Plus | Operation::Minus => left.scale.max(right.scale),
        Operation::Multiply => left.scale + right.scale,
        Operation::Divide if left.precision.is_none() => right.scale,
        Operation::Divide => left.scale,
        Operation::Modulo | Operation::IntDiv | Operation::IntDivOrZero => return None,
    };
    let fits = scale <= precision as i8;
    fits.then_some(match precision {
        DIGITS_MAX => DataType::Decimal256(precision, scale),
        _ => DataType::Decimal128(precision, scale),
    })
}

/// Whether ClickHouse divides these: it reads an integer as a decimal of the other's width, and refuses a divisor with
/// more fraction digits.
fn divides(precision: u8, left: &DataType, right: &DataType) -> bool {
    let width = match precision {
        9 => 4,
        18 => 8,
        _ => 16,
    };
    let fits = |whole: &DataType| match whole.primitive_width().unwrap_or(8) {
        bytes if whole.is_signed_integer() => bytes <= width,
        bytes => bytes < width,
    };
    match (Operand::of(left), Operand::of(right)) {
        (Some(Operand { precision: Some(_), scale }), Some(Operand { precision: Some(_), scale: other })) => {
            other <= scale
        }
        (Some(Operand { precision: None, .. }), _) => fits(left),
        _ => fits(right),
    }
}

/// The results, of type `to`.
pub fn computed(operation: Operation, left: &ArrayRef, right: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (precision, scale) = match *to {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => (precision, scale),
        _ => return Err(Error::illegal_type(format!("{to} is no decimal")).into()),
    };
    let (left_scale, left) = numbers(left)?;
    let (right_scale, right) = numbers(right)?;
    let bound = power(precision as i8);
    let overflow = || Error::decimal_overflow(format!("Decimal math overflow of {}", plain_name(to)));
    let compute = |left: i256, right: i256| {
        let at_scale = |number: i256, own: i8| number.checked_mul(power(scale - own));
        let computed = match operation {
            Operation::Plus => at_scale(left, left_scale)?.checked_add(at_scale(right, right_scale)?),
            Operation::Minus => at_scale(left, left_scale)?.checked_sub(at_scale(right, right_scale)?),
            Operation::Multiply => left.checked_mul(right),
            _ => left.checked_mul(power(scale - left_scale + right_scale))?.checked_div(right),
        };
        computed.filter(|computed| bound.wrapping_neg() < *computed && *computed < bound)
    };
    let row = |at: usize| -> Result<Option<i256>> {
        if left.is_null(at) || right.is_null(at) {
            return Ok(None);
        }
        if operation == Operation::Divide && right.value(at) == i256::ZERO {
            return Err(Error::illegal_division("Division by zero").into());
        }
        Ok(Some(compute(left.value(at), right.value(at)).ok_or_else(overflow)?))
    };
    let computed = (0..left.len()).map(row).collect::<Result<Decimal256Array>>()?;
    let computed = computed.with_precision_and_scale(DIGITS_MAX, scale)?;
    Ok(cast(&(Arc::new(computed) as ArrayRef), to)?)
}

fn numbers(array: &ArrayRef) -> Result<(i8, Decimal256Array)> {
    let scale = Operand::of(array.data_type()).map_or(0, |operand| operand.scale);
    let wide = cast(array, &DataType::Decimal256(DIGITS_MAX, scale))?;
    Ok((scale, wide.as_primitive::<Decimal256Type>().clone()))
}

fn power(digits: i8) -> i256 {
    i256::from_i128(10).wrapping_pow(u32::from(digits.unsigned_abs()))
}
