//! `+ - * / %` and `intDiv` by ClickHouse's rules: results are wide enough for their operands, unsigned if both are,
//! wrap at 64 bits, and `/` is always a float. A date plus a number counts days, a time seconds.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, TimeUnit, UInt64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::decimal_arithmetic;
use super::numbers::{bits, from_bits, rows, shaped, union};
use crate::error::Error;
use crate::types::{is_address, is_bounded, is_wide, plain_name, type_name};

/// The operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Plus,
    Minus,
    Multiply,
    Divide,
    Modulo,
    IntDiv,
    /// 0 where a division has no result.
    IntDivOrZero,
}

impl Operation {
    /// The name of ClickHouse's function.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Plus => "plus",
            Operation::Minus => "minus",
            Operation::Multiply => "multiply",
            Operation::Divide => "divide",
            Operation::Modulo => "modulo",
            Operation::IntDiv => "intDiv",
            Operation::IntDivOrZero => "intDivOrZero",
        }
    }

    /// The error of types without arithmetic.
    pub fn no_types(self, left: &DataType, right: &DataType) -> Error {
        let (left, right, name) = (plain_name(left), plain_name(right), self.name());
        Error::illegal_type(format!("Illegal types {left} and {right} of arguments of function {name}"))
    }

    /// The type of the result; `None` unless the operands are numbers, or a date or time and a number.
    pub fn result_type(self, left: &DataType, right: &DataType) -> Option<DataType> {
        if let Some(shifted) = self.shifted(left, right) {
            return Some(shifted);
        }
        if let Some(decimal) = decimal_arithmetic::result_type(self, left, right) {
            return Some(decimal);
        }
        let (left_type, right_type) = (left, right);
        let (left, right) = (NumericType::of(left)?, NumericType::of(right)?);
        // A decimal and a float make a float; no other combination with decimals gets here.
        let is_decimal =
            |data_type: &DataType| matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..));
        let of_decimals = [left_type, right_type].into_iter().any(is_decimal);
        if of_decimals
            && (self == Operation::Modulo || ![left_type, right_type].into_iter().any(DataType::is_floating))
        {
            return None;
        }
        if self == Operation::IntDivOrZero && (left.float || right.float) {
            return None;
        }
        if self == Operation::Divide || (left.float || right.float) && self != Operation::IntDiv {
            return Some(DataType::Float64);
        }
        let widest = left.bytes.max(right.bytes);
        Some(match self {
            Operation::Plus | Operation::Multiply => integer(left.signed || right.signed, 2 * widest),
            Operation::Minus => integer(true, 2 * widest),
            Operation::Modulo if left.signed => integer(true, 2 * right.bytes),
            Operation::Modulo => integer(false, right.bytes),
            Operation::IntDiv | Operation::IntDivOrZero => integer(left.signed || right.signed, left.bytes),
            Operation::Divide => DataType::Float64,
        })
    }

    /// The type of a date plus days, a time plus seconds, or the difference of two of them.
    fn shifted(self, left: &DataType, right: &DataType) -> Option<DataType> {
        let is_whole = |data_type| NumericType::of(data_type).is_some_and(|number| !number.float);
        match self {
            Operation::Minus if is_moment(left) && is_moment(right) => {
                (left.primitive_width() == right.primitive_width()).then_some(DataType::Int32)
            }
            Operation::Plus | Operation::Minus if is_moment(left) && is_whole(right) => Some(left.clone()),
            Operation::Plus if is_whole(left) && is_moment(right) => Some(right.clone()),
            _ => None,
        }
    }
}

/// Whether the type is a date, or a time in seconds.
fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(TimeUnit::Second, _))
}

#[derive(Clone, Copy)]
struct NumericType {
    bytes: usize,
    signed: bool,
    float: bool,
}

impl NumericType {
    fn of(data_type: &DataType) -> Option<NumericType> {
        let (bytes, signed, float) = match data_type {
            DataType::UInt8 | DataType::Boolean => (1, false, false),
            DataType::UInt16 => (2, false, false),
            DataType::UInt32 => (4, false, false),
            DataType::UInt64 => (8, false, false),
            DataType::Int8 => (1, true, false),
            DataType::Int16 => (2, true, false),
            DataType::Int32 => (4, true, false),
            DataType::Int64 => (8, true, false),
            DataType::Decimal128(..) | DataType::Decimal256(..) => (8, true, true),
            DataType::Float32 => (4, true, true),
            DataType::Float64 => (8, true, true),
            _ => return None,
        };
        Some(NumericType { bytes, signed, float })
    }
}

fn integer(signed: bool, bytes: usize) -> DataType {
    match (signed, bytes) {
        (false, 1) => DataType::UInt8,
        (false, 2) => DataType::UInt16,
        (false, 4) => DataType::UInt32,
        (false, _) => DataType::UInt64,
        (true, 1) => DataType::Int8,
        (true, 2) => DataType::Int16,
        (true, 4) => DataType::Int32,
        (true, _) => DataType::Int64,
    }
}

