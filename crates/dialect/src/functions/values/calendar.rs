//! Parts of dates and times, and rounding of these to units.

use std::sync::Arc;

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, Timelike};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, TimeUnit};
use datafusion::common::{DataFusionError, Result};

use super::local::{DAY, Moments, is_moment, is_time, ticks_per_second, zone_of};
use super::{Function, of};
use crate::functions::clamped;
use crate::functions::numbers::{array_bits, from_bits};
use crate::types::is_bounded;

/// A part of a date or time.
macro_rules! part {
    ($name:literal, $type:ident, $part:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| is_moment(&given[0]).then(|| of(DataType::$type)),
            answer: |given, field| parts(&given[0], field, $part),
        }
    };
}

/// A part of a time of day, which a date does not have.
macro_rules! clock {
    ($name:literal, $type:ident, $part:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| is_time(&given[0]).then(|| of(DataType::$type)),
            answer: |given, field| parts(&given[0], field, $part),
        }
    };
}

/// The first day of a unit.
macro_rules! first_day {
    ($name:literal, $first:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| is_moment(&given[0]).then(|| of(DataType::Date32)),
            answer: |given, field| first_days(&given[0], field, |day, _| $first(day), &[]),
        }
    };
}

/// A time rounded down to a number of seconds.
macro_rules! start {
    ($name:literal, $seconds:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| is_time(&given[0]).then(|| seconds_like(given[0].data_type())),
            answer: |given, field| starts(&given[0], field, $seconds),
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    // The arguments of dateTrunc; for others its result types are missing here.
    Function {
        name: "dateTrunc/time",
        arguments: 1..=1,
        field: |given| {
            let takes =
                is_moment(&given[0]) && is_bounded(&given[0]) && ticks_per_second(given[0].data_type()) == 1;
            takes.then(|| given[0].as_ref().clone())
        },
        answer: |given, _| Ok(Arc::clone(&given[0])),
    },
    part!("toYear", UInt16, |shown| shown.year() as u64),
    part!("toMonth", UInt8, |shown| u64::from(shown.month())),
    part!("toDayOfMonth", UInt8, |shown| u64::from(shown.day())),
    clock!("toHour", UInt8, |shown| u64::from(shown.hour())),
    clock!("toMinute", UInt8, |shown| u64::from(shown.minute())),
    clock!("toSecond", UInt8, |shown| u64::from(shown.second())),
    part!("toQuarter", UInt8, |shown| u64::from(shown.month0() / 3 + 1)),
    part!("toDayOfWeek", UInt8, |shown| u64::from(shown.weekday().number_from_monday())),
    part!("toDayOfYear", UInt16, |shown| u64::from(shown.ordinal())),
    part!("toISOWeek", UInt8, |shown| u64::from(shown.iso_week().week())),
    part!("toISOYear", UInt16, |shown| shown.iso_week().year() as u64),
    part!("toYYYYMM", UInt32, |shown| shown.year() as u64 * 100 + u64::from(shown.month())),
    part!("toYYYYMMDD", UInt32, date_number),
    part!("toYYYYMMDDhhmmss", UInt64, |shown| date_number(shown) * 1_000_000
        + u64::from(shown.hour() * 10_000 + shown.minute() * 100 + shown.second())),
    first_day!("toStartOfYear", |day: NaiveDate| day.with_ordinal(1)),
    first_day!("toStartOfISOYear", |day: NaiveDate| {
        NaiveDate::from_isoywd_opt(day.iso_week().year(), 1, chrono::Weekday::Mon)
    }),
    first_day!("toStartOfQuarter", |day: NaiveDate| day.with_day(1)?.with_month0(day.month0() / 3 * 3)),
    first_day!("toStartOfMonth", |day: NaiveDate| day.with_day(1)),
    first_day!("toMonday", monday),
    Function {
        name: "toStartOfWeek",
        arguments: 1..=2,
        field: |given| {
            let mode = given.get(1).is_none_or(|mode| mode.data_type().is_integer());
            (is_moment(&given[0]) && mode).then(|| of(DataType::Date32))
        },
        // In odd modes a week begins on Monday, in others on Sunday.
        answer: |given, field| {
            let sunday =
                |day: NaiveDate| day.checked_sub_days(Days::new(day.weekday().num_days_from_sunday().into()));
            let first = |day, mode| if mode % 2 == 0 { sunday(day) } else { monday(day) };
            first_days(&given[0], field, first, &given[1..])
        },
    },
    Function {
        name: "toStartOfDay",
        arguments: 1..=1,
        field: |given| is_moment(&given[0]).then(|| seconds_like(given[0].data_type())),
        answer: |given, field| {
            let moments = Moments::of(&given[0])?;
            let day = |row| moments.day_start(moments.local(row).div_euclid(DAY));
            Ok(clamped(numbers((0..moments.len()).map(|row| day(row) as u64).collect(), field)?))
        },
    },
    start!("toStartOfHour", 60 * 60),
    start!("toStartOfFifteenMinutes", 15 * 60),
    start!("toStartOfTenMinutes", 10 * 60),
    start!("toStartOfFiveMinutes", 5 * 60),
    start!("toStartOfMinute", 60),
    Function {
        name: "fromUnixTimestamp",
        arguments: 1..=1,
        field: |given| {
            given[0].data_type().is_integer().then(|| of(DataType::Timestamp(TimeUnit::Second, None)))
        },
        answer: |given, field| {
            let seconds = array_bits(&given[0]).unwrap_or_default();
            let signed = given[0].data_type().is_signed_integer();
            let within =
                |bits: &u64| if signed { (*bits as i64).max(0) as u64 } else { (*bits).min(u32::MAX.into()) };
            Ok(clamped(numbers(seconds.iter().map(within).collect(), field)?))
        },
    },
];

fn date_number(shown: NaiveDateTime) -> u64 {
    shown.year() as u64 * 10_000 + u64::from(shown.month() * 100 + shown.day())
}

fn monday(day: NaiveDate) -> Option<NaiveDate> {
    day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into()))
}

