//! What a value of UPDATE_FIELD means: when it was, and for how long other rows may get the same.

use chrono::{NaiveDate, NaiveTime, Timelike};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Numbers from here on are taken for seconds since 1970, or something finer.
const FIRST_FINE_NUMBER: f64 = 1e9;
/// The years of numbers that are taken for times since 1970: 2001 to 2286.
pub(super) const UNIX_SECONDS: [i64; 2] = [1_000_000_000, 10_000_000_000];
/// Units of such numbers: how many are a second.
pub(super) const UNIX_UNITS: [i64; 3] = [1, 1000, 1_000_000];

/// An interpreted value of UPDATE_FIELD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UpdateStamp {
    /// Unix seconds, if it is a time; one without a time zone is taken for UTC.
    pub at: Option<i64>,
    /// For how long rows may go on getting this value. A time of whole minutes, hours or days may come from a column
    /// that has no finer ones.
    pub unit_seconds: u64,
}

impl UpdateStamp {
    /// The moment of milliseconds since 1970.
    #[cfg_attr(
        not(any(test, feature = "mongodb")),
        expect(dead_code, reason = "MongoDB alone has such times")
    )]
    pub fn of_milliseconds(milliseconds: i64) -> UpdateStamp {
        let at = milliseconds.div_euclid(1000);
        let [second, nanosecond] = [at.rem_euclid(DAY as i64), milliseconds.rem_euclid(1000) * 1_000_000];
        let clock = NaiveTime::from_num_seconds_from_midnight_opt(second as u32, nanosecond as u32);
        UpdateStamp { at: Some(at), unit_seconds: clock.map_or(0, unit) }
    }

    /// The moment of a number, or of anything else that is no time. Several rows with the same value (`is_shared`) are
    /// those of a batch or a day, unless it is a number of seconds.
    pub fn of_other(number: Option<f64>, is_shared: bool) -> UpdateStamp {
        let is_fine = number.is_some_and(|number| number.abs() >= FIRST_FINE_NUMBER);
        let is_coarse = number.is_some_and(is_date) || (is_shared && !is_fine);
        UpdateStamp { at: None, unit_seconds: if is_coarse { DAY } else { 0 } }
    }

    /// The moment of a text: `2026-01-31`, `2026-01-31 12:30:00.5+02` and the like, a number, or something else.
    pub fn of_text(text: &str, is_shared: bool) -> UpdateStamp {
        let Some((date, time)) = date_and_time(text) else {
            if text == "infinity" {
                return UpdateStamp { at: Some(i64::MAX), unit_seconds: 0 };
            }
            return UpdateStamp::of_other(number(text), is_shared);
        };
        let time = without_offset(time);
        let clock = |format: &str| NaiveTime::parse_from_str(time, format).ok();
        let (clock, unit_seconds) = match (clock("%H:%M:%S%.f"), clock("%H:%M")) {
            (Some(clock), _) | (None, Some(clock)) => (clock, unit(clock)),
            (None, None) => (NaiveTime::MIN, if time.is_empty() { DAY } else { 0 }),
        };
        UpdateStamp { at: Some(date.and_time(clock).and_utc().timestamp()), unit_seconds }
    }
}

fn unit(clock: NaiveTime) -> u64 {
    match (clock.hour(), clock.minute(), clock.second(), clock.nanosecond()) {
        (0, 0, 0, 0) => DAY,
        (_, 0, 0, 0) => HOUR,
        (_, _, 0, 0) => MINUTE,
        _ => 0,
    }
}

/// The number of a text that a source can be sent without quotes.
pub(super) fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|number| is_plain && number.is_finite())
}

/// How many units are a second, if a number is a time since 1970 in seconds, milliseconds or microseconds.
#[cfg_attr(not(any(test, feature = "mongodb")), expect(dead_code, reason = "SQLite does it in SQL"))]
pub(super) fn unix_units(number: f64) -> Option<i64> {
    let [first, end] = UNIX_SECONDS;
    UNIX_UNITS.into_iter().find(|units| ((first * units) as f64..(end * units) as f64).contains(&number))
}

