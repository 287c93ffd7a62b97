//! Local times that occur twice or not at all, when clocks change. Arrow returns NULL for both.

use std::str::FromStr;

use datafusion::arrow::array::timezone::Tz;

/// Seconds of an hour.
const HOUR: i64 = 3_600;

/// The moment that a skipped local time stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapPolicy {
    /// The first moment after the gap, for a day that begins in it.
    After,
    /// An hour earlier, as ClickHouse reads it.
    HourBefore,
}

/// Unix seconds of a local time, given in seconds too; the first moment if it occurs twice.
pub fn unix_seconds(local: i64, zone: &str, missing: GapPolicy) -> Option<i64> {
    let zone = Tz::from_str(zone).ok()?;
    granary_dict::unix_seconds(&zone, local).or_else(|| match missing {
        GapPolicy::After => granary_dict::unix_seconds(&zone, local + HOUR),
        GapPolicy::HourBefore => granary_dict::unix_seconds(&zone, local - HOUR),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::NaiveDateTime;

    #[test]
    fn clocks_are_set() {
        let local = |text: &str| {
            NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap().and_utc().timestamp()
        };
        let at = |text, zone, missing| unix_seconds(local(text), zone, missing);
        let berlin = |text| at(text, "Europe/Berlin", GapPolicy::HourBefore);
        assert_eq!(berlin("2024-10-27 02:30:00"), Some(local("2024-10-27 00:30:00")));
        assert_eq!(berlin("2024-03-31 02:30:00"), Some(local("2024-03-31 00:30:00")));
        assert_eq!(berlin("2024-07-01 12:00:00"), Some(local("2024-07-01 10:00:00")));
        let day = |text, zone| at(text, zone, GapPolicy::After);
        assert_eq!(day("2018-11-04 00:00:00", "America/Sao_Paulo"), Some(local("2018-11-04 03:00:00")));
        assert_eq!(day("2023-11-05 00:00:00", "America/Havana"), Some(local("2023-11-05 04:00:00")));
        assert_eq!(day("2024-01-01 00:00:00", "Mars/Olympus"), None);
    }
}
