//! CSV: fields between commas, in double or single quotes where needed (doubled inside), `\N` for NULL.

use super::{KeyCells, Rows, utf8, wrong_width};
use crate::error::DictError;
use crate::types::{DataType, Shape};

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for (i, key) in keys.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match key.text(row) {
            None => out.extend_from_slice(b"\\N"),
            Some(text) if quoted(key.data_type) => {
                out.push(b'"');
                out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
                out.push(b'"');
            }
            Some(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
    out.push(b'\n');
}

/// What ClickHouse puts in quotes.
pub(super) fn quoted(data_type: &DataType) -> bool {
    let data_type = data_type.inner();
    data_type.shape() == Shape::Text
        || matches!(data_type, DataType::Date | DataType::Date32 | DataType::DateTime { .. } | DataType::Uuid)
}

pub(super) fn read(bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
    let mut at = 0;
    let mut scratch = Vec::new();
    while at < bytes.len() {
        let mut column = 0;
        loop {
            if column == rows.width() {
                return Err(wrong_width(column + 1, rows));
            }
            at = field(bytes, at, column, &mut scratch, rows)?;
            column += 1;
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => {
                    at += 2;
                    break;
                }
                Some(b'\n') => {
                    at += 1;
                    break;
                }
                None => break,
                Some(_) => {
                    return Err(DictError::parse_text("Expected ',' or the end of the line behind a quote"));
                }
            }
        }
        if column != rows.width() {
            return Err(wrong_width(column, rows));
        }
    }
    Ok(())
}

/// Reads one field into `column`; the place behind it.
fn field(
    bytes: &[u8],
    start: usize,
    column: usize,
    scratch: &mut Vec<u8>,
    rows: &mut Rows,
) -> Result<usize, DictError> {
    if let Some(&quote @ (b'"' | b'\'')) = bytes.get(start) {
        scratch.clear();
        let mut at = start + 1;
        loop {
            match (bytes.get(at), bytes.get(at + 1)) {
                (None, _) => return Err(DictError::parse_text("A quote is not closed")),
                (Some(&byte), Some(&next)) if byte == quote && next == quote => {
                    scratch.push(quote);
                    at += 2;
                }
                (Some(&byte), _) if byte == quote => break,
                (Some(&byte), _) => {
                    scratch.push(byte);
                    at += 1;
                }
            }
        }
        let text = utf8(scratch, rows, column)?;
        rows.push_parsed(column, Some(text))?;
        return Ok(at + 1);
    }
    let length = bytes[start..].iter().position(|byte| b",\n".contains(byte)).unwrap_or(bytes.len() - start);
    let mut field = &bytes[start..start + length];
    if bytes.get(start + length) != Some(&b',') {
        field = field.strip_suffix(b"\r").unwrap_or(field);
    }
    let is_text = rows.data_type(column).shape() == Shape::Text;
    match field {
        b"\\N" => rows.push_parsed(column, None)?,
        // ClickHouse: an empty unquoted field is the default of what is not a string.
        b"" if !is_text => rows.push_parsed(column, None)?,
        _ => {
            let text = utf8(field, rows, column)?;
            rows.push_parsed(column, Some(text))?;
        }
    }
    Ok(start + field.len())
}
