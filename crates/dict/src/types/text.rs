//! ClickHouse's text forms of values, as in TabSeparated, DEFAULT and `null_value`.

use super::calendar::date_from_text;
use super::{
    DECIMAL128_DIGITS, DataType, Shape, address, moment, seconds_written, ticks_written, wide, zone,
};
use crate::error::DictError;

/// A fixed-width value, little-endian, in the low bytes.
pub(crate) type Fixed = [u8; 32];

/// Reads the text of a value of a fixed-width type (`Shape::Fixed` or `Shape::Bit`).
///
/// # Errors
/// `CANNOT_PARSE_TEXT` with the text and the type.
pub(crate) fn text_to_fixed(data_type: &DataType, text: &str) -> Result<Fixed, DictError> {
    let data_type = data_type.inner();
    debug_assert!(matches!(data_type.shape(), Shape::Fixed(_) | Shape::Bit));
    parse(data_type, text).ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        DictError::parse_text(format!("Cannot parse '{shown}' as {data_type}"))
    })
}

/// Like [`text_to_fixed`], for a field of a text format, where times are read as people write them.
///
/// # Errors
/// The errors of [`text_to_fixed`], with the reason why a text is no time.
pub(crate) fn lenient_to_fixed(data_type: &DataType, text: &str) -> Result<Fixed, DictError> {
    let number = match data_type.inner() {
        DataType::DateTime { tz } => {
            // A time out of range is the first or the last DateTime.
            seconds_written(text, tz.as_deref()).map(|seconds| seconds.clamp(0, u32::MAX.into()))
        }
        DataType::DateTime64 { precision, tz } => ticks_written(text, *precision, tz.as_deref()),
        _ => return text_to_fixed(data_type, text),
    };
    number.map(|number| pad(&number.to_le_bytes())).map_err(|reason| {
        let shown: String = text.chars().take(64).collect();
        DictError::parse_text(format!("Cannot parse '{shown}' as {}: {reason}", data_type.inner()))
    })
}

fn parse(data_type: &DataType, text: &str) -> Option<Fixed> {
    match data_type {
        DataType::UInt8 => integer(text, 0, u8::MAX.into()),
        DataType::UInt16 => integer(text, 0, u16::MAX.into()),
        DataType::UInt32 => integer(text, 0, u32::MAX.into()),
        DataType::UInt64 => integer(text, 0, u64::MAX.into()),
        DataType::Int8 => integer(text, i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => integer(text, i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => integer(text, i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => integer(text, i64::MIN.into(), i64::MAX.into()),
        DataType::Float32 => float(text).map(|value| pad(&(value as f32).to_le_bytes())),
        DataType::Float64 => float(text).map(|value| pad(&value.to_le_bytes())),
        DataType::Bool => match text {
            "1" | "true" | "True" | "TRUE" => Some(pad(&[1])),
            "0" | "false" | "False" | "FALSE" => Some(pad(&[0])),
            _ => None,
        },
        DataType::Date => date_from_text(text).and_then(|days| in_range(days, 0, u16::MAX.into())),
        DataType::Date32 => date_from_text(text).and_then(|days| in_range(days, -25_567, 120_529)),
        DataType::DateTime { tz } => {
            let seconds = match text.parse::<u32>() {
                Ok(seconds) => i64::from(seconds),
                Err(_) => zone::from_text(text, tz.as_deref())?,
            };
            (0..=i64::from(u32::MAX)).contains(&seconds).then(|| pad(&seconds.to_le_bytes()))
        }
        DataType::DateTime64 { precision, tz } => {
            moment::from_text(text, *precision, tz.as_deref()).map(|kept| pad(&kept.to_le_bytes()))
        }
        DataType::Uuid => uuid(text).map(|value| pad(&value)),
        DataType::Ipv4 => address::ipv4_from_text(text).map(|value| pad(&value.to_le_bytes())),
        DataType::Ipv6 => address::ipv6_from_text(text).map(|value| pad(&value)),
        DataType::Int128 => wide::integer(text, &wide::INT128),
        DataType::UInt128 => wide::integer(text, &wide::UINT128),
        DataType::Int256 => wide::integer(text, &wide::INT256),
        DataType::Decimal { precision: precision @ ..=DECIMAL128_DIGITS, scale } => {
            decimal_from_text(text, *precision, *scale).map(|value| pad(&value.to_le_bytes()))
        }
        DataType::Decimal { precision, scale } => wide::decimal(text, *precision, *scale),
        DataType::String
        | DataType::Array(_)
        | DataType::Map(_)
        | DataType::Nested(_)
        | DataType::Tuple(_)
        | DataType::Nullable(_) => None,
    }
}

fn pad(bytes: &[u8]) -> Fixed {
    let mut fixed = [0; size_of::<Fixed>()];
    fixed[..bytes.len()].copy_from_slice(bytes);
    fixed
}

fn integer(text: &str, low: i128, high: i128) -> Option<Fixed> {
    let value: i128 = text.parse().ok()?;
    (low..=high).contains(&value).then(|| pad(&value.to_le_bytes()))
}

fn in_range(days: i64, low: i64, high: i64) -> Option<Fixed> {
    (low..=high).contains(&days).then(|| pad(&(days as i32).to_le_bytes()))
}

fn float(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// 16 bytes in the order of the text (big-endian), as Arrow keeps it here.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 || [8, 13, 18, 23].iter().any(|&at| bytes[at] != b'-') {
        return None;
    }
    let mut value = [0; 16];
    let mut digits = bytes.iter().filter(|&&b| b != b'-');
    for byte in &mut value {
        let high = char::from(*digits.next()?).to_digit(16)?;
        let low = char::from(*digits.next()?).to_digit(16)?;
        *byte = (high * 16 + low) as u8;
    }
    digits.next().is_none().then_some(value)
}

/// `-12.345` in units of 10^-scale. Digits beyond the scale are cut, as ClickHouse does; more than
/// `precision` digits in all are refused.
fn decimal_from_text(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (negative, digits) = decimal_digits(text, scale)?;
    let mut value: i128 = 0;
    for digit in digits {
        value = value.checked_mul(10)?.checked_add(digit.into())?;
    }
    (value < 10i128.pow(precision.into())).then_some(if negative { -value } else { value })
}

/// Whether a decimal is negative, and its digits to the last one of the scale.
pub(super) fn decimal_digits(text: &str, scale: u8) -> Option<(bool, impl Iterator<Item = u8>)> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, exponent) = match digits.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse().ok().filter(|e| EXPONENTS.contains(e))?),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0
        || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let count = usize::try_from(whole.len() as i64 + exponent + i64::from(scale)).unwrap_or(0);
    let digits = whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat(b'0')).take(count);
    Some((negative, digits.map(|digit| digit - b'0')))
}

