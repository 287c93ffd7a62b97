//! Parses texts as numbers, dates and times, by ClickHouse's rules and with its errors.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array, TimestampSecondArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, nullif};
use datafusion::arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampSecondType};
use datafusion::common::{DataFusionError, Result};
use granary_dict::{days_written, seconds_written};

use super::local_time::{self, GapPolicy};
use super::numbers::from_bits;
use crate::error::Error;
use crate::types::plain_name;

/// The rules by which texts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The rules of CAST: an integer beyond its type keeps its low bits, as in `toUInt8('256')`, and times are read in
    /// the forms that people write.
    Cast,
    /// The rules of keys and lists: an integer beyond its type is an error, and times must be as ClickHouse writes
    /// them, or Unix seconds.
    Exact,
}

/// What to do with an integer beyond its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wraps,
    IsError,
}

/// Parses texts, each of which must be a whole value of the type.
pub fn parse(array: &ArrayRef, target: &DataType, reading: Reading) -> Result<ArrayRef> {
    let texts = cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    if let (Reading::Cast, DataType::Timestamp(TimeUnit::Second, zone)) = (reading, target) {
        let time =
            |text: &str| seconds_written(text, zone.as_deref()).map_err(|why| no_time(text, target, why));
        let seconds = texts.iter().map(|text| text.map(time).transpose());
        let seconds: TimestampSecondArray = seconds.collect::<Result<_, Error>>()?;
        return Ok(Arc::new(seconds.with_timezone_opt(zone.clone())));
    }
    if target.is_integer() {
        let overflow = match reading {
            Reading::Cast => Overflow::Wraps,
            Reading::Exact => Overflow::IsError,
        };
        let bits = texts.iter().map(|text| text.map_or(Ok(0), |text| integer(text, target, overflow)));
        let bits: Vec<u64> = bits.collect::<Result<_, Error>>()?;
        return integers(bits, texts.nulls().cloned(), target);
    }
    let parsed = others(array, target)?;
    match (0..texts.len()).find(|&row| texts.is_valid(row) && !is_whole(texts.value(row), &parsed, row)) {
        None => Ok(parsed),
        Some(row) => Err(failure(texts.value(row), target).into()),
    }
}

/// Parses texts; NULL for an invalid one.
pub fn parse_or_null(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let texts = cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    if let DataType::Timestamp(TimeUnit::Second, zone) = target {
        let seconds = texts.iter().map(|text| seconds_written(text?, zone.as_deref()).ok());
        return Ok(Arc::new(seconds.collect::<TimestampSecondArray>().with_timezone_opt(zone.clone())));
    }
    if !target.is_integer() {
        let parsed = others(array, target)?;
        // ClickHouse turns a day that does not exist into another one.
        let is_no_day =
            |row: &usize| parsed.is_null(*row) && texts.is_valid(*row) && is_day_form(texts.value(*row));
        if *target == DataType::Date32
            && let Some(row) = (0..texts.len()).find(is_no_day)
        {
            return Err(failure(texts.value(row), target).into());
        }
        let whole =
            (0..texts.len()).map(|row| texts.is_valid(row) && is_whole(texts.value(row), &parsed, row));
        return Ok(nullif(&parsed, &whole.map(|whole| Some(!whole)).collect())?);
    }
    let bits: Vec<Option<u64>> =
        texts.iter().map(|text| integer(text?, target, Overflow::IsError).ok()).collect();
    let nulls = bits.iter().map(Option::is_some).collect::<Vec<bool>>();
    integers(bits.into_iter().map(Option::unwrap_or_default).collect(), Some(nulls.into()), target)
}

fn integers(bits: Vec<u64>, nulls: Option<NullBuffer>, target: &DataType) -> Result<ArrayRef> {
    from_bits(bits.into(), nulls, target)
        .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {target}")))
}

