//! `round`, `floor`, `ceil`, `trunc`, each with a number of decimal places, which may be negative.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float32Array, Float64Array, Int64Array, new_null_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{binary, cast, try_binary};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::numbers::{array_bits, from_bits, rows, shaped, wrapped};
use super::parse::range;
use super::supertype::is_plain;
use crate::error::Error;
use crate::types::{is_address, plain_name};

/// The direction of rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Halves of floats to the even neighbour, halves of integers away from zero.
    Nearest,
    Down,
    Up,
    /// Towards 0.
    Zero,
}

pub const DIRECTIONS: [Direction; 4] = [Direction::Nearest, Direction::Down, Direction::Up, Direction::Zero];

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Direction::Nearest => "round",
            Direction::Down => "floor",
            Direction::Up => "ceil",
            Direction::Zero => "trunc",
        }
    }

    fn float(self, value: f64, places: i64) -> f64 {
        let whole = |value: f64| match self {
            Direction::Nearest => value.round_ties_even(),
            Direction::Down => value.floor(),
            Direction::Up => value.ceil(),
            Direction::Zero => value.trunc(),
        };
        let scale = scale(places) as f64;
        let rounded = match places {
            0 => whole(value),
            1.. => whole(value * scale) / scale,
            _ => whole(value / scale) * scale,
        };
        // If the scale exceeds a float's range there is nothing to round.
        if rounded.is_finite() || !value.is_finite() { rounded } else { value }
    }

    /// Rounds in Float32, which has fewer digits.
    fn single(self, value: f32, places: i64) -> f32 {
        let scale = scale(places) as f32;
        let rounded = match places {
            0 => self.float(value.into(), 0) as f32,
            1.. => self.float((value * scale).into(), 0) as f32 / scale,
            _ => self.float((value / scale).into(), 0) as f32 * scale,
        };
        if rounded.is_finite() || !value.is_finite() { rounded } else { value }
    }

    fn integer(self, value: i128, places: i64) -> i128 {
        if places >= 0 {
            return value;
        }
        let Some(scale) = 10i128.checked_pow(places.unsigned_abs().min(100) as u32) else { return 0 };
        match self {
            Direction::Nearest => (value + value.signum() * scale / 2) / scale * scale,
            Direction::Down => value.div_euclid(scale) * scale,
            Direction::Up => -((-value).div_euclid(scale)) * scale,
            Direction::Zero => value / scale * scale,
        }
    }
}

/// 10 to the power of `places`, or the largest integer if it does not fit, as in ClickHouse.
fn scale(places: i64) -> u64 {
    u32::try_from(places.unsigned_abs()).ok().and_then(|places| 10u64.checked_pow(places)).unwrap_or(u64::MAX)
}

/// `round`, `floor`, `ceil` or `trunc`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Rounding {
    direction: Direction,
    signature: Signature,
}

impl Rounding {
    pub fn new(direction: Direction) -> Self {
        Self { direction, signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        self.direction.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match &arguments[0] {
            number if is_plain(number) || number.is_null() || matches!(number, DataType::Decimal128(..)) => {
                Ok(number.clone())
            }
            other => {
                let (given, name) = (plain_name(other), self.name());
                Err(Error::illegal_type(format!("Illegal type {given} of argument of function {name}"))
                    .into())
            }
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=2)?;
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        if is_address(&args.arg_fields[0]) {
            return Err(Error::illegal_type(format!("Function {} does not take IPv4", self.name())).into());
        }
        if types.iter().any(DataType::is_null) {
            return Ok(Arc::new(Field::new(self.name(), DataType::Null, true)));
        }
        if let Some(places) = types.get(1).filter(|places| !places.is_integer()) {
            let what = format!(
                "Illegal type {} of the number of places of function {}",
                plain_name(places),
                self.name()
            );
            return Err(Error::illegal_type(what).into());
        }
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        let values = args.args[0].to_array(rows)?;
        let to = args.return_field.data_type();
        if to.is_null() {
            return shaped(new_null_array(to, rows), &args.args);
        }
        let places = match args.args.get(1) {
            Some(places) => wrapped(&places.to_array(rows)?),
            None => Int64Array::from(vec![0; rows]),
        };
        if places.iter().flatten().any(|places| i16::try_from(places).is_err()) {
            return Err(
                Error::argument_out_of_bound("Scale argument for rounding function is too large").into()
            );
        }
        let rounded: ArrayRef = match array_bits(&values) {
            Some(bits) => {
                let signed = values.data_type().is_signed_integer();
                let wide = |bits: u64| if signed { i128::from(bits as i64) } else { i128::from(bits) };
                let (low, high) = range(to);
                let nulls = NullBuffer::union(values.logical_nulls().as_ref(), places.nulls());
                let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let all = bits.iter().zip(places.values()).enumerate();
                let rounded = |(row, (&bits, &places)): (usize, (&u64, &i64))| {
                    if is_null(row) {
                        return Ok(0);
                    }
                    let rounded = self.direction.integer(wide(bits), places);
                    match (low..=high).contains(&rounded) {
                        true => Ok(rounded as u64),
                        false => {
                            let what = format!("A result of function {} is beyond {to}", self.name());
                            Err(Error::argument_out_of_bound(what).into())
                        }
                    }
                };
                let rounded = all.map(rounded).collect::<Result<Vec<u64>>>()?;
                from_bits(rounded.into(), nulls.clone(), to)
                    .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {to}")))?
            }
            None if let DataType::Decimal128(precision, scale) = *to => {
                let bound = 10_i128.pow(precision.into());
                let rounded = |value: i128, places: i64| {
                    let rounded = self.direction.integer(value, places - i64::from(scale));
                    (-bound < rounded && rounded < bound).then_some(rounded).ok_or_else(|| {
                        ArrowError::ComputeError(format!("Decimal overflow of function {}", self.name()))
                    })
                };
                let decimals = values.as_primitive::<Decimal128Type>();
                let rounded: Decimal128Array = try_binary(decimals, &places, rounded)?;
                Arc::new(rounded.with_data_type(to.clone()))
            }
            None if *to == DataType::Float32 => {
                let floats = values.as_primitive::<Float32Type>();
                let rounded: Float32Array =
                    binary(floats, &places, |value, places| self.direction.single(value, places))?;
                Arc::new(rounded)
            }
            None => {
                let floats = cast(&values, &DataType::Float64)?;
                let floats = floats.as_primitive::<Float64Type>();
                let rounded: Float64Array =
                    binary(floats, &places, |value, places| self.direction.float(value, places))?;
                cast(&rounded, to)?
            }
        };
        shaped(rounded, &args.args)
    }
}
