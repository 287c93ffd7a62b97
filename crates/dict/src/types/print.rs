//! Fixed-width values as ClickHouse prints them.

use super::DataType;
use super::calendar::{date_to_text, datetime_to_text};
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
        DataType::DateTime { .. } => out.write_str(&datetime_to_text(signed(raw) as i64)),
        DataType::Bool => out.write_str(if raw[0] == 0 { "false" } else { "true" }),
        DataType::Uuid => raw.iter().enumerate().try_for_each(|(i, byte)| {
            let dash = if [4, 6, 8, 10].contains(&i) { "-" } else { "" };
            write!(out, "{dash}{byte:02x}")
        }),
        DataType::Decimal { scale, .. } => print_decimal(out, signed(raw), (*scale).into()),
        DataType::String | DataType::Nullable(_) => unreachable!("not of fixed width"),
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

/// Without trailing zeros behind the point, as ClickHouse does.
fn print_decimal(out: &mut String, value: i128, scale: u32) -> std::fmt::Result {
    let sign = if value < 0 { "-" } else { "" };
    let (value, unit) = (value.unsigned_abs(), 10u128.pow(scale));
    let fraction = format!("{:0width$}", value % unit, width = scale as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if scale == 0 || fraction.is_empty() { "" } else { "." };
    let fraction = if point.is_empty() { "" } else { fraction };
    write!(out, "{sign}{}{point}{fraction}", value / unit)
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
            ("Bool", "true"),
            ("UUID", "00112233-4455-6677-8899-aabbccddeeff"),
            ("Decimal(38, 5)", "-123456789012345678901234567890123.00001"),
            ("Decimal(9, 3)", "0.5"),
            ("Decimal(9, 3)", "-7"),
            ("Decimal(9, 0)", "10"),
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
