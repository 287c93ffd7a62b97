//! Local times: DateTime('zone') is read and shown in its zone.

use super::calendar::{datetime_from_text, datetime_to_text, days_to_like_month};
use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

/// A day, in seconds.
const DAY: i64 = 86_400;
/// 2100-01-01 00:00:00 UTC.
const FIRST_WITHOUT_RULES: i64 = 4_102_444_800;

/// Whether the IANA database has such a zone.
pub(super) fn exists(zone: &str) -> bool {
    zone.parse::<Tz>().is_ok()
}

/// Unix seconds of a local time as ClickHouse shows it.
pub(super) fn from_text(text: &str, zone: Option<&str>) -> Option<i64> {
    let local = datetime_from_text(text)?;
    seconds_at(local, zone.filter(|_| !text.ends_with('Z')))
}

/// `2024-02-29 12:34:56` in the zone.
pub(super) fn to_text(seconds: i64, zone: Option<&str>) -> String {
    datetime_to_text(shown(seconds, zone))
}

/// Unix seconds of a local time, in a zone by its name, or in UTC. Of a time that comes twice, the first; one that is
/// skipped is read, as in ClickHouse, by the clocks after the gap.
pub(super) fn seconds_at(local: i64, zone: Option<&str>) -> Option<i64> {
    let Some(zone) = zone else { return Some(local) };
    let zone = zone.parse::<Tz>().ok()?;
    // The longest gap was a day long.
    unix_seconds(&zone, local).or_else(|| Some(unix_seconds(&zone, local + DAY)? - DAY))
}

/// What clocks show at a moment, in seconds since they showed the beginning of 1970.
pub(super) fn shown(seconds: i64, zone: Option<&str>) -> i64 {
    let zone = zone.and_then(|zone| zone.parse::<Tz>().ok());
    seconds + zone.map_or(0, |zone| offset_at(&zone, seconds))
}

/// Returns the Unix seconds at which the clocks of a zone show a local time, given in seconds since they showed the
/// beginning of 1970: of two such moments the first; None if the clocks leave the time out.
pub fn unix_seconds(zone: &impl TimeZone, local: i64) -> Option<i64> {
    let shift = shift_to_rules(local);
    let naive = DateTime::from_timestamp(local - shift, 0)?.naive_utc();
    zone.from_local_datetime(&naive).earliest().map(|time| time.timestamp() + shift)
}

/// Returns by how many seconds the clocks of a zone are ahead of UTC at a moment, given in Unix seconds.
pub fn offset_at(zone: &impl TimeZone, seconds: i64) -> i64 {
    let Some(time) = DateTime::from_timestamp(seconds - shift_to_rules(seconds), 0) else { return 0 };
    zone.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc().into()
}

/// Returns the seconds by which a moment after 2099, or a local time, is moved back to a month that begins on the same
/// weekday: clocks are set by the weekdays of a month, and chrono-tz has the rules of no later year. Until 2099 it
/// is 0.
fn shift_to_rules(seconds: i64) -> i64 {
    match seconds < FIRST_WITHOUT_RULES {
        true => 0,
        false => days_to_like_month(seconds.div_euclid(DAY), 2088..=2098) * DAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_go_there_and_back() {
        let moscow = Some("Europe/Moscow");
        assert_eq!(from_text("2024-02-29 12:00:00", moscow), Some(1_709_197_200));
        assert_eq!(to_text(1_709_197_200, moscow), "2024-02-29 12:00:00");
        assert_eq!(from_text("2024-02-29T12:00:00Z", moscow), Some(1_709_208_000));
        assert_eq!(from_text("2024-02-29 12:00:00", None), Some(1_709_208_000));
        // Summer and winter time, an hour skipped and an hour that comes twice.
        let berlin = Some("Europe/Berlin");
        assert_eq!(to_text(from_text("2024-07-01 08:00:00", berlin).unwrap(), berlin), "2024-07-01 08:00:00");
        assert_eq!(from_text("2024-03-31 02:30:00", berlin), Some(1_711_845_000));
        assert_eq!(from_text("2024-10-06 02:15:00", Some("Australia/Lord_Howe")), Some(1_728_141_300));
        assert_eq!(from_text("2018-11-04 00:15:00", Some("America/Sao_Paulo")), Some(1_541_297_700));
        assert_eq!(from_text("2024-10-27 02:30:00", berlin), Some(1_729_989_000));
        // Summer time goes on.
        for text in
            ["2100-07-01 12:00:00", "2101-01-01 00:00:00", "2204-02-29 23:59:59", "2299-08-31 08:00:00"]
        {
            assert_eq!(to_text(from_text(text, berlin).unwrap(), berlin), text);
        }
        assert_eq!(from_text("2100-07-01 12:00:00", berlin), Some(4_118_119_200));
        assert_eq!(to_text(4150751726, berlin), "2101-07-14 04:35:26");
        assert!(exists("Asia/Istanbul") && !exists("Mars/Olympus"));
    }
}
