//! Local times that occur twice or not at all, when clocks change. Arrow returns NULL for both.

use std::str::FromStr;

use datafusion::arrow::array::timezone::Tz;
use granary_dict::offset_at;

/// Seconds that a zone's time is away from UTC at most, and more.
const OFFSET_MAX: i64 = 30 * 3_600;

/// The moment that a skipped local time stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapPolicy {
    /// The first moment after the gap, for a day that begins in it.
    After,
    /// Earlier by as much as clocks are set forward, as ClickHouse reads it.
    Before,
}

/// Unix seconds of a local time, given in seconds too; the first moment if it occurs twice.
pub fn unix_seconds(local: i64, zone: &str, missing: GapPolicy) -> Option<i64> {
    let zone = Tz::from_str(zone).ok()?;
    let known = granary_dict::unix_seconds(&zone, local);
    Some(known.unwrap_or_else(|| {
        let after = gap_end(&zone, local);
        match missing {
            GapPolicy::After => after,
            GapPolicy::Before => local - offset_at(&zone, after),
        }
    }))
}

/// The moment at which clocks are set forward over a local time.
fn gap_end(zone: &Tz, local: i64) -> i64 {
    let (mut before, mut after) = (local - OFFSET_MAX, local + OFFSET_MAX);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        match middle + offset_at(zone, middle) > local {
            true => after = middle,
            false => before = middle,
        }
    }
    after
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
        let berlin = |text| at(text, "Europe/Berlin", GapPolicy::Before);
        assert_eq!(berlin("2024-10-27 02:30:00"), Some(local("2024-10-27 00:30:00")));
        assert_eq!(berlin("2024-03-31 02:30:00"), Some(local("2024-03-31 00:30:00")));
        assert_eq!(berlin("2024-07-01 12:00:00"), Some(local("2024-07-01 10:00:00")));
        let day = |text, zone| at(text, zone, GapPolicy::After);
        assert_eq!(day("2018-11-04 00:00:00", "America/Sao_Paulo"), Some(local("2018-11-04 03:00:00")));
        assert_eq!(day("2023-11-05 00:00:00", "America/Havana"), Some(local("2023-11-05 04:00:00")));
        assert_eq!(day("2024-01-01 00:00:00", "Mars/Olympus"), None);
        // Gaps of half an hour, of a quarter, and one that does not begin at midnight.
        let lord_howe = at("2023-10-01 02:15:00", "Australia/Lord_Howe", GapPolicy::Before);
        assert_eq!(lord_howe, Some(local("2023-09-30 15:15:00")));
        assert_eq!(day("1986-01-01 00:00:00", "Asia/Kathmandu"), Some(local("1985-12-31 18:30:00")));
        let kathmandu = at("1986-01-01 00:00:00", "Asia/Kathmandu", GapPolicy::Before);
        assert_eq!(kathmandu, Some(local("1985-12-31 18:15:00")));
        assert_eq!(day("1919-03-31 00:00:00", "America/Toronto"), Some(local("1919-03-31 04:30:00")));
    }
}
