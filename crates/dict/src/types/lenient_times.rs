//! Days and times of texts as people write them, which is how ClickHouse reads what is cast, and the rows of text
//! formats.

use super::best_effort::{Fraction, Time, UnixFraction, read};
use super::calendar::date_from_text;
use super::{moment, zone};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// Reads a day: `2024-02-29`, `2024/2/29` or `20240229`, as days since 1970-01-01.
pub fn days_written(text: &str) -> Option<i64> {
    date_from_text(text)
}

/// Reads a time as Unix seconds, without a fraction. A time without an offset is in the zone, or in UTC.
///
/// # Errors
/// Why the text is no time, in ClickHouse's words.
pub fn seconds_written(text: &str, zone: Option<&str>) -> Result<i64, &'static str> {
    in_zone(text, zone, UnixFraction::Refused).map(|(seconds, _)| seconds)
}

/// Reads a time as ticks of Arrow's unit for a DateTime64 of this precision; digits beyond it are cut.
///
/// # Errors
/// The errors of [`seconds_written`]; or the type has no such year.
pub fn ticks_written(text: &str, precision: u8, zone: Option<&str>) -> Result<i64, &'static str> {
    let (seconds, Fraction { value, digits }) = in_zone(text, zone, UnixFraction::Read)?;
    let precision_digits = u32::from(precision);
    let fraction = match precision_digits.checked_sub(digits) {
        Some(more) => value * 10i64.pow(more),
        None => value / 10i64.pow(digits - precision_digits),
    };
    moment::kept(i128::from(seconds) * 10i128.pow(precision_digits) + i128::from(fraction), precision)
        .ok_or("the year is beyond those of the type")
}

fn in_zone(text: &str, zone: Option<&str>, fraction: UnixFraction) -> Result<(i64, Fraction), &'static str> {
    let written = read(text, fraction)?;
    let seconds = match written.time {
        Time::Unix(seconds) => seconds,
        Time::Shown { day, seconds, offset } => {
            let today = || {
                let now =
                    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
                zone::shown(now, zone).div_euclid(DAY)
            };
            let shown = day.on(today).ok_or("unexpected date")? * DAY + seconds;
            match offset {
                Some(offset) => shown - offset,
                None => zone::seconds_at(shown, zone).ok_or("no such time in the zone")?,
            }
        }
    };
    Ok((seconds, written.fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_zone_that_they_name_or_else_of_the_type_s() {
        let berlin = Some("Europe/Berlin");
        assert_eq!(seconds_written("1 Jul 2024 12:00", berlin), Ok(1_719_828_000));
        assert_eq!(seconds_written("1 Jul 2024 12:00 UTC", berlin), Ok(1_719_835_200));
        assert_eq!(seconds_written("2024-07-01T12:00:00+02:00", None), Ok(1_719_828_000));
        assert_eq!(seconds_written("2024-03-31 02:30", berlin), Ok(1_711_845_000));
        assert_eq!(seconds_written("2024-02-29 24:00:00", None), Ok(1_709_251_200));
        assert_eq!(seconds_written("1709251200.5", None), Err("there is more behind it"));
    }

    #[test]
    fn ticks_have_the_digits_of_the_type() {
        assert_eq!(ticks_written("1709251200.56", 3, None), Ok(1_709_251_200_560));
        assert_eq!(ticks_written("1709251200567", 1, None), Ok(1_709_251_200_500));
        assert_eq!(ticks_written("2024-03-01 00:00:00.123456789012", 9, None), Ok(1_709_251_200_123_456_789));
        assert_eq!(ticks_written("1969-12-31 23:59:59.25", 2, None), Ok(-750));
        assert!(
            ticks_written("2262-04-12", 9, None).is_err() && ticks_written("2300-01-01", 3, None).is_err()
        );
    }

    #[test]
    fn days_have_any_delimiter_or_none() {
        for text in ["2024-02-29", "2024-2-29", "2024/02.29", "20240229"] {
            assert_eq!(days_written(text), Some(19_782), "{text}");
        }
        for text in
            ["2023-02-29", "24-02-29", "2024-02", "2024-02-29 ", "202402291", "2024-02-299", "2024é2é29", ""]
        {
            assert_eq!(days_written(text), None, "{text}");
        }
    }
}
