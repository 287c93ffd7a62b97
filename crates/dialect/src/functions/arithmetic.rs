//! `+ - * / %` and `intDiv` by ClickHouse's rules: results wide enough for their operands, unsigned where both
//! sides are, wrapping at 64 bits, and `/` always a float. A date and a number is days later or earlier, a time seconds.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, TimeUnit};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::decimals;
use super::numbers::{Bits, bits, from_bits, rows, shaped, union};
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
    /// Of a division that has no result, 0.
    IntDivOrZero,
}

impl Operation {
    /// ClickHouse's function of the same meaning.
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

    /// Returns the error of types that are not calculated with.
    pub fn no_types(self, left: &DataType, right: &DataType) -> Error {
        let (left, right, name) = (plain_name(left), plain_name(right), self.name());
        Error::illegal_type(format!("Illegal types {left} and {right} of arguments of function {name}"))
    }

    /// The type of the result, or `None` when the operands are not numbers, or a date or time and a number.
    pub fn result_type(self, left: &DataType, right: &DataType) -> Option<DataType> {
        if let Some(shifted) = self.shifted(left, right) {
            return Some(shifted);
        }
        if let Some(decimal) = decimals::result_type(self, left, right) {
            return Some(decimal);
        }
        let (left_type, right_type) = (left, right);
        let (left, right) = (Number::of(left)?, Number::of(right)?);
        // A decimal and a float are floats; nothing else of decimals is left here.
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

    /// A date and days, or a time and seconds; or how many are between two of them.
    fn shifted(self, left: &DataType, right: &DataType) -> Option<DataType> {
        let is_whole = |data_type| Number::of(data_type).is_some_and(|number| !number.float);
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

/// A date, or a time in seconds.
fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(TimeUnit::Second, _))
}

#[derive(Clone, Copy)]
struct Number {
    bytes: usize,
    signed: bool,
    float: bool,
}

impl Number {
    fn of(data_type: &DataType) -> Option<Number> {
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
        Some(Number { bytes, signed, float })
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
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let result = self.return_type(&types)?;
        // What a date is called in ClickHouse, its days are called, too.
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
        let array = match (bits(&args.args[0])?, bits(&args.args[1])?) {
            (Some((left, left_nulls)), Some((right, right_nulls))) if *to != DataType::Float64 => {
                let nulls = union(left_nulls, right_nulls, rows);
                let values = match self.operation {
                    Operation::Plus => left.zip(&right, rows, u64::wrapping_add),
                    Operation::Minus => left.zip(&right, rows, u64::wrapping_sub),
                    Operation::Multiply => left.zip(&right, rows, u64::wrapping_mul),
                    // ClickHouse takes one for another where one has a sign and the other is beyond its numbers.
                    Operation::IntDivOrZero
                        if is_signed(&args.arg_fields[0]) != is_signed(&args.arg_fields[1]) =>
                    {
                        let signed = [0, 1].map(|i| is_signed(&args.arg_fields[i]));
                        let bound = |i: usize| {
                            i64::MAX as u64
                                >> (64 - 8 * args.arg_fields[i].data_type().primitive_width().unwrap_or(8))
                        };
                        let fits =
                            |i: usize, bits: u64| if signed[i] { bits as i64 >= 0 } else { bits <= bound(i) };
                        let is_out = |row: usize| match signed {
                            [true, _] => !fits(1, right.at(row)),
                            _ => !fits(1, right.at(row)) || !fits(0, left.at(row)),
                        };
                        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                        if (0..rows).any(|row| !is_null(row) && is_out(row)) {
                            let what =
                                "Function intDivOrZero does not divide these numbers with and without a sign";
                            return Err(Error::argument_out_of_bound(what).into());
                        }
                        divide(&left, &right, rows, signed, false)
                    }
                    // The least number has no opposite; that is 0, too.
                    Operation::IntDivOrZero if is_signed(&args.arg_fields[0]) => {
                        let least = least(args.arg_fields[0].data_type());
                        left.zip(&right, rows, |l, r| match (l as i64, r as i64) {
                            (l, -1) if l == least => 0,
                            (l, r) => l.checked_div(r).unwrap_or(0) as u64,
                        })
                    }
                    Operation::IntDivOrZero => {
                        divide(&left, &right, rows, [0, 1].map(|i| is_signed(&args.arg_fields[i])), false)
                    }
                    Operation::Modulo | Operation::IntDiv | Operation::Divide => {
                        let is_null = |i: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(i));
                        if (0..rows).any(|i| right.at(i) == 0 && !is_null(i)) {
                            return Err(Error::illegal_division("Division by zero").into());
                        }
                        let signed = [0, 1].map(|i| is_signed(&args.arg_fields[i]));
                        if self.operation != Operation::Divide && signed == [true, true] {
                            let least = least(args.arg_fields[0].data_type());
                            let is_out = |i| left.at(i) as i64 == least && right.at(i) as i64 == -1;
                            if (0..rows).any(|i| is_out(i) && !is_null(i)) {
                                let what = "Division of minimal signed number by minus one";
                                return Err(Error::illegal_division(what).into());
                            }
                        }
                        divide(&left, &right, rows, signed, self.operation == Operation::Modulo)
                    }
                };
                from_bits(in_range(values, &args.return_field).into(), nulls, to)
                    .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {to}")))?
            }
            _ if matches!(to, DataType::Decimal128(..) | DataType::Decimal256(..)) => decimals::computed(
                self.operation,
                &args.args[0].to_array(rows)?,
                &args.args[1].to_array(rows)?,
                to,
            )?,
            _ => self.floats(&args.args, rows, to)?,
        };
        shaped(array, &args.args)
    }
}