/// Beyond these a decimal is 0, or has more digits than any type.
const EXPONENTS: std::ops::RangeInclusive<i64> = -1000..=1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn low8(data_type: &str, text: &str) -> Option<i64> {
        let data_type = DataType::parse(data_type).unwrap();
        let fixed = text_to_fixed(&data_type, text).ok()?;
        Some(i64::from_le_bytes(fixed[..8].try_into().unwrap()))
    }

    #[test]
    fn integers_keep_their_ranges() {
        assert_eq!(low8("UInt8", "255"), Some(255));
        assert_eq!(low8("UInt8", "256"), None);
        assert_eq!(low8("UInt8", "-1"), None);
        assert_eq!(low8("Int64", "-9223372036854775808"), Some(i64::MIN));
        assert_eq!(low8("UInt64", "18446744073709551615"), Some(-1));
        assert_eq!(low8("Int8", "1.5"), None);
        assert_eq!(low8("Int8", ""), None);
    }

    #[test]
    fn times_and_flags() {
        assert_eq!(low8("Date", "1970-01-02"), Some(1));
        assert_eq!(low8("Date", "1969-12-31"), None);
        assert_eq!(low8("DateTime", "1970-01-01 00:01:00"), Some(60));
        assert_eq!(low8("DateTime", "60"), Some(60));
        assert_eq!(low8("Bool", "true"), Some(1));
        assert_eq!(low8("Bool", "2"), None);
        let floats = text_to_fixed(&DataType::Float32, "1.5").unwrap();
        assert_eq!(floats[..4], 1.5f32.to_le_bytes());
    }

    #[test]
    fn decimals_are_cut_and_bounded() {
        assert_eq!(decimal_from_text("-12.345", 9, 2), Some(-1234));
        assert_eq!(decimal_from_text("7", 9, 2), Some(700));
        assert_eq!(decimal_from_text(".5", 9, 1), Some(5));
        assert_eq!(decimal_from_text("100", 3, 1), None);
        assert_eq!(decimal_from_text("-", 9, 2), None);
        for (text, value) in
            [("1e3", 100_000), ("-1.25e1", -1250), ("125E-1", 1250), ("1e-2", 1), ("9e-3", 0), ("5e-999", 0)]
        {
            assert_eq!(decimal_from_text(text, 9, 2), Some(value), "{text}");
        }
        for text in ["1e", "e1", "1e1.5", "1e8", "1e99999999999", "1e2000"] {
            assert_eq!(decimal_from_text(text, 9, 2), None, "{text}");
        }
    }

    #[test]
    fn uuids_lie_in_text_order() {
        let value = text_to_fixed(&DataType::Uuid, "00112233-4455-6677-8899-aabbccddeeff").unwrap();
        assert_eq!(value[..4], [0, 0x11, 0x22, 0x33]);
        assert!(text_to_fixed(&DataType::Uuid, "0011223344556677-8899-aabbccddeeff--").is_err());
    }
}