/// A DateTime in the zone of another time; without a zone for a date.
fn seconds_like(data_type: &DataType) -> Field {
    of(DataType::Timestamp(TimeUnit::Second, zone_of(data_type)))
}

pub(super) fn numbers(values: Vec<u64>, field: &Field) -> Result<ArrayRef> {
    from_bits(values.into(), None, field.data_type())
        .ok_or_else(|| DataFusionError::Internal(format!("{} is no number", field.data_type())))
}

fn parts(moments: &ArrayRef, field: &Field, part: fn(NaiveDateTime) -> u64) -> Result<ArrayRef> {
    let moments = Moments::of(moments)?;
    numbers((0..moments.len()).map(|row| part(moments.shown(row))).collect(), field)
}

/// The first day of the unit that each moment is in, within Date's range.
fn first_days(
    moments: &ArrayRef,
    field: &Field,
    first: impl Fn(NaiveDate, i64) -> Option<NaiveDate>,
    mode: &[ArrayRef],
) -> Result<ArrayRef> {
    let moments = Moments::of(moments)?;
    let modes = mode.first().map(|mode| cast(mode, &DataType::Int64)).transpose()?;
    let mode = |row| modes.as_ref().map_or(0, |modes| modes.as_primitive::<Int64Type>().value(row));
    let day = |row| {
        let first = first(moments.shown(row).date(), mode(row)).unwrap_or_default();
        let days = (first - NaiveDate::default()).num_days();
        days.clamp(0, i64::from(u16::MAX)) as u64
    };
    numbers((0..moments.len()).map(day).collect(), field)
}

fn starts(moments: &ArrayRef, field: &Field, seconds: i64) -> Result<ArrayRef> {
    let moments = Moments::of(moments)?;
    let start = |row: usize| match seconds {
        // Hours are counted from the beginning of the day: clocks may change by half an hour.
        3600 => (moments.seconds[row] - moments.since_midnight(row).rem_euclid(seconds)) as u64,
        minutes => moments.rounded_down(row, minutes) as u64,
    };
    Ok(clamped(numbers((0..moments.len()).map(start).collect(), field)?))
}