/// One operation as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Arithmetic {
    operation: Operation,
    signature: Signature,
}

impl Arithmetic {
    pub fn new(operation: Operation) -> Self {
        Self { operation, signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let (left, right) = (&arguments[0], &arguments[1]);
        if left.is_null() || right.is_null() {
            return Ok(DataType::Null);
        }
        self.operation.result_type(left, right).ok_or_else(|| self.operation.no_types(left, right).into())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 2..=2)?;
        if let Some(wide) = args.arg_fields.iter().find(|field| is_wide(field) || is_address(field)) {
            let (given, name) = (type_name(wide), self.operation.name());
            return Err(Error::illegal_type(format!("Function {name} does not take {given} here")).into());
        }
        let days: Vec<bool> = args
            .arg_fields
            .iter()
            .filter(|field| field.data_type() == &DataType::Date32)
            .map(|field| is_bounded(field))
            .collect();
        if days == [true, false] || days == [false, true] {
            let what = format!("Function {} does not take a Date and a Date32", self.operation.name());
            return Err(Error::illegal_type(what).into());
        }
        let are_times =
            args.arg_fields.iter().all(|field| matches!(field.data_type(), DataType::Timestamp(..)));
        if are_times && let Some(fine) = args.arg_fields.iter().find(|field| !is_bounded(field)) {
            let (given, name) = (type_name(fine), self.operation.name());
            return Err(Error::illegal_type(format!(
                "Function {name} does not take two times of which one is {given} here: dateDiff and age do"
            ))
            .into());
        }
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let result = self.return_type(&types)?;
        // A shifted date keeps ClickHouse's name of the type.
        let metadata =
            args.arg_fields.iter().find(|field| is_moment(&result) && field.data_type() == &result);
        let metadata = metadata.map(|field| field.metadata().clone()).unwrap_or_default();
        Ok(Arc::new(Field::new(self.name(), result, nullable).with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type();
        let rows = rows(&args.args, args.number_rows);
        if to.is_null() {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::Null));
        }
        if is_moment(to) {
            check_counts(&args, rows)?;
        }
        let array = match (bits(&args.args[0])?, bits(&args.args[1])?) {
            (Some((left, left_nulls)), Some((right, right_nulls))) if *to != DataType::Float64 => {
                let nulls = union(left_nulls, right_nulls, rows);
                let values = match self.operation {
                    Operation::Plus => left.zip(&right, rows, u64::wrapping_add),
                    Operation::Minus => left.zip(&right, rows, u64::wrapping_sub),
                    Operation::Multiply => left.zip(&right, rows, u64::wrapping_mul),
                    Operation::Modulo | Operation::IntDiv | Operation::IntDivOrZero | Operation::Divide => {
                        let division = Division::of(self.operation, &args.arg_fields);
                        let is_null = |i: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(i));
                        if self.operation != Operation::IntDivOrZero {
                            for i in (0..rows).filter(|i| !is_null(*i)) {
                                division.check(left.at(i), right.at(i))?;
                            }
                        }
                        left.zip(&right, rows, |l, r| division.result(l, r))
                    }
                };
                let values = in_range(values, nulls.as_ref(), &args.return_field)?;
                from_bits(values.into(), nulls, to)
                    .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {to}")))?
            }
            _ if matches!(to, DataType::Decimal128(..) | DataType::Decimal256(..)) => {
                decimal_arithmetic::computed(
                    self.operation,
                    &args.args[0].to_array(rows)?,
                    &args.args[1].to_array(rows)?,
                    to,
                )?
            }
            _ => self.floats(&args.args, rows, to)?,
        };
        shaped(array, &args.args)
    }
}

/// Refuses to shift a moment by 2^63 or more.
fn check_counts(args: &ScalarFunctionArgs, rows: usize) -> Result<()> {
    for (value, field) in args.args.iter().zip(&args.arg_fields) {
        if field.data_type() != &DataType::UInt64 {
            continue;
        }
        let counts = value.to_array(rows)?;
        if counts.as_primitive::<UInt64Type>().iter().flatten().any(|count| i64::try_from(count).is_err()) {
            return Err(Error::decimal_overflow("Numeric overflow").into());
        }
    }
    Ok(())
}

/// The days since 1970 of the years 1 to 9999.
const PRINTED_DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;

/// Wraps days to a Date's 16 bits, and seconds to a DateTime's 32.
///
/// # Errors
/// A Date32 would be of a year without four digits.
fn in_range(mut values: Vec<u64>, nulls: Option<&NullBuffer>, field: &Field) -> Result<Vec<u64>> {
    let bits = match field.data_type() {
        DataType::Date32 if is_bounded(field) => u64::from(u16::MAX),
        DataType::Timestamp(..) if is_bounded(field) => u64::from(u32::MAX),
        DataType::Date32 => {
            let is_beyond = |(i, days): (usize, &u64)| {
                nulls.is_none_or(|nulls| nulls.is_valid(i)) && !PRINTED_DAYS.contains(&(*days as i64))
            };
            if values.iter().enumerate().any(is_beyond) {
                return Err(Error::argument_out_of_bound("A number of days leads beyond Date32").into());
            }
            return Ok(values);
        }
        _ => return Ok(values),
    };
    values.iter_mut().for_each(|value| *value &= bits);
    Ok(values)
}

