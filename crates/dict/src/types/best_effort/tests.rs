use super::super::calendar::days_from_civil;
use super::*;

fn shown(text: &str) -> (i64, i64, Option<i64>) {
    match read(text, UnixFraction::Refused) {
        Ok(WrittenTime { time: Time::Shown { day: Day::Known(day), seconds, offset }, .. }) => {
            (day, seconds, offset)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn one_moment_has_many_texts() {
    let moment = (19_782, 45_296, None);
    for text in [
        "2024-02-29 12:34:56",
        "2024-02-29T12:34:56",
        "  2024/2/29   12:34:56 ",
        "20240229123456",
        "20240229 123456",
        "20240229-123456",
        "29 Feb 2024 12:34:56",
        "29-Feb-24 12:34:56",
        "29.02.2024, 12:34:56",
        "2/29/2024 12:34:56 PM",
        "Thu, 29 February 2024 12:34:56",
        "February 29, 2024 12:34:56 pm",
        "12:34:56 29/02/2024",
        "2024-02-29 12:34:56.789",
    ] {
        assert_eq!(shown(text), moment, "{text}");
    }
    for (text, offset) in [
        ("2024-02-29T12:34:56Z", 0),
        ("2024-02-29 12:34:56 UTC", 0),
        ("2024-02-29 12:34:56+0530", 19_800),
        ("2024-02-29 12:34:56-5:30", -19_800),
        ("2024-02-29 12:34:56 +130", 5_400),
        ("Thu, 29 Feb 2024 12:34:56 MSK", 10_800),
    ] {
        assert_eq!(shown(text), (19_782, 45_296, Some(offset)), "{text}");
    }
    assert_eq!(shown("2024"), (19_723, 0, None));
    assert_eq!(shown("202402"), (19_754, 0, None));
    assert_eq!(shown("2024-02-29 12 am"), (19_782, 0, None));
    assert_eq!(shown("2024-02-29 24:00:00"), (19_782, 86_400, None));
}

#[test]
fn so_many_digits_alone_are_unix_seconds_or_parts_of_them() {
    let unix = |text, fraction| read(text, fraction).map(|written| (written.time, written.fraction));
    let fraction = |value, digits| Fraction { value, digits };
    let read = UnixFraction::Read;
    assert_eq!(unix("1704103872", read), Ok((Time::Unix(1_704_103_872), fraction(0, 0))));
    assert_eq!(unix("170410387", read), Ok((Time::Unix(170_410_387), fraction(0, 0))));
    assert_eq!(unix("1704103872123", read), Ok((Time::Unix(1_704_103_872), fraction(123, 3))));
    assert_eq!(unix("1704103872123456", read), Ok((Time::Unix(1_704_103_872), fraction(123_456, 6))));
    assert_eq!(unix("1704103872.50", read), Ok((Time::Unix(1_704_103_872), fraction(50, 2))));
    assert_eq!(unix("1704103872.50", UnixFraction::Refused), Err(BEHIND));
    for digits in ["123", "12345", "1234567", "12345678901", "123456789012", "123456789012345"] {
        assert_eq!(unix(digits, read), Err(UNEXPECTED_DIGITS), "{digits}");
    }
}

#[test]
fn what_is_no_time_is_refused_with_the_reason() {
    for (text, reason) in [
        ("", NOTHING),
        ("0", NOTHING),
        ("-5", NOTHING),
        ("2023-02-29", NO_SUCH_DAY),
        ("20241301", NO_SUCH_DAY),
        ("31 Feb", NO_SUCH_DAY),
        ("2024-01-01x", "unexpected alphabetical character"),
        ("2024-01-01 noon", UNEXPECTED_WORD),
        ("1 Married 2024", UNEXPECTED_WORD),
        ("2024-01-01 10:00:00 11:00", BEHIND),
        ("10:00 11:00", "time component is duplicated"),
        // ClickHouse adds one to the other.
        ("04pm 19930625", DAY_TWICE),
        ("2024-01-01 09AM-123456", "hour component is duplicated"),
        ("2024-01-01 10:00 +3 +5", "time zone offset is duplicated"),
        ("2024-01-01,", "unexpected word after Date"),
        ("2024.5.1.5", "unexpected point symbol"),
        ("2024-01-01 10:00:00.1.2", "duplicate fractional part"),
        ("2024-01-01 10:00:00\u{a0}", BEHIND),
    ] {
        assert_eq!(read(text, UnixFraction::Refused), Err(reason), "{text}");
    }
}

#[test]
fn a_day_without_a_year_is_the_last_one() {
    let day = |text| match read(text, UnixFraction::Refused) {
        Ok(WrittenTime { time: Time::Shown { day, .. }, .. }) => day,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(day("Mar  3 01:33:48"), Day::Last { month: 3, day: 3 });
    assert_eq!(day("10:00"), Day::Last { month: 1, day: 1 });
    let known = |year, month, day| days_from_civil(year, month, day).unwrap();
    let today = known(2024, 3, 3);
    assert_eq!(Day::Last { month: 3, day: 3 }.on(|| today), Some(today));
    assert_eq!(Day::Last { month: 3, day: 4 }.on(|| today), Some(known(2023, 3, 4)));
    assert_eq!(Day::Last { month: 2, day: 29 }.on(|| known(2025, 3, 1)), None);
}
