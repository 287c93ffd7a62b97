//! `toUInt8` .. `toInt64`, `toFloat32`, `toFloat64`, `toString`, `toDate`, `toDateTime`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::{array_bits, from_bits, rows, shaped};
use crate::error::Error;
use crate::format;
use crate::types::plain_name;

/// The conversions and what they give.
pub const TARGETS: &[(&str, DataType)] = &[
    ("toUInt8", DataType::UInt8),
    ("toUInt16", DataType::UInt16),
    ("toUInt32", DataType::UInt32),
    ("toUInt64", DataType::UInt64),
    ("toInt8", DataType::Int8),
    ("toInt16", DataType::Int16),
    ("toInt32", DataType::Int32),
    ("toInt64", DataType::Int64),
    ("toFloat32", DataType::Float32),
    ("toFloat64", DataType::Float64),
    ("toString", DataType::Utf8),
    ("toDate", DataType::Date32),
    ("toDateTime", DataType::Timestamp(TimeUnit::Second, None)),
];

/// Integers above this are seconds, not days, when they become a Date.
const DAYS_MAX: u64 = 65_535;

/// One conversion.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Convert {
    name: &'static str,
    target: DataType,
    signature: Signature,
}

impl Convert {
    pub fn new(name: &'static str, target: DataType) -> Self {
        Self { name, target, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Convert {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.target.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields[0].is_nullable();
        Ok(Arc::new(Field::new(self.name, self.target.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        shaped(convert(&args.arg_fields[0], &array, &self.target)?, &args.args)
    }
}

/// Converts as ClickHouse's `toX` functions do: integers keep their low bits, text must be a whole number.
pub fn convert(field: &Field, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == target {
        return Ok(Arc::clone(array));
    }
    if *target == DataType::Utf8 {
        return to_string(field, array);
    }
    if matches!(from, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) {
        return parse(array, target);
    }
    if let Some(values) = array_bits(array) {
        let dates = *target == DataType::Date32;
        let values = match from {
            DataType::Timestamp(..) if dates => {
                values.iter().map(|&s| (s as i64).div_euclid(86_400) as u64).collect()
            }
            DataType::Date32 if matches!(target, DataType::Timestamp(..)) => {
                values.iter().map(|&days| days.wrapping_mul(86_400)).collect()
            }
            _ if dates => values.iter().map(|&v| if v > DAYS_MAX { v / 86_400 } else { v }).collect(),
            _ => values,
        };
        if let Some(converted) = from_bits(values, array.logical_nulls(), target) {
            return Ok(converted);
        }
    }
    if from.is_floating() && target.is_integer() {
        let seconds = cast(array, &DataType::Float64)?;
        let bits: Vec<u64> = seconds
            .as_primitive::<datafusion::arrow::datatypes::Float64Type>()
            .values()
            .iter()
            .map(|&v| truncated(v))
            .collect();
        return from_bits(bits.into(), array.logical_nulls(), target)
            .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {target}")));
    }
    Ok(cast(array, target)?)
}

/// A float's integer part as 64 bits, negative or not.
fn truncated(value: f64) -> u64 {
    if value < 0.0 { value as i64 as u64 } else { value as u64 }
}

fn parse(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: true, ..Default::default() };
    let parsed = cast_with_options(array, target, &options)?;
    let texts = cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    match (0..array.len()).find(|&row| parsed.is_null(row) && texts.is_valid(row)) {
        None => Ok(parsed),
        Some(row) => {
            let (text, name) = (texts.value(row), plain_name(target));
            Err(Error::cannot_parse_text(format!("Cannot parse string '{text}' as {name}")).into())
        }
    }
}

fn to_string(field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let texts: StringArray = format::texts(field, array)?;
    Ok(Arc::new(texts))
}