fn is_signed(field: &Field) -> bool {
    NumericType::of(field.data_type()).is_some_and(|number| number.signed)
}

/// A division of integers, with each operand's signedness.
struct Division {
    is_remainder: bool,
    signed: [bool; 2],
    /// Bits of the dividend, and of the divisor.
    bits: [u32; 2],
}

impl Division {
    fn of(operation: Operation, fields: &[FieldRef]) -> Self {
        let bits = |i: usize| 8 * fields[i].data_type().primitive_width().unwrap_or(8) as u32;
        Self {
            is_remainder: operation == Operation::Modulo,
            signed: [0, 1].map(|i| is_signed(&fields[i])),
            bits: [0, 1].map(bits),
        }
    }

    /// The operands as they are divided. For a quotient, if one is signed, ClickHouse reads both as signed in their own
    /// width: 255 of a UInt8 is -1. A divisor narrower than the dividend keeps its value.
    fn sides(&self, left: u64, right: u64) -> (i128, i128) {
        let with_sign = |number: u64, bits: u32| i128::from((number << (64 - bits)) as i64 >> (64 - bits));
        let wide = |number: u64, signed: bool| if signed { number as i64 as i128 } else { number.into() };
        let is_taken = !self.is_remainder && self.signed != [false, false];
        match is_taken {
            true if self.bits[0] <= self.bits[1] => {
                (with_sign(left, self.bits[0]), with_sign(right, self.bits[1]))
            }
            true => (with_sign(left, self.bits[0]), wide(right, self.signed[1])),
            false => (wide(left, self.signed[0]), wide(right, self.signed[1])),
        }
    }

    /// Whether the least number is divided by -1, which overflows.
    fn is_beyond(&self, left: u64, right: u64) -> bool {
        let is_signed =
            if self.is_remainder { self.signed == [true, true] } else { self.signed != [false, false] };
        is_signed && self.sides(left, right) == (-1 << (self.bits[0] - 1), -1)
    }

    fn check(&self, left: u64, right: u64) -> Result<(), Error> {
        if right == 0 {
            return Err(Error::illegal_division("Division by zero"));
        }
        match self.is_beyond(left, right) {
            true => Err(Error::illegal_division("Division of minimal signed number by minus one")),
            false => Ok(()),
        }
    }

    /// The quotient or the remainder; 0 where [`check`](Self::check) refuses.
    fn result(&self, left: u64, right: u64) -> u64 {
        if self.signed == [false, false] {
            let result = if self.is_remainder { left.checked_rem(right) } else { left.checked_div(right) };
            return result.unwrap_or(0);
        }
        let sides = self.sides(left, right);
        let result = match self.is_remainder {
            _ if self.is_beyond(left, right) => None,
            true => sides.0.checked_rem(sides.1),
            false => sides.0.checked_div(sides.1),
        };
        result.unwrap_or(0) as u64
    }
}

impl Arithmetic {
    fn floats(&self, arguments: &[ColumnarValue], rows: usize, to: &DataType) -> Result<ArrayRef> {
        let side = |argument: &ColumnarValue| -> Result<Float64Array> {
            let array = cast(&argument.to_array(rows)?, &DataType::Float64)?;
            Ok(array.as_primitive::<Float64Type>().clone())
        };
        let (left, right) = (side(&arguments[0])?, side(&arguments[1])?);
        let f: fn(f64, f64) -> f64 = match self.operation {
            Operation::Plus => |a, b| a + b,
            Operation::Minus => |a, b| a - b,
            Operation::Multiply => |a, b| a * b,
            Operation::Divide => |a, b| a / b,
            // As ClickHouse computes it: NaN for an infinite divisor.
            Operation::Modulo => |a, b| a - (a / b).trunc() * b,
            Operation::IntDiv => |a, b| (a / b).trunc(),
            Operation::IntDivOrZero => |a, b| if b == 0.0 { 0.0 } else { (a / b).trunc() },
        };
        let result: Float64Array = datafusion::arrow::compute::binary(&left, &right, f)?;
        if self.operation == Operation::IntDiv
            && result.iter().flatten().any(|quotient| !quotient.is_finite())
        {
            return Err(Error::illegal_division("Division by zero").into());
        }
        let integers = cast(&result, to)?;
        if integers.null_count() > result.null_count() {
            let text =
                "Cannot perform integer division, because it will produce infinite or too large number";
            return Err(Error::illegal_division(text).into());
        }
        Ok(integers)
    }
}