/// Floats, dates and times as Arrow reads them, and besides ten digits as a Unix time, and days with any delimiters.
fn others(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: true, ..Default::default() };
    let parsed = cast_with_options(array, target, &options)?;
    if *target == DataType::Date32 {
        let texts = cast(array, &DataType::Utf8)?;
        let days = texts.as_string::<i32>().iter().zip(parsed.as_primitive::<Date32Type>());
        let days = days.map(|(text, parsed)| parsed.or_else(|| Some(days_written(text?)? as i32)));
        return Ok(Arc::new(days.collect::<Date32Array>()));
    }
    let DataType::Timestamp(TimeUnit::Second, zone) = target else { return Ok(parsed) };
    let texts = cast(array, &DataType::Utf8)?;
    // Local times that clock changes skip or repeat.
    let local = match zone {
        Some(zone) if parsed.logical_null_count() > texts.null_count() => {
            let local = cast_with_options(array, &DataType::Timestamp(TimeUnit::Second, None), &options)?;
            Some((local.as_primitive::<TimestampSecondType>().clone(), zone))
        }
        _ => None,
    };
    let local = |row: usize| {
        let (local, zone) = local.as_ref()?;
        local.is_valid(row).then(|| local_time::unix_seconds(local.value(row), zone, GapPolicy::Before))?
    };
    let seconds = texts.as_string::<i32>().iter().zip(parsed.as_primitive::<TimestampSecondType>());
    let seconds = seconds
        .enumerate()
        .map(|(row, (text, parsed))| text.and_then(unix_seconds).or(parsed).or_else(|| local(row)));
    let seconds: TimestampSecondArray = seconds.collect();
    Ok(Arc::new(seconds.with_timezone_opt(zone.clone())))
}

fn unix_seconds(text: &str) -> Option<i64> {
    (text.len() == 10).then(|| text.parse::<u32>().ok().map(i64::from)).flatten()
}

/// The error for an invalid time, with the reason.
pub fn no_time(text: &str, target: &DataType, reason: &str) -> Error {
    let name = plain_name(target);
    Error::cannot_parse_datetime(format!(
        "Cannot read DateTime: {reason}: Cannot parse {name} from String '{text}'"
    ))
}

/// Whether a text has the form of a day, valid or not.
fn is_day_form(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    match digits(text) {
        8 => true,
        4 => text.get(5..).is_some_and(|rest| matches!(digits(rest), 1 | 2) && rest.len() > digits(rest)),
        _ => false,
    }
}

/// Arrow ignores blanks at the ends; ClickHouse does not.
fn is_whole(text: &str, parsed: &ArrayRef, row: usize) -> bool {
    parsed.is_valid(row) && text.trim() == text
}

fn failure(text: &str, target: &DataType) -> Error {
    let name = plain_name(target);
    match target {
        DataType::Date32 => Error::cannot_parse_date(format!("Cannot parse Date from String '{text}'")),
        DataType::Timestamp(..) => {
            Error::cannot_parse_datetime(format!("Cannot parse DateTime from String '{text}'"))
        }
        _ if text.is_empty() || text.starts_with(char::is_whitespace) => Error::cannot_parse_number(format!(
            "Cannot read floating point value here: {text}: Cannot parse {name} from String"
        )),
        _ => Error::cannot_parse_text(format!("Cannot parse string '{text}' as {name}")),
    }
}

fn integer(text: &str, target: &DataType, overflow: Overflow) -> Result<u64, Error> {
    let name = plain_name(target);
    if text.is_empty() {
        return Err(Error::attempt_to_read_after_eof(format!(
            "Attempt to read after eof: Cannot parse {name} from String, because value is too short"
        )));
    }
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if negative && target.is_unsigned_integer() && overflow == Overflow::Wraps {
        return Err(Error::cannot_parse_number(format!(
            "Unsigned type must not contain '-' symbol: Cannot parse {name} from String"
        )));
    }
    let count = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
    if count < digits.len() || count == 0 {
        let parsed = text.len() - digits.len() + count;
        let place = match count {
            0 => "begin of string".to_owned(),
            _ => format!("position {parsed} (parsed just '{}')", &text[..parsed]),
        };
        return Err(Error::cannot_parse_text(format!(
            "Cannot parse string '{text}' as {name}: syntax error at {place}. Note: there are to{name}OrZero and \
             to{name}OrNull functions, which returns zero/NULL instead of throwing exception"
        )));
    }
    let (mut bits, mut value) = (0u64, 0i128);
    for digit in digits {
        let digit = digit - b'0';
        bits = bits.wrapping_mul(10).wrapping_add(digit.into());
        value = value.saturating_mul(10).saturating_add(digit.into());
    }
    let (bits, value) = if negative { (bits.wrapping_neg(), -value) } else { (bits, value) };
    let (low, high) = range(target);
    if overflow == Overflow::IsError && !(low..=high).contains(&value) {
        return Err(Error::cannot_parse_text(format!("Cannot parse string '{text}' to type {name}")));
    }
    Ok(bits)
}

/// The range of an integer type.
pub fn range(data_type: &DataType) -> (i128, i128) {
    match data_type {
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}
