//! Conversion of keys and defaults to the dictionary's types: ClickHouse is stricter there than elsewhere.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, Float64Type, Int64Type, TimeUnit, UInt8Type, UInt64Type,
    i256,
};
use datafusion::common::Result;
use granary_dialect::Error;
use granary_dialect::functions::{check_range, exact, inserted, range, trimmed};
use granary_dialect::types::{
    declared, fixed_bytes, is_bounded, is_time, is_wide, plain_field_name, type_name,
};
use granary_dict::{DataType as ClickHouseType, digits_of};

/// Converts values to the type of `to`. The zeros that pad a FixedString are not part of its text.
pub fn converted(field: &Field, array: &ArrayRef, to: &Field) -> Result<ArrayRef> {
    let is_special = is_address(to) || matches!(to.data_type(), DataType::FixedSizeBinary(_));
    let are_bytes = matches!(array.data_type(), DataType::FixedSizeBinary(_));
    if is_special && !is_address(field) && array.data_type().is_numeric() || are_bytes && is_wide(to) {
        return Err(no_conversion(&type_name(field), &type_name(to)).into());
    }
    if is_time(to.data_type()) && is_unsafe(array)? {
        return Err(unsafe_conversion(&type_name(field), &type_name(to)).into());
    }
    check_kept(field, array, to)?;
    if is_time(array.data_type()) && is_time(to.data_type()) && is_bounded(to) {
        check_range(field, array, to.data_type())?;
    }
    if array.data_type().is_integer()
        && to.data_type() == &DataType::Date32
        && !is_bounded(to)
        && are_days(array)?
    {
        return inserted(field, array, &ClickHouseType::Date32);
    }
    if let Some(seconds) = in_seconds(array, to)? {
        return exact(&Field::new("", seconds.data_type().clone(), true), &seconds, to);
    }
    let trimmed =
        (fixed_bytes(field).is_some() && array.data_type() == &DataType::Utf8).then(|| trimmed(array));
    exact(field, trimmed.as_ref().unwrap_or(array), to).map_err(|error| {
        let error = Error::from(error);
        match error.code == Error::attempt_to_read_after_eof("").code {
            true => Error::cannot_parse_text(error.message).into(),
            false => error.into(),
        }
    })
}

