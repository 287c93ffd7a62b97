//! Conversions that must keep the value, for keys and defaults of dictionaries: -1 does not become
//! 18446744073709551615, nor 1.5 1.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::Result;
use granary_dict::{DataType as ClickHouseType, DictError};

use super::convert::{between_times, convert};
use super::cut::cut;
use super::cut_decimal::to_decimal;
use super::numbers::{array_bits, from_bits};
use super::parse::{Reading, parse, range};
use super::uuid;
use crate::error::Error;
use crate::text;
use crate::types::{declared, plain_name};

/// Converts values to the type of another field.
pub fn exact(field: &Field, array: &ArrayRef, to: &Field) -> Result<ArrayRef> {
    match declared(to) {
        Some(wanted) => adopted(field, array, &wanted),
        None => exact_in_arrow(field, array, to.data_type()),
    }
}

/// Converts values to a type by other rules than Arrow's.
pub fn adopted(field: &Field, array: &ArrayRef, to: &ClickHouseType) -> Result<ArrayRef> {
    if array.data_type().is_null() {
        return Ok(new_null_array(&to.to_arrow(), array.len()));
    }
    if matches!(to, ClickHouseType::Array(_))
        && !(array.data_type().is_nested() || array.data_type().is_string())
    {
        let from = plain_name(array.data_type());
        return Err(Error::type_mismatch(format!(
            "Only an array or a text of one can become {to}, not {from}"
        ))
        .into());
    }
    // Arrow would read an address as a number, and vice versa.
    let by_text = to.inner() == &ClickHouseType::Ipv6
        && declared(field).is_some_and(|from| from.inner() == &ClickHouseType::Ipv4);
    let array = &cut(field, array, to)?;
    let adopted = match (by_text, to.to_arrow()) {
        (true, _) => to.adopt(&(Arc::new(text::texts(field, array)?) as ArrayRef)),
        // A date begins at midnight of its zone.
        (false, DataType::Timestamp(unit, zone)) if array.data_type() == &DataType::Date32 => {
            let midnight = between_times(array, &DataType::Timestamp(unit, zone))?;
            to.adopt(midnight.as_ref().unwrap_or(array))
        }
        _ => to.adopt(array),
    };
    adopted.map_err(|error| unreadable(array, to, error).into())
}

/// The error, as ClickHouse names it for a text that is no value of the type.
fn unreadable(array: &ArrayRef, to: &ClickHouseType, error: DictError) -> Error {
    let from = array.data_type();
    match to.inner() {
        ClickHouseType::Array(_) if from.is_string() => Error::cannot_read_array(error.message()),
        ClickHouseType::Array(_) if from.is_list() => error.into(),
        _ if !from.is_string() => Error::cannot_convert_type(error.message()),
        ClickHouseType::Ipv4 => Error::cannot_parse_ipv4(error.message()),
        ClickHouseType::Ipv6 => Error::cannot_parse_ipv6(error.message()),
        ClickHouseType::DateTime64 { .. } => Error::cannot_parse_datetime(error.message()),
        ClickHouseType::Decimal { .. } if are_numbers(array) => Error::argument_out_of_bound(error.message()),
        _ => error.into(),
    }
}

/// Whether all texts are numbers, so that the error is that one is too large.
fn are_numbers(texts: &ArrayRef) -> bool {
    let is_number =
        |text: &str| text.ends_with(|last: char| last.is_ascii_digit()) && text.parse::<f64>().is_ok();
    cast(texts, &DataType::Utf8).is_ok_and(|texts| texts.as_string::<i32>().iter().flatten().all(is_number))
}

fn exact_in_arrow(field: &Field, array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (_, DataType::FixedSizeBinary(16)) => uuid::parse(array),
        (from, to) if from.is_integer() && to.is_integer() => integers(array, to),
        (from, to) if is_number(from) && is_number(to) => floats(array, to),
        (from, DataType::Decimal128(precision, scale)) if from.is_string() => {
            let (precision, scale) = (*precision, *scale as u8);
            adopted(field, array, &ClickHouseType::Decimal { precision, scale })
        }
        (from, DataType::Boolean) if from.is_string() => parse(array, to, Reading::Exact)
            .map_err(|error| Error::cannot_parse_bool(Error::from(error).message).into()),
        (from, to) if from.is_string() && !to.is_string() => parse(array, to, Reading::Exact),
        _ => match to_decimal(array, to)? {
            Some(decimals) => Ok(decimals),
            None => convert(field, array, to),
        },
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// From or to a float: a value that does not convert back to itself did not fit.
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
