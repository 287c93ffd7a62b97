//! Which keys a column of PostgreSQL can have. Others are not in the table, and a failing cast would fail the whole
//! request.

use crate::types::DataType;
use chrono::NaiveDate;
use std::net::IpAddr;
use tokio_postgres::types::Type;

/// The last years of PostgreSQL's dates, in our era and before Christ.
const YEAR_MAX: i32 = 5_874_897;
const YEAR_MAX_BC: i32 = 4714;

/// Whether a column of the type can have the value. A String is found only by a text that the type itself writes, so
/// only those are looked for; the texts of our truth values and times are not checked against types of numbers.
pub(super) fn holds(server_type: &Type, ours: &DataType, value: Option<&str>) -> bool {
    let Some(value) = value else { return true };
    match *server_type {
        _ if is_truth_or_time(ours.inner()) => true,
        Type::INT2 => value.parse::<i16>().is_ok(),
        Type::INT4 => value.parse::<i32>().is_ok(),
        Type::INT8 => value.parse::<i64>().is_ok(),
        Type::OID => value.parse::<u32>().is_ok(),
        Type::BOOL => matches!(value, "true" | "false" | "1" | "0"),
        Type::FLOAT4 => value.parse().is_ok_and(|float: f32| is_in_range(value, float.into())),
        Type::FLOAT8 => value.parse().is_ok_and(|float: f64| is_in_range(value, float)),
        Type::NUMERIC => is_numeric(value),
        _ if *ours.inner() == DataType::String => writes(server_type, value),
        _ => true,
    }
}

fn is_truth_or_time(ours: &DataType) -> bool {
    use DataType::{Bool, Date, Date32, DateTime, DateTime64};
    matches!(ours, Bool | Date | Date32 | DateTime { .. } | DateTime64 { .. })
}

/// Whether the type may write this text.
fn writes(server_type: &Type, text: &str) -> bool {
    match *server_type {
        Type::UUID => has_digits(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
        Type::MACADDR => has_digits(text, "xx:xx:xx:xx:xx:xx"),
        Type::MACADDR8 => has_digits(text, "xx:xx:xx:xx:xx:xx:xx:xx"),
        Type::BYTEA => text.strip_prefix("\\x").is_some_and(|hex| {
            hex.len().is_multiple_of(2) && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
        }),
        Type::DATE => is_infinite(text) || is_date(in_era(text)),
        Type::TIME => is_time(text),
        Type::TIMESTAMP => is_infinite(text) || is_timestamp(in_era(text)),
        Type::TIMESTAMPTZ => {
            let (text, era) = in_era(text);
            // Sessions are in UTC.
            is_infinite(text) || text.strip_suffix("+00").is_some_and(|text| is_timestamp((text, era)))
        }
        Type::INET => network(text).is_some(),
        Type::CIDR => network(text).is_some_and(|network| network.has_no_host()),
        // PostgreSQL's text has no NUL.
        _ => !text.contains('\0'),
    }
}

/// Whether a key is compared with the column's text, and not with its value: a String that the type does not write
/// cannot be cast to it, and which texts it writes is known here only for some types. Such a comparison uses no index
/// of the column.
pub(super) fn is_compared_as_text(server_type: &Type, ours: &DataType) -> bool {
    *ours.inner() == DataType::String && !is_cast(server_type)
}

/// Whether it is known which texts a type writes: what `holds` lets through is cast without an error.
fn is_cast(server_type: &Type) -> bool {
    let is_known = matches!(
        *server_type,
        Type::INT2
            | Type::INT4
            | Type::INT8
            | Type::OID
            | Type::BOOL
            | Type::FLOAT4
            | Type::FLOAT8
            | Type::NUMERIC
            | Type::UUID
            | Type::MACADDR
            | Type::MACADDR8
            | Type::BYTEA
            | Type::DATE
            | Type::TIME
            | Type::TIMESTAMP
            | Type::TIMESTAMPTZ
            | Type::INET
            | Type::CIDR
            | Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::UNKNOWN
    );
    // Any text is one without case, an extension's type that has no number of its own.
    is_known || server_type.name() == "citext"
}

/// Whether a number is neither so small that it is read as 0 nor so large that it is read as infinite.
fn is_in_range(text: &str, float: f64) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    match float {
        0.0 => is_zero,
        float if float.is_infinite() => !mantissa.bytes().any(|byte| byte.is_ascii_digit()),
        _ => true,
    }
}

/// Numbers have any length, but exponents below 1000.
fn is_numeric(text: &str) -> bool {
    let exponent = text.split_once(['e', 'E']).map(|(_, exponent)| exponent.parse::<i16>());
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    (has_digits || matches!(text, "NaN" | "Infinity" | "-Infinity"))
        && text.parse::<f64>().is_ok()
        && exponent.is_none_or(|e| e.is_ok_and(|e| e.unsigned_abs() < 1000))
}

/// Whether a text has a hexadecimal digit for each `x` of the form, and equals it elsewhere.
fn has_digits(text: &str, form: &str) -> bool {
    let is_as = |(byte, wanted): (u8, u8)| match wanted {
        b'x' => byte.is_ascii_hexdigit(),
        wanted => byte == wanted,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_as)
}

fn is_infinite(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
}

