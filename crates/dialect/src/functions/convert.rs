//! `toUInt8` .. `toInt64`, `toFloat32`, `toFloat64`, `toString`, `toDate`, `toDateTime`.

use std::str::FromStr;
use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray, make_array};
use datafusion::arrow::compute::{can_cast_types, cast};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal256Type, Field, FieldRef, Float64Type, Int64Type, TimeUnit,
    TimestampSecondType, i256,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use granary_dict::{DataType as ClickHouseType, digits_of, offset_at};

use super::arguments::{self, check_count};
use super::fixed_string;
use super::local_time::{GapPolicy, unix_seconds};
use super::numbers::{array_bits, from_bits, rows, shaped};
use super::parse::{Reading, parse, range};
use super::refused_conversions::refused;
use crate::error::Error;
use crate::text;
use crate::types::{declared, fixed_bytes, is_bounded, is_wide, plain_name, type_name};

/// The conversions and their result types.
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
    (MOMENT, DataType::Timestamp(TimeUnit::Second, None)),
];

/// The conversion for toUnixTimestamp: like toDateTime, except for numbers, which are Unix times already. No query can
/// write its name.
const MOMENT: &str = "toDateTime/moment";

/// Integers above this are read as seconds, not days, when they become a Date.
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
        Self { name, target, signature: arguments::any(Volatility::Immutable) }
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
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let from = &args.arg_fields[0];
        if self.name == MOMENT && from.data_type().is_numeric() {
            let what = format!("Function toUnixTimestamp does not take {} here", type_name(from));
            return Err(Error::illegal_type(what).into());
        }
        let target = match (from.data_type(), &self.target) {
            // A time keeps its zone.
            (DataType::Timestamp(_, zone), DataType::Timestamp(unit, _)) => {
                DataType::Timestamp(*unit, zone.clone())
            }
            _ => self.target.clone(),
        };
        Ok(Arc::new(Field::new(self.name, target, from.is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let target = args.return_field.data_type();
        check_range(&args.arg_fields[0], &array, target)?;
        shaped(clamped(convert(&args.arg_fields[0], &array, target)?), &args.args)
    }
}

/// Refuses days and times beyond the range of Date or DateTime, which ClickHouse turns into others, and addresses in
/// the place of numbers.
pub fn check_range(field: &Field, array: &ArrayRef, target: &DataType) -> Result<()> {
    let from = array.data_type();
    let is_address = declared(field).is_some_and(|declared| declared.inner() == &ClickHouseType::Ipv4);
    if is_address && !matches!(target, DataType::UInt32 | DataType::UInt64 | DataType::Utf8) {
        return Err(refused(field, target).into());
    }
    let highest = match target {
        DataType::Date32 => DAYS_MAX as i64,
        DataType::Timestamp(TimeUnit::Second, _) => u32::MAX.into(),
        _ => return Ok(()),
    };
    if is_wide(field) {
        return Err(refused(field, target).into());
    }
    match from {
        DataType::Date32 if target == &DataType::Date32 && !is_bounded(field) => {
            let days = array.as_primitive::<Date32Type>();
            match days.iter().flatten().all(|day| (0..=DAYS_MAX as i32).contains(&day)) {
                true => Ok(()),
                false => Err(Error::argument_out_of_bound("A value of Date32 is beyond Date").into()),
            }
        }
        DataType::Float32 | DataType::Float64 => {
            let floats = cast(array, &DataType::Float64)?;
            match floats.as_primitive::<Float64Type>().iter().flatten().all(f64::is_finite) {
                true => Ok(()),
                false => Err(Error::cannot_convert_type("Unexpected inf or nan to a date or time").into()),
            }
        }
        // A fraction of a second before 1970 would be cut to 0.
        DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
            if cast(array, &DataType::Int64)?
                .as_primitive::<Int64Type>()
                .iter()
                .flatten()
                .any(|ticks| ticks < 0) =>
        {
            let what = format!("A value of {} is beyond {}", type_name(field), plain_name(target));
            Err(Error::argument_out_of_bound(what).into())
        }
        DataType::Date32 | DataType::Timestamp(..) if let Some(converted) = between_times(array, target)? => {
            let numbers = array_bits(&converted).unwrap_or_default();
            let is_out =
                |row: usize| converted.is_valid(row) && !(0..=highest).contains(&(numbers[row] as i64));
            match (0..numbers.len()).any(is_out) {
                true => {
                    let what = format!("A value of {} is beyond {}", type_name(field), plain_name(target));
                    Err(Error::argument_out_of_bound(what).into())
                }
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Converts as ClickHouse's `toX` functions do: integers keep their low bits, text must be a whole number.
pub fn convert(field: &Field, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let trimmed = fixed_bytes(field).map(|_| fixed_string::trimmed(array));
    let array = trimmed.as_ref().unwrap_or(array);
    let from = array.data_type();
    if from == target {
        return Ok(Arc::clone(array));
    }
    if *target == DataType::Utf8 {
        return to_string(field, array);
    }
    if from.is_string() {
        return parse(array, target, Reading::Cast);
    }
    if let Some(converted) = between_times(array, target)? {
        return Ok(converted);
    }
    if let DataType::Timestamp(unit, _) = from
        && target.is_numeric()
        && is_counted_in_parts(field, *unit)
    {
        let seconds = seconds(array, *unit, target)?;
        check_width(&seconds, target)?;
        return convert(field, &seconds, target);
    }
    if let DataType::Timestamp(TimeUnit::Second, _) = target
        && (from.is_floating() || from == &DataType::UInt64)
    {
        // Times beyond DateTime's range become its first or last moment.
        let seconds = cast(array, &DataType::Float64)?;
        let within = |seconds: f64| seconds.clamp(0.0, u32::MAX.into()) as i64;
        let seconds: Int64Array = seconds.as_primitive::<Float64Type>().unary(within);
        return Ok(cast(&(Arc::new(seconds) as ArrayRef), target)?);
    }
    if target.is_integer()
        && let Some(converted) = decimals(field, array, target)?
    {
        return Ok(converted);
    }
    if let Some(values) = array_bits(array) {
        let dates = *target == DataType::Date32;
        let values = match dates {
            true if from.is_signed_integer() => {
                values.iter().map(|&v| days((v as i64).max(0) as u64)).collect()
            }
            true => values.iter().map(|&v| days(v)).collect(),
            false => values,
        };
        if let Some(converted) = from_bits(values, array.logical_nulls(), target) {
            return Ok(converted);
        }
    }
    if from.is_floating() && target.is_integer() {
        let seconds = cast(array, &DataType::Float64)?;
        let values = seconds.as_primitive::<Float64Type>().iter();
        let bits = values.map(|value| value.map_or(Ok(0), |value| truncated(value, target)));
        return from_bits(bits.collect::<Result<Vec<u64>>>()?.into(), array.logical_nulls(), target)
            .ok_or_else(|| DataFusionError::Internal(format!("no integers of type {target}")));
    }
    if !can_cast_types(from, target) {
        return Err(refused(field, target).into());
    }
    Ok(cast(array, target)?)
}

/// Integers from decimals, without their fractions, and from integers of more than 64 bits, by their low bits; `None`
/// for other types.
fn decimals(field: &Field, array: &ArrayRef, target: &DataType) -> Result<Option<ArrayRef>> {
    let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = *array.data_type() else {
        return Ok(None);
    };
    let wide = cast(array, &DataType::Decimal256(76, scale))?;
    let power = i256::from_i128(10).wrapping_pow(scale.unsigned_abs().into());
    let (low, high) = range(target);
    let fitted = |number: i256| {
        let whole = number.wrapping_div(power);
        let is_in = (i256::from_i128(low)..=i256::from_i128(high)).contains(&whole);
        match is_in || is_wide(field) {
            true => Ok(whole.to_parts().0 as u64),
            false => Err(Error::decimal_overflow(format!("A value is out of the range of {target}")).into()),
        }
    };
    let numbers = wide.as_primitive::<Decimal256Type>().iter();
    let bits = numbers.map(|number| number.map_or(Ok(0), fitted)).collect::<Result<Vec<u64>>>()?;
    Ok(from_bits(bits.into(), array.logical_nulls(), target))
}

/// The seconds of times with fractions; a float keeps the fraction.
fn seconds(array: &ArrayRef, unit: TimeUnit, target: &DataType) -> Result<ArrayRef> {
    let ticks = cast(array, &DataType::Int64)?;
    let ticks = ticks.as_primitive::<Int64Type>();
    let per_second = 10i64.pow(digits_of(unit).into());
    Ok(match target.is_floating() {
        true => {
            let seconds: Float64Array = ticks.unary(|ticks| ticks as f64 / per_second as f64);
            Arc::new(seconds)
        }
        false => {
            let seconds: Int64Array = ticks.unary(|ticks| ticks / per_second);
            Arc::new(seconds)
        }
    })
}

/// Whether times are DateTime64, with or without fraction digits.
fn is_counted_in_parts(field: &Field, unit: TimeUnit) -> bool {
    let is_said =
        || declared(field).is_some_and(|said| matches!(said.inner(), ClickHouseType::DateTime64 { .. }));
    unit != TimeUnit::Second || is_said()
}

/// Refuses seconds beyond the integer's range: those of a DateTime64 are not cut to their low bits, as those of a
/// DateTime are.
fn check_width(seconds: &ArrayRef, target: &DataType) -> Result<()> {
    let (low, high) = range(target);
    let fits = |seconds: i64| (low..=high).contains(&seconds.into());
    match seconds.as_primitive_opt::<Int64Type>() {
        Some(seconds) if !seconds.iter().flatten().all(fits) => {
            Err(Error::decimal_overflow(format!("Convert overflow: a time as {}", plain_name(target))).into())
        }
        _ => Ok(()),
    }
}

/// The days of a number that is read as days or seconds.
fn days(number: u64) -> u64 {
    if number > DAYS_MAX { number.min(u32::MAX.into()) / 86_400 } else { number }
}

/// The nearest value within the range of Date (16 bits of days) or DateTime (32 bits of seconds).
pub fn clamped(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            Arc::new(days.unary::<_, Date32Type>(|days| days.clamp(0, DAYS_MAX as i32)))
        }
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let seconds = array.as_primitive::<TimestampSecondType>();
            let seconds =
                seconds.unary::<_, TimestampSecondType>(|seconds| seconds.clamp(0, u32::MAX.into()));
            Arc::new(seconds.with_timezone_opt(zone.clone()))
        }
        _ => array,
    }
}

/// Converts dates and times to each other. A time stays the same moment in another zone; it becomes the date of its
/// zone.
///
/// # Errors
/// A moment that the target cannot hold: nanoseconds end in 2262.
pub fn between_times(array: &ArrayRef, target: &DataType) -> Result<Option<ArrayRef>> {
    let converted = moments(array, target)?;
    let is_cut = |converted: &ArrayRef| converted.null_count() > array.logical_null_count();
    match converted.as_ref().is_some_and(is_cut) {
        true => {
            let what = format!("A value is beyond what {} can be", plain_name(target));
            Err(Error::decimal_overflow(what).into())
        }
        false => Ok(converted),
    }
}

fn moments(array: &ArrayRef, target: &DataType) -> Result<Option<ArrayRef>> {
    Ok(Some(match (array.data_type(), target) {
        (DataType::Timestamp(_, zone), DataType::Timestamp(unit, _)) => {
            let own = cast(array, &DataType::Timestamp(*unit, zone.clone()))?;
            make_array(own.to_data().into_builder().data_type(target.clone()).build()?)
        }
        (DataType::Date32, DataType::Timestamp(unit, Some(zone))) => {
            let midnight = |days: i32| {
                unix_seconds(i64::from(days) * 86_400, zone, GapPolicy::After).unwrap_or_default()
            };
            let midnights = array.as_primitive::<Date32Type>().unary::<_, TimestampSecondType>(midnight);
            let midnights = Arc::new(midnights.with_timezone(Arc::clone(zone))) as ArrayRef;
            cast(&midnights, &DataType::Timestamp(*unit, Some(Arc::clone(zone))))?
        }
        (DataType::Date32, DataType::Timestamp(..)) => cast(array, target)?,
        (DataType::Timestamp(unit, Some(zone)), DataType::Date32) => days_in_zone(array, *unit, zone)?,
        (DataType::Timestamp(..), DataType::Date32) => cast(array, target)?,
        _ => return Ok(None),
    }))
}

/// The day of each time in its zone, also after 2099, where Arrow's zones have no rules.
fn days_in_zone(array: &ArrayRef, unit: TimeUnit, zone: &str) -> Result<ArrayRef> {
    let zone = Tz::from_str(zone)?;
    let per_second = 10i64.pow(digits_of(unit).into());
    let ticks = cast(array, &DataType::Int64)?;
    let day = |ticks: i64| {
        let seconds = ticks.div_euclid(per_second);
        (seconds + offset_at(&zone, seconds)).div_euclid(86_400) as i32
    };
    Ok(Arc::new(ticks.as_primitive::<Int64Type>().unary::<_, Date32Type>(day)))
}

/// A float's integer part, as the processor converts it for ClickHouse: out of range, it is the smallest integer of 32
/// or 64 bits, before it is narrowed further.
fn truncated(value: f64, target: &DataType) -> Result<u64> {
    if !value.is_finite() {
        return Err(Error::cannot_convert_type("Unexpected inf or nan to integer conversion").into());
    }
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let in_64 = |value: f64| if (-TWO_TO_63..TWO_TO_63).contains(&value) { value as i64 } else { i64::MIN };
    let fits_32 = (f64::from(i32::MIN)..f64::from(i32::MAX) + 1.0).contains(&value.trunc());
    Ok(match target {
        DataType::UInt64 if value >= TWO_TO_63 => (in_64(value) | in_64(value - TWO_TO_63)) as u64,
        DataType::UInt64 | DataType::Int64 | DataType::UInt32 => in_64(value) as u64,
        _ if fits_32 => value as i32 as u64,
        _ => i32::MIN as u64,
    })
}

fn to_string(field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let texts: StringArray = text::texts(field, array)?;
    Ok(Arc::new(texts))
}
