//! Times as people write them, by the rules that ClickHouse calls `best_effort`: ISO 8601, days before or after months,
//! names of months, twelve hours, offsets of zones, digits without delimiters.

mod cursor;
mod fields;
#[cfg(test)]
mod tests;

use super::calendar::{civil_from_days, days_from_civil};
use fields::TimeFields;

/// What a text says of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenTime {
    pub time: Time,
    pub fraction: Fraction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Unix seconds.
    Unix(i64),
    /// A day of a calendar, and the seconds that clocks show after its midnight.
    Shown {
        day: Day,
        seconds: i64,
        /// Seconds by which these clocks are ahead of UTC; `None`: they are in the reader's time zone.
        offset: Option<i64>,
    },
}

/// A day. A text may leave out its year, as those of syslog do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Day {
    /// Days since 1970-01-01.
    Known(i64),
    /// The last one with this month and day, from 1 on.
    Last { month: i64, day: i64 },
}

impl Day {
    /// Days since 1970-01-01, as seen from a day; `None`: that year has no such day.
    pub fn on(self, today: impl FnOnce() -> i64) -> Option<i64> {
        let (month, day) = match self {
            Day::Known(days) => return Some(days),
            Day::Last { month, day } => (month, day),
        };
        let today = today();
        let (year, ..) = civil_from_days(today);
        let this_year = days_from_civil(year, month, day)?;
        if this_year <= today { Some(this_year) } else { days_from_civil(year - 1, month, day) }
    }
}

/// The digits behind the point of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fraction {
    pub value: i64,
    pub digits: u32,
}

/// Whether a point after Unix seconds belongs to them, as for DateTime64; for DateTime it is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnixFraction {
    Read,
    Refused,
}

/// Why a text is no time, in ClickHouse's words.
pub(super) type Reason = &'static str;

const NOTHING: Reason = "neither Date nor Time was parsed successfully";
const UNEXPECTED_WORD: Reason = "unexpected word";
const UNEXPECTED_DIGITS: Reason = "unexpected number of decimal digits";
const NO_SUCH_DAY: Reason = "unexpected date";
const DAY_TWICE: Reason = "day of month is duplicated";
const BEHIND: Reason = "there is more behind it";

/// Reads a whole text.
pub(super) fn read(text: &str, unix_fraction: UnixFraction) -> Result<WrittenTime, Reason> {
    let mut fields = TimeFields::of(text);
    let unix = fields.read(unix_fraction)?;
    match unix {
        _ if !fields.is_at_end() => Err(BEHIND),
        Some(seconds) => Ok(WrittenTime { time: Time::Unix(seconds), fraction: fields.fraction }),
        None => fields.written(),
    }
}
