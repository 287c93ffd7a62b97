//! Conversions that must keep the value, as keys and defaults of dictionaries are converted: -1 is not
//! 18446744073709551615, and 1.5 is not 1.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::Result;

use super::convert::convert;
use super::numbers::{array_bits, from_bits};
use super::parse::{Overflow, parse, range};
use super::uuid;
use crate::error::Error;
use crate::types::plain_name;

/// The same values in another type.
pub fn exact(field: &Field, array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (_, DataType::FixedSizeBinary(16)) => uuid::parse(array),
        (from, to) if from.is_integer() && to.is_integer() => integers(array, to),
        (from, to) if is_number(from) && is_number(to) => floats(array, to),
        (from, to) if from.is_string() && !to.is_string() => parse(array, to, Overflow::IsError),
        _ => convert(field, array, to),
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// From or to a float: what comes back as another value, or not at all, did not fit.
fn floats(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let converted = cast(array, to)?;
    let (before, after) = (cast(array, &DataType::Float64)?, cast(&converted, &DataType::Float64)?);
    let pairs = before.as_primitive::<Float64Type>().iter().zip(after.as_primitive::<Float64Type>());
    let same = |(before, after): (Option<f64>, Option<f64>)| match (before, after) {
        (Some(before), Some(after)) => before == after || before.is_nan() && after.is_nan(),
        (before, after) => before.is_none() && after.is_none(),
    };
    if pairs.into_iter().all(same) { Ok(converted) } else { Err(cannot_convert(array.data_type(), to)) }
}

fn integers(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    let bits = array_bits(array).unwrap_or_default();
    let nulls = array.logical_nulls();
    let (low, high) = range(to);
    let fits = |value: u64| {
        let wide = if from.is_signed_integer() { i128::from(value as i64) } else { i128::from(value) };
        (low..=high).contains(&wide)
    };
    let always = range(from).0 >= low && range(from).1 <= high;
    let good = always
        || match &nulls {
            None => bits.iter().all(|&value| fits(value)),
            Some(nulls) => bits.iter().zip(nulls).all(|(&value, valid)| !valid || fits(value)),
        };
    from_bits(bits, nulls, to).filter(|_| good).ok_or_else(|| cannot_convert(from, to))
}

fn cannot_convert(from: &DataType, to: &DataType) -> datafusion::common::DataFusionError {
    let (from, to) = (plain_name(from), plain_name(to));
    Error::cannot_convert_type(format!("Value in column {from} cannot be safely converted into type {to}"))
        .into()
}