/// A Date has 16 bits, and a DateTime 32.
fn in_range(mut values: Vec<u64>, field: &Field) -> Vec<u64> {
    let bits = match field.data_type() {
        DataType::Date32 if is_bounded(field) => u64::from(u16::MAX),
        DataType::Timestamp(..) if is_bounded(field) => u64::from(u32::MAX),
        _ => return values,
    };
    values.iter_mut().for_each(|value| *value &= bits);
    values
}

fn is_signed(field: &Field) -> bool {
    Number::of(field.data_type()).is_some_and(|number| number.signed)
}

/// The least number of a signed type.
fn least(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Int8 => i8::MIN.into(),
        DataType::Int16 => i16::MIN.into(),
        DataType::Int32 => i32::MIN.into(),
        _ => i64::MIN,
    }
}

/// The quotients or the remainders of integers, of whose operands some are `signed`; 0 of a division by zero.
fn divide(left: &Bits, right: &Bits, rows: usize, signed: [bool; 2], remainder: bool) -> Vec<u64> {
    let wide = |bits: u64, signed: bool| if signed { i128::from(bits as i64) } else { i128::from(bits) };
    match (signed, remainder) {
        ([false, false], true) => left.zip(right, rows, |l, r| l.checked_rem(r).unwrap_or(0)),
        ([false, false], false) => left.zip(right, rows, |l, r| l.checked_div(r).unwrap_or(0)),
        (_, true) => left
            .zip(right, rows, |l, r| wide(l, signed[0]).checked_rem(wide(r, signed[1])).unwrap_or(0) as u64),
        (_, false) => left
            .zip(right, rows, |l, r| wide(l, signed[0]).checked_div(wide(r, signed[1])).unwrap_or(0) as u64),
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
            // As ClickHouse computes it: of an infinite divisor it is NaN.
            Operation::Modulo => |a, b| a - (a / b).trunc() * b,
            Operation::IntDiv | Operation::IntDivOrZero => |a, b| (a / b).trunc(),
        };
        let result: Float64Array = datafusion::arrow::compute::binary(&left, &right, f)?;
        if self.operation == Operation::IntDiv
            && result.iter().flatten().any(|quotient| !quotient.is_finite())
        {
            return Err(Error::illegal_division("Division by zero").into());
        }
        Ok(cast(&result, to)?)
    }
}
