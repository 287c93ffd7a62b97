//! BSON's values as text: documents and arrays as JSON, in which what JSON does not have is a string.

use crate::limits;
use crate::types::{DataType, datetime_to_text, print_fixed};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{DateTime, RawBinaryRef, RawBsonRef};

/// A value as a String has it; `None`: it has no text.
pub(super) fn plain(value: RawBsonRef<'_>) -> Option<String> {
    match value {
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) => Some(text.to_string()),
        RawBsonRef::ObjectId(id) => Some(id.to_hex()),
        RawBsonRef::DateTime(at) => Some(moment(at)),
        RawBsonRef::Binary(binary) => bytes(binary),
        RawBsonRef::Double(value) => Some(value.to_string()),
        RawBsonRef::Int32(_)
        | RawBsonRef::Int64(_)
        | RawBsonRef::Decimal128(_)
        | RawBsonRef::Boolean(_)
        | RawBsonRef::Document(_)
        | RawBsonRef::Array(_) => {
            let mut text = String::new();
            write(value, limits::BSON_NESTING_MAX, &mut text)?;
            Some(text)
        }
        _ => None,
    }
}

/// Writes a value inside of JSON, nested at most `depth` deep.
fn write(value: RawBsonRef<'_>, depth: usize, out: &mut String) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match value {
        RawBsonRef::Int32(value) => *out += &value.to_string(),
        RawBsonRef::Int64(value) => *out += &value.to_string(),
        RawBsonRef::Double(value) if value.is_finite() => *out += &value.to_string(),
        RawBsonRef::Decimal128(value) => *out += &value.to_string(),
        RawBsonRef::Boolean(value) => *out += if value { "true" } else { "false" },
        RawBsonRef::Null | RawBsonRef::Undefined | RawBsonRef::Double(_) => *out += "null",
        RawBsonRef::Array(values) => {
            out.push('[');
            for (place, value) in values.into_iter().enumerate() {
                separate(place, out);
                write(value.ok()?, depth, out)?;
            }
            out.push(']');
        }
        RawBsonRef::Document(fields) => {
            out.push('{');
            for (place, field) in fields.into_iter().enumerate() {
                let (name, value) = field.ok()?;
                separate(place, out);
                *out += &quoted(name.as_str());
                out.push(':');
                write(value, depth, out)?;
            }
            out.push('}');
        }
        other => *out += &quoted(&plain(other)?),
    }
    Some(())
}

fn separate(place: usize, out: &mut String) {
    if place > 0 {
        out.push(',');
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `2024-02-29 12:00:00`, with milliseconds where there are some.
fn moment(at: DateTime) -> String {
    let milliseconds = at.timestamp_millis();
    let seconds = datetime_to_text(milliseconds.div_euclid(1000));
    match milliseconds.rem_euclid(1000) {
        0 => seconds,
        rest => format!("{seconds}.{rest:03}"),
    }
}

/// A UUID in its own form, other bytes as they are, if they are a text.
fn bytes(binary: RawBinaryRef<'_>) -> Option<String> {
    if binary.subtype == BinarySubtype::Uuid && binary.bytes.len() == 16 {
        let mut text = String::new();
        print_fixed(&DataType::Uuid, binary.bytes, &mut text);
        return Some(text);
    }
    std::str::from_utf8(binary.bytes).ok().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{RawArrayBuf, RawBson, rawdoc};

    #[test]
    fn what_nests_too_deep_is_no_text() {
        let nested = |depth: usize| {
            (1..depth).fold(RawBson::Array(RawArrayBuf::new()), |inner, _| {
                RawBson::Document(rawdoc! { "a": inner })
            })
        };
        let deepest = nested(limits::BSON_NESTING_MAX);
        assert!(plain(deepest.as_raw_bson_ref()).is_some_and(|text| text.contains(r#"{"a":[]}"#)));
        assert_eq!(plain(nested(limits::BSON_NESTING_MAX + 1).as_raw_bson_ref()), None);
    }
}
