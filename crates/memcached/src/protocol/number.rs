//! Numbers as memcached reads them, with C's `strtol` and `strtoul`: what these accept is accepted.

/// Parses `text` as `strtoull` does: the magnitude, whether a minus came first, and the first byte behind the number.
fn digits(text: &[u8]) -> Option<(u64, bool, Option<u8>)> {
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    let (negative, text) = match &text[blanks..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let value = text[..length]
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    Some((value, negative, text.get(length).copied()))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn ends_well(after: Option<u8>) -> bool {
    after.is_none_or(|byte| byte == 0 || is_space(byte))
}

/// An unsigned number of 64 bits. Negative numbers are refused, except those that C wraps around to a value up to
/// `i64::MAX`.
pub fn unsigned(text: &[u8]) -> Option<u64> {
    let (value, negative, after) = digits(text)?;
    let value = if negative { value.wrapping_neg() } else { value };
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    let refused = value > i64::MAX as u64 && text.contains(&b'-');
    (ends_well(after) && !refused).then_some(value)
}

/// The low 32 bits of what [`unsigned`] returns.
pub fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned(text).map(|value| value as u32)
}

/// The low 32 bits of a signed number that fits 64 bits.
pub fn signed_32(text: &[u8]) -> Option<i32> {
    let (value, negative, after) = digits(text)?;
    let value = if negative { -i128::from(value) } else { i128::from(value) };
    let value = i64::try_from(value).ok()?;
    ends_well(after).then_some(value as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_c_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("+7", Some(7)),
            ("\t 7", Some(7)),
            ("7 x", Some(7)),
            ("7\0x", Some(7)),
            ("7x", None),
            ("-1", None),
            ("-0", Some(0)),
            ("-18446744073709551615", Some(1)),
            ("", None),
            ("-", None),
            ("x", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(unsigned_32(b"4294967297"), Some(1));
        for (text, expected) in [
            ("-1", Some(-1)),
            ("4294967299", Some(3)),
            ("9223372036854775807", Some(-1)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(0)),
            ("1.5", None),
        ] {
            assert_eq!(signed_32(text.as_bytes()), expected, "{text:?}");
        }
    }
}