#[derive(Clone, Copy, PartialEq)]
enum Era {
    Ours,
    BeforeChrist,
}

fn in_era(text: &str) -> (&str, Era) {
    match text.strip_suffix(" BC") {
        Some(text) => (text, Era::BeforeChrist),
        None => (text, Era::Ours),
    }
}

fn is_date((text, era): (&str, Era)) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    // With other widths it reads day, month and year in another order.
    let has_widths =
        (month.len(), day.len()) == (2, 2) && (year.len() == 4 || year.len() > 4 && !year.starts_with('0'));
    let (true, Some(year), Some(month), Some(day)) = (has_widths, number(year), number(month), number(day))
    else {
        return false;
    };
    let Ok(year) = i32::try_from(year) else { return false };
    let year = match era {
        Era::Ours if (1..=YEAR_MAX).contains(&year) => year,
        Era::BeforeChrist if (1..=YEAR_MAX_BC).contains(&year) => 1 - year,
        _ => return false,
    };
    // The calendar repeats itself; chrono's ends sooner.
    NaiveDate::from_ymd_opt((year - 1).rem_euclid(400) + 1, month, day).is_some()
}

fn is_time(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let parts: Vec<Option<u32>> = whole.split(':').map(number).collect();
    let is_in_day = match parts[..] {
        [Some(24), Some(0), Some(0)] => number(fraction) == Some(0),
        [Some(hour), Some(minute), Some(second)] => hour < 24 && minute < 60 && second < 60,
        _ => false,
    };
    is_in_day && number(fraction).is_some()
}

fn is_timestamp((text, era): (&str, Era)) -> bool {
    text.split_once(' ').is_some_and(|(date, time)| is_date((date, era)) && is_time(time))
}

/// Digits alone.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// An address, and the number of its network bits.
struct InetAddress {
    address: IpAddr,
    bits: u32,
}

impl InetAddress {
    fn has_no_host(&self) -> bool {
        let (address, width) = match self.address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        address.trailing_zeros().min(width) >= width - self.bits
    }
}

fn network(text: &str) -> Option<InetAddress> {
    let (address, bits) = match text.split_once('/') {
        Some((_, bits)) if bits.len() > 1 && bits.starts_with('0') => return None,
        Some((address, bits)) => (address, Some(number(bits)?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(width);
    (bits <= width).then_some(InetAddress { address, bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_type_writes_is_held_and_nothing_else() {
        for (server_type, held, others) in [
            (Type::INT4, &["-5", "2147483647"][..], &["2147483648", "x", "", "1.5"][..]),
            (Type::BOOL, &["true", "false", "1"], &["2", "yes", ""]),
            (Type::FLOAT4, &["0.1", "-1e30", "inf", "NaN", "0", "0e5"], &["1e39", "1e-50", "x", ""]),
            (Type::FLOAT8, &["1e39", "1e-300"], &["1e309", "1e-400", "1,5"]),
            (
                Type::NUMERIC,
                &["123456789012345678901234567890.5", "NaN", "1e5"],
                &["1e99999", "x", "", "-nan"],
            ),
            (Type::UUID, &["00112233-4455-6677-8899-aabbccddeeff"], &["x", "", "0011-2233"]),
            (
                Type::DATE,
                &["2024-02-29", "12024-01-01", "300000-02-29", "0044-03-15 BC", "4714-11-24 BC", "infinity"],
                &[
                    "2023-02-29",
                    "yesterday",
                    "2024-02",
                    "0000-01-01",
                    "5000-01-01 BC",
                    "99999999-01-01",
                    "99-12-31",
                    "2024-2-29",
                ],
            ),
            (Type::TIME, &["23:59:59.5", "24:00:00"], &["24:00:01", "12:60:00", "noon"]),
            (
                Type::TIMESTAMP,
                &["2024-02-29 12:00:00.5", "-infinity"],
                &["2024-02-29", "2024-02-29 25:00:00"],
            ),
            (
                Type::TIMESTAMPTZ,
                &["2024-02-29 12:00:00+00", "0044-03-15 12:00:00+00 BC"],
                &["2024-02-29 12:00:00", "x+00"],
            ),
            (Type::INET, &["10.0.0.1", "10.0.0.1/8", "2001:db8::1"], &["10.0.0", "10.0.0.1/33", "x"]),
            (Type::CIDR, &["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::/0"], &["10.0.0.1/8", "::1/64"]),
            (Type::MACADDR, &["08:00:2b:01:02:03"], &["08:00:2b:01:02", "x"]),
            (Type::TEXT, &["", "anything"], &["nul\0"]),
        ] {
            let holds = |text: &&&str| holds(&server_type, &DataType::String, Some(**text));
            assert_eq!(held.iter().find(|text| !holds(text)), None, "{server_type}");
            assert_eq!(others.iter().find(holds), None, "{server_type}");
        }
        // What other types of ours write is cast by the server as it can be.
        for (server_type, ours, text) in [
            (Type::DATE, "DateTime", "2024-02-29 00:00:00"),
            (Type::INT8, "DateTime", "2024-02-29 00:00:00"),
            (Type::INT2, "Nullable(Bool)", "true"),
        ] {
            assert!(holds(&server_type, &DataType::parse(ours).unwrap(), Some(text)), "{server_type}");
        }
    }
}
