//! `toStartOfInterval(t, INTERVAL n unit)`: a time rounded down to a number of units. `crate::rewrite` calls one
//! function per unit, with names that no query can write.

use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion::common::Result;

use super::calendar::numbers;
use super::local::{DAY, GapPolicy, Moments, is_date, is_moment, is_time, zone_of};
use super::{Function, of};
use crate::error::Error;
use crate::functions::clamped;
use crate::types::is_bounded;

/// A unit: the type of the result, and the result for a moment and a number of units.
macro_rules! unit {
    ($name:literal, $field:expr, $start:expr) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| $field(&given[0]).filter(|_| given[1].data_type().is_integer()),
            answer: |given, field| starts(given, field, $start),
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    unit!("toStartOfInterval/Second", of_clocks, |at, count| at.clock(count)),
    unit!("toStartOfInterval/Minute", of_clocks, |at, count| at.clock(60 * count)),
    unit!("toStartOfInterval/Hour", of_clocks, |at, count| at.hour(count)),
    unit!("toStartOfInterval/Day", of_days, |at, count| at
        .moments
        .day_start(at.day().div_euclid(count) * count)),
    // 1970 began on a Thursday, and weeks begin on Mondays.
    unit!("toStartOfInterval/Week", of_dates, |at, count| 4
        + (at.day() - 4).div_euclid(7 * count) * 7 * count),
    unit!("toStartOfInterval/Month", of_dates, |at, count| at.month(count)),
    unit!("toStartOfInterval/Quarter", of_dates, |at, count| at.month(3 * count)),
    unit!("toStartOfInterval/Year", of_dates, |at, count| at.year(count)),
];

/// The names of the units.
pub fn units() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().filter_map(|function| function.name.split_once('/')).map(|(_, unit)| unit)
}

fn of_clocks(moment: &FieldRef) -> Option<Field> {
    is_time(moment).then(|| of(DataType::Timestamp(TimeUnit::Second, zone_of(moment.data_type()))))
}

fn of_days(moment: &FieldRef) -> Option<Field> {
    let takes = is_time(moment) || is_date(moment) && is_bounded(moment);
    takes.then(|| of(DataType::Timestamp(TimeUnit::Second, zone_of(moment.data_type()))))
}

fn of_dates(moment: &FieldRef) -> Option<Field> {
    let takes = is_moment(moment) && (is_time(moment) || is_bounded(moment));
    takes.then(|| of(DataType::Date32))
}

/// A moment in a column.
struct At<'a> {
    moments: &'a Moments,
    row: usize,
}

impl At<'_> {
    /// The local day of the moment, in days since 1970.
    fn day(&self) -> i64 {
        self.moments.local(self.row).div_euclid(DAY)
    }

    /// The Unix time at which a day begins.
    fn midnight(&self, day: i64) -> i64 {
        self.moments.unix(day * DAY, GapPolicy::After)
    }

    fn clock(&self, seconds: i64) -> i64 {
        self.moments.rounded_down(self.row, seconds)
    }

    /// The moment rounded down to `count` hours since midnight, by the clock: on a day on which clocks change, hours
    /// after the change are counted as if there were none.
    fn hour(&self, count: i64) -> i64 {
        let midnight = self.midnight(self.day());
        let passed = self.moments.seconds[self.row] - midnight;
        let down = |passed: i64| passed.div_euclid(HOUR * count) * HOUR * count;
        let (set_at, set_by) = if count > 1 { self.set(midnight) } else { (0, 0) };
        if set_by == 0 || passed < set_at {
            return midnight + down(passed);
        }
        let shown = down(passed + set_by);
        midnight + if shown >= set_at { (shown - set_by).max(set_at) } else { shown }
    }

    /// How long after midnight clocks change that day, and by how many seconds; (0, 0) if they do not.
    fn set(&self, midnight: i64) -> (i64, i64) {
        let offset = |passed: i64| self.moments.offset(midnight + passed);
        // A day may begin after midnight.
        let missing = midnight + offset(0) - self.day() * DAY;
        if missing > 0 {
            return (0, missing);
        }
        let before = offset(0);
        let last = self.midnight(self.day() + 1) - 1 - midnight;
        let set_by = offset(last) - before;
        let (mut low, mut high) = (0, last);
        while set_by != 0 && high - low > 1 {
            let middle = (low + high) / 2;
            if offset(middle) == before { low = middle } else { high = middle }
        }
        if set_by == 0 { (0, 0) } else { (high, set_by) }
    }

    /// The first day of the interval of `count` months since 1900.
    fn month(&self, count: i64) -> i64 {
        let shown = self.moments.shown(self.row);
        let months = i64::from(shown.year() - 1900) * 12 + i64::from(shown.month0());
        first_day(months.div_euclid(count) * count - 70 * 12)
    }

    /// The first day of the interval of `count` years since the year 0.
    fn year(&self, count: i64) -> i64 {
        let year = i64::from(self.moments.shown(self.row).year());
        first_day((year.div_euclid(count) * count - 1970) * 12)
    }
}

/// The first day of a month, given in months since 1970.
fn first_day(months: i64) -> i64 {
    let year = i32::try_from(1970 + months.div_euclid(12)).unwrap_or(i32::MIN);
    let first = NaiveDate::from_ymd_opt(year, months.rem_euclid(12) as u32 + 1, 1);
    first.map_or(i64::MIN, |first| (first - NaiveDate::default()).num_days())
}

const HOUR: i64 = 60 * 60;

/// Maximum hours of an interval: they are counted from midnight.
const HOURS_MAX: i64 = 24;

/// Maximum number of units of an interval.
const COUNT_MAX: i64 = 1 << 31;

fn starts(given: &[ArrayRef], field: &Field, start: impl Fn(&At<'_>, i64) -> i64) -> Result<ArrayRef> {
    let is_hours = field.name().ends_with("Hour");
    let moments = Moments::of(&given[0])?;
    let counts = cast(&given[1], &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let start = |row: usize| match counts.value(row) {
        _ if given.iter().any(|array| array.is_null(row)) => Ok(0),
        count if is_hours && count > HOURS_MAX => {
            let what = format!("Function toStartOfInterval takes at most {HOURS_MAX} hours, not {count}");
            Err(Error::argument_out_of_bound(what).into())
        }
        count if (1..=COUNT_MAX).contains(&count) => {
            let start = start(&At { moments: &moments, row }, count);
            Ok(start.clamp(i32::MIN.into(), u32::MAX.into()) as u64)
        }
        count => {
            let what =
                format!("Value for the interval of function toStartOfInterval must be positive, not {count}");
            Err(Error::argument_out_of_bound(what).into())
        }
    };
    let starts = (0..moments.len()).map(start).collect::<Result<Vec<u64>>>()?;
    let starts = match field.data_type() {
        DataType::Date32 => {
            starts.into_iter().map(|day| (day as i64).clamp(0, u16::MAX.into()) as u64).collect()
        }
        _ => starts,
    };
    Ok(clamped(numbers(starts, field)?))
}
