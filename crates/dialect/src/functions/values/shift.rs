//! Shifted dates and times: `addDays(t, n)`, `subtractMonths(t, n)`, which `t + INTERVAL n DAY` is rewritten to. Days
//! and longer units follow the calendar in the time's zone; hours and shorter ones are seconds.

use chrono::{DateTime, Months};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion::common::Result;

use super::local::{DAY, GapPolicy, Moments, is_date, is_moment, ticks_per_second};
use super::{Function, of};
use crate::error::Error;
use crate::functions::as_type::MOMENTS;
use crate::types::{is_bounded, type_name};

/// The unit of a shift.
#[derive(Clone, Copy)]
enum ShiftUnit {
    Seconds(i64),
    Days(i64),
    Months(i64),
}

macro_rules! shift {
    ($add:literal, $subtract:literal, $unit:expr) => {
        [shift!($add, $unit, 1), shift!($subtract, $unit, -1)]
    };
    ($name:literal, $unit:expr, $sign:literal) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| shifted_type(given, $unit),
            answer: |given, field| shifted(given, field, $unit, $sign),
        }
    };
}

const ALL: [[Function; 2]; 8] = [
    shift!("addSeconds", "subtractSeconds", ShiftUnit::Seconds(1)),
    shift!("addMinutes", "subtractMinutes", ShiftUnit::Seconds(60)),
    shift!("addHours", "subtractHours", ShiftUnit::Seconds(60 * 60)),
    shift!("addDays", "subtractDays", ShiftUnit::Days(1)),
    shift!("addWeeks", "subtractWeeks", ShiftUnit::Days(7)),
    shift!("addMonths", "subtractMonths", ShiftUnit::Months(1)),
    shift!("addQuarters", "subtractQuarters", ShiftUnit::Months(3)),
    shift!("addYears", "subtractYears", ShiftUnit::Months(12)),
];

pub(super) const FUNCTIONS: &[Function] = ALL.as_flattened();

/// The type of the time itself; a date shifted by hours becomes a time.
fn shifted_type(given: &[FieldRef], unit: ShiftUnit) -> Option<Field> {
    let count = given[1].data_type();
    if !is_moment(&given[0]) || !(count.is_integer() || count.is_floating()) {
        return None;
    }
    match unit {
        // A Date32 would become a DateTime64.
        ShiftUnit::Seconds(_) if is_date(&given[0]) && !is_bounded(&given[0]) => None,
        ShiftUnit::Seconds(_) if is_date(&given[0]) => Some(of(DataType::Timestamp(TimeUnit::Second, None))),
        _ => Some(given[0].as_ref().clone()),
    }
}

fn shifted(given: &[ArrayRef], field: &Field, unit: ShiftUnit, sign: i64) -> Result<ArrayRef> {
    let moments = Moments::of(&given[0])?;
    let counts = cast(&given[1], &DataType::Int64)?;
    if counts.logical_null_count() > given[1].logical_null_count() {
        return Err(Error::decimal_overflow("Numeric overflow").into());
    }
    let counts = counts.as_primitive::<Int64Type>();
    let at_local = |local| moments.unix(local, GapPolicy::Before);
    let (first, last) = match (is_bounded(field), field.data_type()) {
        (true, DataType::Date32) => (0, i64::from(u16::MAX) * DAY),
        (true, _) => (0, u32::MAX.into()),
        (false, _) => (*MOMENTS.start(), *MOMENTS.end()),
    };
    let moved = |row: usize| -> Result<i64> {
        let count = if counts.is_valid(row) { counts.value(row).saturating_mul(sign) } else { 0 };
        let moved = match unit {
            ShiftUnit::Seconds(each) => moments.seconds[row].saturating_add(count.saturating_mul(each)),
            ShiftUnit::Days(each) => {
                at_local(moments.local(row).saturating_add(count.saturating_mul(each * DAY)))
            }
            ShiftUnit::Months(each) => at_local(months_later(moments.local(row), count.saturating_mul(each))),
        };
        match (first..=last).contains(&moved) || given.iter().any(|array| array.is_null(row)) {
            true => Ok(moved),
            false => {
                let what =
                    format!("A moment that is moved so far is beyond what {} can be", type_name(field));
                Err(Error::argument_out_of_bound(what).into())
            }
        }
    };
    let per_second = ticks_per_second(field.data_type());
    let of_row = |row: usize| -> Result<i64> {
        Ok(match field.data_type() {
            DataType::Date32 => moved(row)?.div_euclid(DAY),
            _ => moved(row)?
                .saturating_mul(per_second)
                .saturating_add(moments.ticks[row].rem_euclid(per_second)),
        })
    };
    let numbers = Int64Array::from((0..moments.len()).map(of_row).collect::<Result<Vec<i64>>>()?);
    Ok(match field.data_type() {
        // There is no cast from 64-bit integers to days.
        DataType::Date32 => cast(&cast(&numbers, &DataType::Int32)?, field.data_type())?,
        time => cast(&numbers, time)?,
    })
}

/// The same day of another month, or the month's last day if it has no such day.
fn months_later(local: i64, months: i64) -> i64 {
    let count = Months::new(u32::try_from(months.unsigned_abs()).unwrap_or(u32::MAX));
    let shown = DateTime::from_timestamp(local, 0).unwrap_or_default();
    let moved = if months < 0 { shown.checked_sub_months(count) } else { shown.checked_add_months(count) };
    moved.map_or(if months < 0 { i64::MIN } else { i64::MAX }, |moved| moved.timestamp())
}
