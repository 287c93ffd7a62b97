//! JSONEachRow: one object a row, columns by name, in any order; an attribute that is missing is NULL (so the default).

use super::json_value::Json;
use super::{End, KeyCells, Rows, csv};
use crate::error::DictError;
use crate::row::Style;
use serde_json::{Number, Value};

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, key) in keys.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(Value::from(key.name).to_string().as_bytes());
        out.push(b':');
        let text = match key.text(row, Style::Json) {
            None => "null".to_string(),
            Some(text) if csv::quoted(key.data_type) => Value::from(text).to_string(),
            // JSON has no such numbers; ClickHouse writes null.
            Some(text) if text.ends_with("nan") || text.ends_with("inf") => "null".to_string(),
            Some(text) => text,
        };
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b"}\n");
}

/// Reads the whole objects at the beginning of `bytes`, and says where they end.
pub(super) fn read(bytes: &[u8], end: End, rows: &mut Rows) -> Result<usize, DictError> {
    let mut objects = serde_json::Deserializer::from_slice(bytes).into_iter::<Json>();
    let mut read = 0;
    while let Some(object) = objects.next() {
        let members = match object {
            Ok(Json::Object(members)) => members,
            Ok(other) => {
                let shown: String = other.to_string().chars().take(64).collect();
                return Err(DictError::parse_text(format!("Expected an object of JSON, got {shown}")));
            }
            Err(e) if e.is_eof() && end == End::Later => return Ok(read),
            Err(e) => return Err(DictError::parse_text(format!("Malformed JSON: {e}"))),
        };
        read = objects.byte_offset();
        for column in 0..rows.width() {
            // Of members with one name the last counts.
            let value =
                members.iter().rev().find(|(name, _)| name == rows.name(column)).map(|(_, value)| value);
            match value {
                None if column < rows.key_width() => {
                    return Err(rows.missing_key(column, members.iter().map(|(name, _)| name)));
                }
                None | Some(Json::Null) => rows.push_parsed(column, None)?,
                Some(Json::Text(text)) => rows.push_parsed(column, Some(text))?,
                Some(Json::Bool(flag)) => rows.push_parsed(column, Some(if *flag { "1" } else { "0" }))?,
                Some(value) if rows.data_type(column).is_exact() && value.has_number(is_rounded) => {
                    let text = format!("{value} may have lost digits as a JSON number: put it in quotes");
                    return Err(rows.within(column, DictError::parse_text(text)));
                }
                Some(other) => rows.push_parsed(column, Some(&other.to_string()))?,
            }
        }
        rows.end_row();
    }
    Ok(bytes.len())
}

/// Digits that every float of 64 bits keeps.
const FLOAT_DIGITS: usize = 15;

/// Whether the reader may have made another number of one with more digits.
fn is_rounded(number: &Number) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    number.is_f64() && digits(&number.to_string()) > FLOAT_DIGITS
}
