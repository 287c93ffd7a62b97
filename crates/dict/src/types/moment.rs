//! DateTime64. Arrow has four units of time and ClickHouse ten, so a value is kept in the coarsest of Arrow's that
//! holds its digits: Arrow compares, sorts and casts it as an ordinary moment, and a row's bytes stay those of its
//! array. The digits between are shown and sent as the type says.

use super::zone;
use arrow::datatypes::TimeUnit;

/// The years that ClickHouse has: from 1900-01-01 00:00:00 to 2299-12-31 23:59:59.
const SECONDS: std::ops::RangeInclusive<i64> = -2_208_988_800..=10_413_791_999;

/// A number without a point is seconds, but ticks from this many seconds in ticks on, as in ClickHouse: as seconds it
/// would be after the year 2286.
const SECONDS_AS_NUMBER: i128 = 1_000_000_000;

/// Arrow's unit for `precision` digits.
pub(super) fn unit(precision: u8) -> TimeUnit {
    match precision {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// Digits behind the point of a second that a unit of Arrow's has.
pub fn digits_of(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// The digits of the unit that `precision` digits are kept in.
pub(crate) fn kept_digits(precision: u8) -> u8 {
    precision.div_ceil(3) * 3
}

/// How many of the unit's ticks are one of the type's.
fn finer(precision: u8) -> i64 {
    10i64.pow((kept_digits(precision) - precision).into())
}

/// Cuts the digits that the type does not have: before 1970 that gives a later moment, as in ClickHouse.
pub(crate) fn truncate(kept: i64, precision: u8) -> i64 {
    kept / finer(precision) * finer(precision)
}

/// `2024-02-29 12:34:56.789`, or Unix seconds with or without a fraction, in Arrow's unit. Digits beyond the precision
/// are cut.
pub(super) fn from_text(text: &str, precision: u8, tz: Option<&str>) -> Option<i64> {
    let unit = 10i128.pow(precision.into());
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (fraction, utc) = match fraction.map(|fraction| (fraction, fraction.strip_suffix('Z'))) {
        Some((_, Some(digits))) => (digits, true),
        Some((digits, None)) => (digits, false),
        None => ("", false),
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(precision.into());
    let fraction = digits.fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
    let is_number = whole.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+');
    let ticks = match is_number.then(|| whole.parse::<i64>()) {
        Some(Ok(ticks))
            if !text.contains('.') && precision > 0 && i128::from(ticks) >= SECONDS_AS_NUMBER * unit =>
        {
            ticks.into()
        }
        Some(Ok(seconds)) if whole.starts_with('-') => i128::from(seconds) * unit - fraction,
        Some(Ok(seconds)) => i128::from(seconds) * unit + fraction,
        _ if utc => i128::from(zone::from_text(&format!("{whole}Z"), tz)?) * unit + fraction,
        _ => i128::from(zone::from_text(whole, tz)?) * unit + fraction,
    };
    kept(ticks, precision)
}

/// Ticks in Arrow's unit; `None`: ClickHouse, or that unit, has no such year.
pub(super) fn kept(ticks: i128, precision: u8) -> Option<i64> {
    let seconds = i64::try_from(ticks.div_euclid(10i128.pow(precision.into()))).ok()?;
    SECONDS.contains(&seconds).then(|| i64::try_from(ticks * i128::from(finer(precision))).ok())?
}

/// The first and the last moment, in Arrow's unit.
pub(crate) fn extremes(precision: u8) -> [i64; 2] {
    let second = 10i128.pow(kept_digits(precision).into());
    let [first, last] =
        [i128::from(*SECONDS.start()) * second, (i128::from(*SECONDS.end()) + 1) * second - 1];
    let kept = |ticks: i128| ticks.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    [kept(first), truncate(kept(last), precision)]
}

/// `2024-02-29 12:34:56.789` in the zone.
pub(super) fn to_text(kept: i64, precision: u8, tz: Option<&str>) -> String {
    let second = 10i64.pow(kept_digits(precision).into());
    let mut text = zone::to_text(kept.div_euclid(second), tz);
    if precision > 0 {
        let fraction = kept.rem_euclid(second) / finer(precision);
        text += &format!(".{fraction:0width$}", width = usize::from(precision));
    }
    text
}

/// A value as ClickHouse sends it, in Arrow's unit; `None`: no year that Arrow has.
pub(crate) fn from_ticks(ticks: i64, precision: u8) -> Option<i64> {
    ticks.checked_mul(finer(precision))
}

/// A value as ClickHouse sends it.
pub(crate) fn to_ticks(kept: i64, precision: u8) -> i64 {
    kept.div_euclid(finer(precision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_texts_and_numbers() {
        let moscow = Some("Europe/Moscow");
        for (text, precision, tz, kept) in [
            ("1970-01-01 00:00:01.5", 3, None, 1500),
            ("1970-01-01T00:00:01.5Z", 3, moscow, 1500),
            ("1970-01-01 03:00:01", 0, moscow, 1),
            ("1970-01-02", 1, None, 86_400_000),
            ("1969-12-31 23:59:59.9999", 4, None, -100),
            ("1.23456", 4, None, 1_234_500),
            ("-0.5", 1, None, -500),
            ("-1.5", 3, None, -1500),
            ("1700000000", 3, None, 1_700_000_000_000),
            ("1700000000123", 3, None, 1_700_000_000_123),
            ("17000000001234", 4, None, 1_700_000_000_123_400),
            ("5", 7, None, 5_000_000_000),
        ] {
            assert_eq!(from_text(text, precision, tz), Some(kept), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_moment() {
        let texts = [
            "",
            "x",
            "1970-01-01 00:00:01.x",
            "1970-01-01 00:00:01.-5",
            "1.5.5",
            "-",
            "2300-01-01",
            "1899-12-31",
        ];
        for text in texts {
            assert_eq!(from_text(text, 3, None), None, "{text}");
        }
        // Nanoseconds end with 64 bits.
        assert_eq!(from_text("2262-04-11 23:47:17", 9, None), None);
        assert_eq!(from_text("99999999999999999999", 3, None), None);
        assert!(from_text("2299-12-31 23:59:59.999999", 6, None).is_some());
    }

    #[test]
    fn digits_between_arrow_s_units_are_kept_and_sent() {
        for precision in 0..=9 {
            let ticks = 1_234_567;
            let kept = from_ticks(ticks, precision).unwrap();
            assert_eq!(to_ticks(kept, precision), ticks);
            assert_eq!(truncate(kept, precision), kept);
            assert_eq!(from_text(&to_text(kept, precision, None), precision, None), Some(kept));
        }
        assert_eq!(truncate(-1, 4), 0);
        assert_eq!(truncate(-199, 4), -100);
        assert_eq!(from_ticks(i64::MAX, 7), None);
    }
}
