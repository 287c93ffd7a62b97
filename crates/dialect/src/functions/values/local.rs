//! Local dates and times of moments.

use std::cell::OnceCell;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, TimeUnit};
use datafusion::common::Result;
use granary_dict::offset_at;

pub use crate::functions::local_time::GapPolicy;
use crate::functions::local_time::unix_seconds;

pub const DAY: i64 = 24 * 60 * 60;

/// Fortnights from 1970 to the year after which clock changes are unknown.
const FORTNIGHTS: i64 = 68 * 26;

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Whether a field is a date or a time.
pub fn is_moment(field: &FieldRef) -> bool {
    is_date(field) || is_time(field)
}

pub fn is_date(field: &FieldRef) -> bool {
    field.data_type() == &DataType::Date32
}

pub fn is_time(field: &FieldRef) -> bool {
    matches!(field.data_type(), DataType::Timestamp(..))
}

/// The zone of a time type; dates have none.
pub fn zone_of(data_type: &DataType) -> Option<Arc<str>> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

/// Ticks per second of a time type.
pub fn ticks_per_second(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000_000,
        _ => 1,
    }
}

/// The moments of a column.
pub struct Moments {
    /// Unix seconds; for dates, those of midnight in UTC.
    pub seconds: Vec<i64>,
    /// Days, or ticks of the time's type.
    pub ticks: ScalarBuffer<i64>,
    /// Whether the column holds dates.
    pub is_date: bool,
    /// Whether the column holds DateTime, which begins in 1970.
    is_bounded: bool,
    zone: Option<(Tz, Arc<str>)>,
    /// See [`Moments::offset_unit`].
    offset_unit: OnceCell<i64>,
}

impl Moments {
    pub fn of(array: &ArrayRef) -> Result<Moments> {
        let per_second = ticks_per_second(array.data_type());
        let ticks = match array.data_type() {
            // There is no cast from days to 64-bit integers.
            DataType::Date32 => cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?,
            _ => cast(array, &DataType::Int64)?,
        };
        let seconds_per_tick = if array.data_type() == &DataType::Date32 { DAY } else { 1 };
        let ticks = ticks.as_primitive::<Int64Type>().values().clone();
        let seconds = ticks.iter().map(|ticks| (ticks * seconds_per_tick).div_euclid(per_second)).collect();
        let zone = zone_of(array.data_type());
        let zone = zone.and_then(|name| Some((Tz::from_str(&name).ok()?, name)));
        let is_date = array.data_type() == &DataType::Date32;
        Ok(Moments {
            seconds,
            ticks,
            is_date,
            is_bounded: !is_date && per_second == 1,
            zone,
            offset_unit: OnceCell::new(),
        })
    }

    /// Local time, in seconds since the local beginning of 1970.
    pub fn local(&self, row: usize) -> i64 {
        let seconds = self.seconds[row];
        seconds + self.offset(seconds)
    }

    /// The offset of local time from UTC at a Unix time, in seconds.
    pub fn offset(&self, seconds: i64) -> i64 {
        self.zone.as_ref().map_or(0, |(zone, _)| offset_at(zone, seconds))
    }

    /// The greatest number of seconds, up to an hour, that divides all offsets since 1970.
    fn offset_unit(&self) -> i64 {
        let offset = |fortnight: i64| self.offset(fortnight * 14 * DAY).unsigned_abs();
        *self.offset_unit.get_or_init(|| (0..FORTNIGHTS).map(offset).fold(3600, gcd) as i64)
    }

    /// A moment rounded down to a multiple of `seconds` since 1970. In zones whose offsets are, or were, not whole
    /// hours, the seconds are counted from the beginning of the day; minutes are, where offsets were not whole minutes.
    pub fn rounded_down(&self, row: usize, seconds: i64) -> i64 {
        let unit = if seconds % 60 == 0 { 60 } else { 3600 };
        let passed = match self.offset_unit() % unit {
            0 => self.seconds[row],
            _ => self.since_midnight(row),
        };
        self.seconds[row] - passed.rem_euclid(seconds)
    }

    /// Seconds since the beginning of the moment's day.
    pub fn since_midnight(&self, row: usize) -> i64 {
        match &self.zone {
            Some(_) => self.seconds[row] - self.unix(self.local(row).div_euclid(DAY) * DAY, GapPolicy::After),
            None => self.seconds[row],
        }
    }

    /// The Unix time at which a day begins. For a DateTime, a day that begins before 1970 is replaced by the first
    /// midnight after that, as in ClickHouse.
    pub fn day_start(&self, day: i64) -> i64 {
        let start = |day: i64| self.unix(day * DAY, GapPolicy::After);
        match start(day) {
            before if before < 0 && self.is_bounded && self.zone.is_some() => {
                if start(0) < 0 {
                    start(1)
                } else {
                    start(0)
                }
            }
            at => at,
        }
    }

    /// Local time as a calendar date and time.
    pub fn shown(&self, row: usize) -> NaiveDateTime {
        DateTime::from_timestamp(self.local(row), 0).unwrap_or_default().naive_utc()
    }

    /// The Unix time of a local time; `missing` says which one, if the local time is skipped.
    pub fn unix(&self, local: i64, missing: GapPolicy) -> i64 {
        match &self.zone {
            Some((_, name)) => unix_seconds(local, name, missing).unwrap_or(local),
            None => local,
        }
    }

    pub fn len(&self) -> usize {
        self.seconds.len()
    }
}
