//! Days and seconds to and from ClickHouse's text (proleptic Gregorian calendar, UTC).
//! The two conversions are Howard Hinnant's `days_from_civil` and `civil_from_days`.

/// Days since 1970-01-01 of a date; `None` if there is no such day.
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = *DAYS.get(usize::try_from(month - 1).ok()?)? + i64::from(leap && month == 2);
    if !(1..=last).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Year, month and day, both from 1 on, of days since 1970-01-01.
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Returns the days from `day` back to the same day of the same month in one of these years, in which the month begins
/// on the same weekday; 0 where there is no such year.
pub(super) fn days_to_like_month(day: i64, mut years: std::ops::RangeInclusive<i64>) -> i64 {
    let (year, month, _) = civil_from_days(day);
    let days_after = |other| Some(days_from_civil(year, month, 1)? - days_from_civil(other, month, 1)?);
    years.find_map(|other| days_after(other).filter(|days| days.rem_euclid(7) == 0)).unwrap_or(0)
}

/// `2024-02-29` as days since 1970-01-01; as in ClickHouse any characters may separate the numbers, month and day may
/// have one digit, and `20240229` needs no separators.
pub(super) fn date_from_text(text: &str) -> Option<i64> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (year, rest) = text.split_at_checked(4).filter(|(year, _)| is_digits(year))?;
    let (month, day) = match rest.len() == 4 && is_digits(rest) {
        true => rest.split_at(2),
        false => {
            let is_delimiter = |next: char| next.is_ascii() && !next.is_ascii_digit();
            rest.strip_prefix(is_delimiter)?.split_once(is_delimiter)?
        }
    };
    let short =
        |digits: &str| ((1..=2).contains(&digits.len()) && is_digits(digits)).then(|| digits.parse().ok())?;
    days_from_civil(year.parse().ok()?, short(month)?, short(day)?)
}

/// `2024-02-29 12:34:56` (or with a `T`, a `Z` at the end, or a date alone) as seconds since 1970-01-01 UTC.
pub(super) fn datetime_from_text(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let Some((date, time)) = text.split_once([' ', 'T']) else {
        return date_from_text(text).map(|days| days * 86_400);
    };
    // Followed by a time, a day without delimiters is a number.
    let days = date_from_text(date).filter(|_| !date.bytes().all(|byte| byte.is_ascii_digit()))?;
    let fields: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = fields[..] else { return None };
    let field = |digits: &str, limit: i64| -> Option<i64> {
        let sane = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
        let value = sane.then(|| digits.parse::<i64>().ok()).flatten()?;
        (value < limit).then_some(value)
    };
    Some(days * 86_400 + field(hour, 24)? * 3600 + field(minute, 60)? * 60 + field(second, 60)?)
}

/// Days since 1970-01-01 as `2024-02-29`.
pub(crate) fn date_to_text(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Seconds since 1970-01-01 UTC as `2024-02-29 12:34:56`.
pub(crate) fn datetime_to_text(seconds: i64) -> String {
    let rest = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{} {hour:02}:{minute:02}:{second:02}", date_to_text(seconds.div_euclid(86_400)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_goes_there_and_back() {
        for days in -80_000..130_000 {
            assert_eq!(date_from_text(&date_to_text(days)), Some(days));
        }
        assert_eq!(date_from_text("1970-01-01"), Some(0));
        assert_eq!(date_from_text("2024-02-29"), Some(19_782));
    }

    #[test]
    fn refuses_days_that_are_not() {
        for text in ["2023-02-29", "2024-13-01", "2024-00-01", "2024-04-31", "24-01-01", "2024-1", "x", ""] {
            assert_eq!(date_from_text(text), None, "{text}");
        }
        for text in ["2024-01-01 24:00:00", "2024-01-01 1:00:00", "2024-01-01 10:00", "2024-01-01 10:00:+1"] {
            assert_eq!(datetime_from_text(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_go_there_and_back() {
        for seconds in [0, 1, 86_399, 86_400, 1_700_000_000, u32::MAX as i64] {
            assert_eq!(datetime_from_text(&datetime_to_text(seconds)), Some(seconds));
        }
        assert_eq!(datetime_from_text("2024-02-29T12:34:56Z"), Some(1_709_210_096));
    }
}
