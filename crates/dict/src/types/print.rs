//! Fixed-width values as ClickHouse prints them.

use super::calendar::date_to_text;
use super::{DataType, address, moment, wide, zone};
use std::fmt::Write;

/// Appends the text of a value whose bytes are `raw` (of the type's width, little-endian).
pub(crate) fn print_fixed(data_type: &DataType, raw: &[u8], out: &mut String) {
    let done = match data_type.inner() {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            write!(out, "{}", unsigned(raw))
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            write!(out, "{}", signed(raw))
        }
        DataType::Float32 => write_float(out, f32::from_bits(unsigned(raw) as u32).into(), |out, value| {
            write!(out, "{}", value as f32)
        }),
        DataType::Float64 => {
            write_float(out, f64::from_bits(unsigned(raw) as u64), |out, value| write!(out, "{value}"))
        }
        DataType::Date | DataType::Date32 => out.write_str(&date_to_text(signed(raw) as i64)),
        DataType::DateTime { tz } => out.write_str(&zone::to_text(signed(raw) as i64, tz.as_deref())),
        DataType::Bool => out.write_str(if raw[0] == 0 { "false" } else { "true" }),
        DataType::Uuid => raw.iter().enumerate().try_for_each(|(i, byte)| {
            let dash = if [4, 6, 8, 10].contains(&i) { "-" } else { "" };
            write!(out, "{dash}{byte:02x}")
        }),
        DataType::DateTime64 { precision, tz } => {
            out.write_str(&moment::to_text(signed(raw) as i64, *precision, tz.as_deref()))
        }
        DataType::Ipv4 => out.write_str(&address::ipv4_to_text(unsigned(raw) as u32)),
        DataType::Ipv6 => out.write_str(&address::ipv6_text(raw)),
        DataType::Decimal { scale, .. } if raw.len() > 16 => {
            out.write_str(&wide::to_text(raw, (*scale).into()))
        }
        DataType::Decimal { scale, .. } => print_decimal(out, signed(raw), (*scale).into()),
        DataType::Int128 | DataType::UInt128 | DataType::Int256 => out.write_str(&wide::to_text(raw, 0)),
        DataType::String
        | DataType::Array(_)
        | DataType::Map(_)
        | DataType::Nested(_)
        | DataType::Tuple(_)
        | DataType::Nullable(_) => unreachable!("not of fixed width"),
    };
    done.expect("a String takes everything");
}

fn unsigned(raw: &[u8]) -> u128 {
    raw.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

fn signed(raw: &[u8]) -> i128 {
    let unused = 128 - 8 * raw.len() as u32;
    ((unsigned(raw) << unused) as i128) >> unused
}

fn write_float(
    out: &mut String,
    value: f64,
    finite: impl FnOnce(&mut String, f64) -> std::fmt::Result,
) -> std::fmt::Result {
    match value {
        value if value.is_nan() => out.write_str("nan"),
        f64::INFINITY => out.write_str("inf"),
        f64::NEG_INFINITY => out.write_str("-inf"),
        value => finite(out, value),
    }
}

/// Floats that ClickHouse writes without an exponent.
const WITHOUT_EXPONENT: std::ops::Range<f64> = 1e-6..1e21;

/// A finite float as ClickHouse writes a literal of it: `1000.`, `1.5`, `1e25`.
pub fn float_literal(value: f64) -> String {
    if value != 0.0 && !WITHOUT_EXPONENT.contains(&value.abs()) {
        return format!("{value:e}");
    }
    let text = value.to_string();
    if text.contains('.') { text } else { format!("{text}.") }
}

fn print_decimal(out: &mut String, value: i128, scale: usize) -> std::fmt::Result {
    out.write_str(&with_point(&value.to_string(), scale))
}

/// The digits of a number in units of 10^-scale, without trailing zeros behind the point, as ClickHouse does.
pub(super) fn with_point(digits: &str, scale: usize) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::text_to_fixed;

    #[test]
    fn prints_what_the_parser_reads() {
        for (data_type, text) in [
            ("UInt8", "255"),
            ("Int8", "-128"),
            ("UInt64", "18446744073709551615"),
            ("Int64", "-9223372036854775808"),
            ("Float32", "0.1"),
            ("Float64", "-2.5"),
            ("Float64", "nan"),
            ("Float64", "-inf"),
            ("Date", "2149-06-06"),
            ("Date32", "1900-01-01"),
            ("DateTime", "2106-02-07 06:28:15"),
            ("DateTime('Europe/Moscow')", "2024-02-29 12:00:00"),
            ("Bool", "true"),
            ("UUID", "00112233-4455-6677-8899-aabbccddeeff"),
            ("Decimal(38, 5)", "-123456789012345678901234567890123.00001"),
            ("Decimal(9, 3)", "0.5"),
            ("Decimal(9, 3)", "-7"),
            ("Decimal(9, 0)", "10"),
            ("Decimal(9, 9)", "-0.000000001"),
            ("Decimal(39, 1)", "-0.1"),
            (
                "Decimal(76, 3)",
                "1234567890123456789012345678901234567890123456789012345678901234567890123.001",
            ),
            (
                "Decimal(76, 0)",
                "-9999999999999999999999999999999999999999999999999999999999999999999999999999",
            ),
            ("Int128", "-170141183460469231731687303715884105728"),
            ("UInt128", "340282366920938463463374607431768211455"),
            ("Int256", "-57896044618658097711785492504343953926634992332820282019728792003956564819968"),
            ("DateTime64(0)", "2299-12-31 23:59:59"),
            ("DateTime64(3)", "1900-01-01 00:00:00.001"),
            ("DateTime64(4)", "2024-02-29 12:00:00.1230"),
            ("DateTime64(6, 'Asia/Tokyo')", "1969-12-31 12:00:00.000001"),
            ("DateTime64(7)", "1969-12-31 23:59:59.9999999"),
            ("DateTime64(9)", "2262-04-11 23:47:16.854775807"),
            ("IPv4", "192.168.0.1"),
            ("IPv6", "2001:db8::ff00:42:8329"),
        ] {
            let parsed = DataType::parse(data_type).unwrap();
            let width = match parsed.shape() {
                crate::types::Shape::Fixed(width) => width,
                _ => 1,
            };
            let mut out = String::new();
            print_fixed(&parsed, &text_to_fixed(&parsed, text).unwrap()[..width], &mut out);
            assert_eq!(out, text, "{data_type}");
        }
    }
}