/// Converts like [`converted`], except that a text that is no value of the type becomes NULL, as in ClickHouse's casts
/// to a Nullable type.
pub fn converted_or_null(field: &Field, array: &ArrayRef, to: &Field) -> Result<ArrayRef> {
    let is_text = array.data_type().is_string() && fixed_bytes(field).is_none();
    // ClickHouse reads an empty text as the beginning of 1970.
    if is_text && is_time(to.data_type()) && !is_bounded(to) && has_empty(array)? {
        return Err(Error::cannot_parse_datetime("Cannot parse DateTime64 from an empty text").into());
    }
    match converted(field, array, to) {
        Err(_) if is_text => {
            // Most often all rows have the same text.
            let texts = cast(array, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            let mut last: Option<(&str, bool)> = None;
            let wrong = (0..texts.len()).map(|row| {
                if texts.is_null(row) {
                    return Some(false);
                }
                let text = texts.value(row);
                let known = last.filter(|(known, _)| *known == text).map(|(_, wrong)| wrong);
                let wrong = known.unwrap_or_else(|| converted(field, &array.slice(row, 1), to).is_err());
                last = Some((text, wrong));
                Some(wrong)
            });
            let wrong = wrong.collect();
            converted(field, &nullif(array, &wrong)?, to)
        }
        result => result,
    }
}

/// Refuses conversions that lose something: integers of more than 64 bits or times to integers, times or floats, and
/// floats to such integers; also texts of digits that ClickHouse does not read as a moment.
fn check_kept(field: &Field, array: &ArrayRef, to: &Field) -> Result<()> {
    let lossy = || unsafe_conversion(&plain_field_name(field), &plain_field_name(to));
    let target = to.data_type();
    match array.data_type() {
        DataType::Decimal128(..) | DataType::Decimal256(..) if is_wide(field) => {
            let wide = cast(array, &DataType::Decimal256(76, 0))?;
            let mut numbers = wide.as_primitive::<Decimal256Type>().iter().flatten();
            let within = |(low, high): (i128, i128)| {
                let range = i256::from_i128(low)..=i256::from_i128(high);
                move |number: i256| range.contains(&number)
            };
            let fits = match target {
                target if target.is_integer() => numbers.all(within(range(target))),
                DataType::Timestamp(TimeUnit::Second, _) => numbers.all(within(range(&DataType::UInt32))),
                DataType::Timestamp(..) => {
                    return Err(no_conversion(&plain_field_name(field), &plain_field_name(to)).into());
                }
                DataType::Float32 => {
                    numbers.all(|number| is_exact(number, f32::MANTISSA_DIGITS, f32::MAX_EXP))
                }
                DataType::Float64 => {
                    numbers.all(|number| is_exact(number, f64::MANTISSA_DIGITS, f64::MAX_EXP))
                }
                _ => true,
            };
            if fits { Ok(()) } else { Err(lossy().into()) }
        }
        from if from.is_floating() && is_wide(to) => {
            let floats = cast(array, &DataType::Float64)?;
            let is_whole = |float: f64| !float.is_finite() || float.fract() == 0.0;
            match floats.as_primitive::<Float64Type>().iter().flatten().all(is_whole) {
                true => Ok(()),
                false => Err(lossy().into()),
            }
        }
        DataType::Timestamp(unit, _) if *unit != TimeUnit::Second && target.is_integer() => {
            let ticks = cast(array, &DataType::Int64)?;
            let (per_second, (low, high)) = (10i64.pow(digits_of(*unit).into()), range(target));
            let fits = |ticks: i64| (low..=high).contains(&i128::from(ticks / per_second));
            match ticks.as_primitive::<Int64Type>().iter().flatten().all(fits) {
                true => Ok(()),
                false => Err(Error::decimal_overflow("Convert overflow").into()),
            }
        }
        // A Date takes seconds, too.
        DataType::UInt64 | DataType::Int64
            if matches!(target, DataType::Date32 | DataType::Timestamp(TimeUnit::Second, _))
                && is_bounded(to) =>
        {
            let seconds = cast(array, &DataType::UInt64)?;
            match seconds.as_primitive::<UInt64Type>().iter().flatten().all(|at| at <= u32::MAX.into()) {
                true => Ok(()),
                false => Err(lossy().into()),
            }
        }
        from if from.is_string() && matches!(target, DataType::Timestamp(..)) && !is_bounded(to) => {
            let texts = cast(array, &DataType::Utf8)?;
            let is_short = |text: &str| text.len() < 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            match texts.as_string::<i32>().iter().flatten().find(|text| is_short(text)) {
                None => Ok(()),
                Some(text) => {
                    Err(Error::cannot_parse_datetime(format!("Cannot parse DateTime: {text}")).into())
                }
            }
        }
        _ => Ok(()),
    }
}

/// Moments with parts of a second, for a Decimal (with those parts) or an integer of more than 64 bits (whole seconds);
/// `None` for other types.
fn in_seconds(array: &ArrayRef, to: &Field) -> Result<Option<ArrayRef>> {
    let DataType::Timestamp(unit, _) = *array.data_type() else { return Ok(None) };
    if unit == TimeUnit::Second || !to.data_type().is_decimal() {
        return Ok(None);
    }
    let (ticks, digits) = (cast(array, &DataType::Int64)?, digits_of(unit));
    let ticks = ticks.as_primitive::<Int64Type>();
    if is_wide(to) {
        let per_second = 10i64.pow(digits.into());
        return Ok(Some(Arc::new(ticks.unary::<_, Int64Type>(|ticks| ticks / per_second))));
    }
    let seconds = ticks.unary::<_, Decimal128Type>(i128::from);
    Ok(Some(Arc::new(seconds.with_precision_and_scale(38, digits as i8)?)))
}

/// Whether one of the texts is empty.
fn has_empty(texts: &ArrayRef) -> Result<bool> {
    let texts = cast(texts, &DataType::Utf8)?;
    Ok(texts.as_string::<i32>().iter().flatten().any(str::is_empty))
}

/// Whether all numbers are days that a Date32 can hold; greater ones are seconds.
fn are_days(array: &ArrayRef) -> Result<bool> {
    const DAYS_MAX: i128 = 120_529;
    let days = cast(array, &DataType::Decimal128(38, 0))?;
    Ok(days.as_primitive::<Decimal128Type>().iter().flatten().all(|days| days <= DAYS_MAX))
}

/// Refuses a UInt8 other than 0 and 1: ClickHouse compares it unchanged with a Bool, which finds nothing. Numbers of
/// other types become `true`.
pub fn check_truth(field: &Field, array: &ArrayRef, to: &Field) -> Result<()> {
    if to.data_type() != &DataType::Boolean || array.data_type() != &DataType::UInt8 {
        return Ok(());
    }
    match array.as_primitive::<UInt8Type>().iter().flatten().all(|number| number <= 1) {
        true => Ok(()),
        false => Err(unsafe_conversion(&type_name(field), &type_name(to)).into()),
    }
}

fn no_conversion(from: &str, to: &str) -> Error {
    Error::cannot_convert_type(format!("Conversion from {from} to {to} is not supported"))
}

fn unsafe_conversion(from: &str, to: &str) -> Error {
    Error::cannot_convert_type(format!("Value in column {from} cannot be safely converted into type {to}"))
}

/// Whether a float with `digits` binary digits and exponents up to `exponent_max` can hold the integer exactly.
fn is_exact(number: i256, digits: u32, exponent_max: i32) -> bool {
    let magnitude = number.wrapping_abs();
    let length = 256 - magnitude.leading_zeros();
    length.cast_signed() <= exponent_max && length.saturating_sub(digits) <= magnitude.trailing_zeros()
}

fn is_address(field: &Field) -> bool {
    declared(field).is_some_and(|declared| declared.inner() == &ClickHouseType::Ipv4)
}

/// Whether some numbers cannot count time: floats, and negative integers.
fn is_unsafe(array: &ArrayRef) -> Result<bool> {
    Ok(match array.data_type() {
        DataType::Float32 | DataType::Float64 => array.null_count() < array.len(),
        data_type if data_type.is_signed_integer() => {
            let wide = cast(array, &DataType::Int64)?;
            wide.as_primitive::<Int64Type>().iter().flatten().any(|number| number < 0)
        }
        _ => false,
    })
}
