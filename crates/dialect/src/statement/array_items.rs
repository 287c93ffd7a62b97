//! Array parameters, given as texts, as SQL lists and arrays: an item is read by the type of the items.

use granary_dict::{DataType, unescape};

use super::composite_text::items;
use super::parameters::quoted;
use crate::limits::LISTED_ITEMS_MAX;

/// Whether the whole text is a value of the type. A cast ignores trailing text.
pub fn is_whole(text: &str, data_type: &DataType) -> bool {
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match data_type {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 | DataType::UInt128 => {
            are_digits(text.strip_prefix('+').unwrap_or(text))
        }
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Int128
        | DataType::Int256 => are_digits(text.strip_prefix(['+', '-']).unwrap_or(text)),
        DataType::Date | DataType::Date32 => text.len() <= "2020-01-01".len(),
        DataType::DateTime { .. } => text.len() <= TO_THE_SECOND,
        DataType::DateTime64 { .. } => text
            .get(TO_THE_SECOND..)
            .is_none_or(|fraction| fraction.is_empty() || fraction.strip_prefix('.').is_some_and(are_digits)),
        _ => true,
    }
}

const TO_THE_SECOND: usize = "2020-01-01 00:00:00".len();

/// The items of an array as a list; `None` if there are none, too many, or nested ones.
pub fn list(value: &str, item: &DataType) -> Option<String> {
    let items = items(value, item);
    if items.is_empty() {
        return None;
    }
    let literals: Vec<String> = items.iter().map(|text| literal(text, item)).collect::<Option<_>>()?;
    let are_short = literals.iter().all(|literal| !literal.starts_with("CAST"));
    (are_short || literals.len() <= LISTED_ITEMS_MAX).then(|| literals.join(", "))
}

/// An array of few items as an array literal, which some functions require; `None`: the text must be cast.
pub fn in_place(value: &str, item: &DataType) -> Option<String> {
    let items = items(value, item);
    let written: Vec<String> = match item {
        DataType::String => items.iter().map(|text| literal(text, item)).collect::<Option<_>>()?,
        DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
            if items.len() <= LISTED_ITEMS_MAX && items.iter().all(|text| is_whole(text, item)) =>
        {
            items.iter().map(|text| format!("CAST({} AS {item})", quoted(text))).collect()
        }
        _ => return None,
    };
    (!written.is_empty()).then(|| format!("[{}]", written.join(", ")))
}

/// An item of an array as a literal that compares like a value of the item's type.
fn literal(text: &str, data_type: &DataType) -> Option<String> {
    fn integer<T: std::str::FromStr + ToString>(text: &str) -> Option<String> {
        text.parse::<T>().ok().map(|number| number.to_string())
    }
    let of_range = match data_type {
        DataType::UInt8 => integer::<u8>(text),
        DataType::UInt16 => integer::<u16>(text),
        DataType::UInt32 => integer::<u32>(text),
        DataType::UInt64 => integer::<u64>(text),
        DataType::Int8 => integer::<i8>(text),
        DataType::Int16 => integer::<i16>(text),
        DataType::Int32 => integer::<i32>(text),
        DataType::Int64 => integer::<i64>(text),
        DataType::Nullable(_) if text.eq_ignore_ascii_case("NULL") => return Some("NULL".to_owned()),
        DataType::Nullable(inner) => return literal(text, inner),
        DataType::Array(_) | DataType::Map(_) | DataType::Nested(_) | DataType::Tuple(_) => return None,
        _ => None,
    };
    if of_range.is_some() {
        return of_range;
    }
    let plain = match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(escaped) => {
            let mut plain = Vec::new();
            unescape(escaped.as_bytes(), &mut plain);
            String::from_utf8(plain).ok()?
        }
        None => text.to_owned(),
    };
    match data_type {
        DataType::String => Some(quoted(&plain)),
        // A malformed item is reported by the cast of the whole array.
        plain_type if is_whole(&plain, plain_type) => {
            Some(format!("CAST({} AS {plain_type})", quoted(&plain)))
        }
        _ => None,
    }
}