/// The message for a number from which UPDATE_LAG cannot be subtracted.
pub(super) fn no_lag(lag_seconds: u64) -> String {
    format!(
        "UPDATE_LAG {lag_seconds} cannot be taken from a number; say UPDATE_LAG 0, or name a column of times"
    )
}

/// Whether a time has an offset that is not that of UTC. Texts of such times are not in the order of the times.
pub(super) fn has_offset(text: &str) -> bool {
    date_and_time(text).is_some_and(|(_, time)| {
        let offset = &time[without_offset(time).len()..];
        offset.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
    })
}

fn date_and_time(text: &str) -> Option<(NaiveDate, &str)> {
    let (date, time) = text.split_at_checked(10)?;
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    Some((date, time.trim_start_matches(['T', 't', ' '])))
}

fn without_offset(time: &str) -> &str {
    let time = time.trim_end().trim_end_matches(['Z', 'z']);
    time.split(['+', '-']).next().unwrap_or_default().trim_end()
}

/// Whether a number is a day as people write it: 20260131.
fn is_date(number: f64) -> bool {
    let (year, month, day) = (number / 1e4, number / 100.0 % 100.0, number % 100.0);
    let is_day = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32).is_some();
    number.fract() == 0.0 && (1900.0..2200.0).contains(&year) && is_day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_for_how_long_rows_may_get_it() {
        for (text, unit) in [
            ("2026-11-27", DAY),
            ("2026-11-27 00:00:00", DAY),
            ("2026-11-27 00:00:00+00", DAY),
            ("2026-11-27T10:00:00.000Z", HOUR),
            ("2026-11-27 10:00", HOUR),
            ("2026-11-27 10:05", MINUTE),
            ("2026-11-27 10:05:00-05:00", MINUTE),
            ("2026-11-27 10:05:00.5", 0),
            ("2026-11-27 10:05:07", 0),
            ("20261127", DAY),
            ("20261327", 0),
            ("7", 0),
            ("1700000000", 0),
            ("v7", 0),
        ] {
            assert_eq!(UpdateStamp::of_text(text, false).unit_seconds, unit, "{text}");
        }
        for (text, unit) in [("20500", DAY), ("v7", DAY), ("1700000000", 0), ("2026-11-27 10:05:07", 0)] {
            assert_eq!(UpdateStamp::of_text(text, true).unit_seconds, unit, "{text}, of several rows");
        }
        for (milliseconds, unit) in [(-86_400_000, DAY), (3_600_000, HOUR), (60_000, MINUTE), (60_001, 0)] {
            assert_eq!(UpdateStamp::of_milliseconds(milliseconds).unit_seconds, unit);
        }
        let at = |text| UpdateStamp::of_text(text, false).at;
        assert_eq!(
            (at("1970-01-02 00:00:07"), at("1970-01-02"), at("7")),
            (Some(86_407), Some(86_400), None)
        );
    }

    #[test]
    fn a_number_of_a_time_tells_what_a_second_is() {
        for (number, units) in [
            (1_700_000_000.25, Some(1)),
            (1_700_000_000_000.0, Some(1000)),
            (1_700_000_000_000_000.0, Some(1_000_000)),
            (7.0, None),
            (20_261_127.0, None),
            (20_261_127_100_030.0, None),
            (1_700_000_000_000_000_000.0, None),
            (f64::NAN, None),
        ] {
            assert_eq!(unix_units(number), units, "{number}");
        }
    }

    #[test]
    fn an_offset_is_one_unless_it_is_that_of_utc() {
        for text in ["2026-11-27 10:00:30-05:00", "2026-11-27T10:00:30.5+0200", "2026-11-27 10:00 +05"] {
            assert!(has_offset(text), "{text}");
        }
        for text in ["2026-11-27 10:00:30", "2026-11-27T10:00:30Z", "2026-11-27 10:00:30+00:00", "-5", "x"] {
            assert!(!has_offset(text), "{text}");
        }
    }
}
