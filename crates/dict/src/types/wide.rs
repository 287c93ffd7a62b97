//! Numbers of 256 bits to and from text: wide decimals and integers.

use super::Fixed;
use super::print::with_point;
use super::text::decimal_digits;
use arrow::datatypes::i256;

/// The integers of a type.
pub(super) struct Range {
    low: i256,
    high: i256,
}

impl Range {
    pub(super) fn contains(&self, value: i256) -> bool {
        self.low <= value && value <= self.high
    }
}

pub(super) const INT128: Range = Range { low: i256::from_i128(i128::MIN), high: i256::from_i128(i128::MAX) };
pub(super) const UINT128: Range = Range { low: i256::ZERO, high: i256::from_parts(u128::MAX, 0) };
pub(super) const INT256: Range = Range { low: i256::MIN, high: i256::MAX };

const TEN: i256 = i256::from_i128(10);

/// A whole number of the range.
pub(super) fn integer(text: &str, range: &Range) -> Option<Fixed> {
    let (sign, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (i256::MINUS_ONE, digits),
        [b'+', digits @ ..] | digits => (i256::ONE, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = gathered(sign, digits.iter().map(|digit| digit - b'0'))?;
    range.contains(value).then(|| value.to_le_bytes())
}

/// `-12.345` in units of 10^-scale; digits beyond the scale are cut.
pub(super) fn decimal(text: &str, precision: u8, scale: u8) -> Option<Fixed> {
    let (negative, digits) = decimal_digits(text, scale)?;
    let value = gathered(if negative { i256::MINUS_ONE } else { i256::ONE }, digits)?;
    let limit = TEN.checked_pow(precision.into())?;
    (limit.wrapping_neg() < value && value < limit).then(|| value.to_le_bytes())
}

/// The number of these digits. Each takes the sign, as the lowest number has no positive counterpart.
fn gathered(sign: i256, digits: impl Iterator<Item = u8>) -> Option<i256> {
    let mut value = i256::ZERO;
    for digit in digits {
        let digit = sign.wrapping_mul(i256::from_i128(digit.into()));
        value = value.checked_mul(TEN)?.checked_add(digit)?;
    }
    Some(value)
}

/// Extends a signed number of fewer bytes.
pub(crate) fn sign_extended(raw: &[u8]) -> Fixed {
    let negative = raw.last().is_some_and(|high| high & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; size_of::<Fixed>()];
    wide[..raw.len()].copy_from_slice(raw);
    wide
}

/// A number in units of 10^-scale, without trailing zeros behind the point.
pub(super) fn to_text(raw: &[u8], scale: usize) -> String {
    let value = i256::from_le_bytes(raw[..32].try_into().expect("a wide number has 32 bytes"));
    with_point(&value.to_string(), scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_ranges() {
        let limits = [
            (&INT128, "-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"),
            (&UINT128, "0", "340282366920938463463374607431768211455"),
            (
                &INT256,
                "-57896044618658097711785492504343953926634992332820282019728792003956564819968",
                "57896044618658097711785492504343953926634992332820282019728792003956564819967",
            ),
        ];
        for (range, low, high) in limits {
            assert_eq!(to_text(&integer(low, range).unwrap(), 0), low);
            assert_eq!(to_text(&integer(high, range).unwrap(), 0), high);
        }
        assert_eq!(integer("-1", &UINT128), None);
        assert_eq!(integer("170141183460469231731687303715884105728", &INT128), None);
        let beyond = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
        assert_eq!(integer(beyond, &INT256), None);
        for text in ["", "-", "+", "1.5", "1e3", " 1", "--1"] {
            assert_eq!(integer(text, &INT128), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_cut_and_bounded() {
        let number = |text: &str, precision, scale| {
            decimal(text, precision, scale).map(|raw| to_text(&raw, scale.into()))
        };
        assert_eq!(number("-12.3456", 40, 2).unwrap(), "-12.34");
        assert_eq!(number("-.5", 76, 76).unwrap(), "-0.5");
        let nines = "9".repeat(76);
        assert_eq!(number(&nines, 76, 0).unwrap(), nines);
        assert_eq!(number(&format!("-{nines}"), 76, 0).unwrap(), format!("-{nines}"));
        assert_eq!(number(&format!("1{}", "0".repeat(76)), 76, 0), None);
        assert_eq!(number(&"9".repeat(100), 76, 0), None);
        assert_eq!(number("1", 76, 76), None);
        assert_eq!(number("1e70", 76, 2).unwrap(), format!("1{}", "0".repeat(70)));
        assert_eq!(number("1e75", 76, 2), None);
    }
}
