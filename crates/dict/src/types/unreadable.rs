//! ClickHouse's codes of what is wrong with a DEFAULT, which differ by type.

use super::{DECIMAL_DIGITS_MAX, DataType, text_to_fixed};
use crate::definition::Literal;
use crate::error::Code;

/// A text that begins with four digits begins with a year, as ClickHouse reads it.
const TIME_DIGITS_MIN: usize = 5;

/// Whether a literal is a Unix time with fewer digits than ClickHouse reads as one.
pub(crate) fn is_short_time(data_type: &DataType, literal: &Literal) -> bool {
    let (
        DataType::DateTime { .. } | DataType::DateTime64 { .. },
        Literal::Bare(text) | Literal::Quoted(text),
    ) = (data_type.inner(), literal)
    else {
        return false;
    };
    let whole = text.split('.').next().unwrap_or_default();
    (1..TIME_DIGITS_MIN).contains(&whole.len()) && whole.bytes().all(|byte| byte.is_ascii_digit())
}

/// The code of a literal that is no value of a type; `None`: no text is wrong.
pub(crate) fn unreadable(data_type: &DataType, literal: &Literal) -> Option<Code> {
    use DataType::*;
    let is_decimal = |scale: u8| match literal {
        Literal::Bare(text) | Literal::Quoted(text) => {
            text_to_fixed(&Decimal { precision: DECIMAL_DIGITS_MAX, scale }, text).is_ok()
        }
        Literal::Null => false,
    };
    Some(match data_type.inner() {
        Float32 | Float64 => Code::CannotParseNumber,
        Date | Date32 => Code::CannotParseDate,
        DateTime { .. } | DateTime64 { .. } => Code::CannotParseDatetime,
        Uuid => Code::CannotParseUuid,
        Ipv4 => Code::CannotParseIpv4,
        Ipv6 => Code::CannotParseIpv6,
        Bool => Code::CannotParseBool,
        Array(_) => Code::CannotReadArrayFromText,
        Decimal { scale, .. } if is_decimal(*scale) => Code::ArgumentOutOfBound,
        plain if plain.is_integer() || plain.is_exact() => Code::UnexpectedDataAfterParsedValue,
        _ => return None,
    })
}
