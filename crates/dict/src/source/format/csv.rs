//! CSV: fields between commas, in double quotes where needed (doubled inside), `\N` for NULL. Blanks around a field are
//! none of it, as in ClickHouse.

use super::{Field, FieldSink, KeyCells};
use crate::error::DictError;
use crate::row::Style;
use crate::types::{DataType, Shape};

/// Writes a line of a head.
pub(super) fn write_head<'a>(texts: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    for (i, text) in texts.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        quote(text, out);
    }
    out.push(b'\n');
}

fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for (i, key) in keys.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match key.text(row, Style::Quoted) {
            None => out.extend_from_slice(b"\\N"),
            Some(text) if quoted(key.data_type) || key.is_composite() => quote(&text, out),
            Some(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
    out.push(b'\n');
}

/// What ClickHouse puts in quotes, in CSV beside arrays and maps.
pub(super) fn quoted(data_type: &DataType) -> bool {
    let data_type = data_type.inner();
    data_type.shape() == Shape::Text || data_type.is_quoted()
}

/// Reads whole rows; the last one may lack its line end.
pub(super) fn read(bytes: &[u8], sink: &mut impl FieldSink) -> Result<(), DictError> {
    let mut at = 0;
    let mut scratch = Vec::new();
    while at < bytes.len() {
        let mut column = 0;
        loop {
            at = field(bytes, at, column, &mut scratch, sink)?;
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
        sink.end_row(column)?;
    }
    Ok(())
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The first position from `at` on that is no blank.
fn behind_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|&&byte| is_blank(byte)).count()
}

/// Reads one field and the blanks around it; returns the position after them.
fn field(
    bytes: &[u8],
    start: usize,
    column: usize,
    scratch: &mut Vec<u8>,
    sink: &mut impl FieldSink,
) -> Result<usize, DictError> {
    let start = behind_blanks(bytes, start);
    if bytes.get(start) == Some(&b'"') {
        scratch.clear();
        let mut at = start + 1;
        loop {
            let rest = &bytes[at..];
            let Some(length) = rest.iter().position(|&byte| byte == b'"') else {
                return Err(DictError::parse_text("A quote is not closed"));
            };
            scratch.extend_from_slice(&rest[..length]);
            at += length + 1;
            if bytes.get(at) != Some(&b'"') {
                sink.field(column, Field::Exact(scratch))?;
                return Ok(behind_blanks(bytes, at));
            }
            scratch.push(b'"');
            at += 1;
        }
    }
    let rest = &bytes[start..];
    let length = rest.iter().position(|&byte| byte == b',' || byte == b'\n').unwrap_or(rest.len());
    let mut field = &rest[..length];
    if rest.get(length) != Some(&b',') {
        field = field.strip_suffix(b"\r").unwrap_or(field);
    }
    let end = start + field.len();
    while let [rest @ .., b' ' | b'\t'] = field {
        field = rest;
    }
    sink.field(column, if field == b"\\N" { Field::Null } else { Field::Plain(field) })?;
    Ok(end)
}

/// Where each whole row of `bytes` ends.
pub(super) fn row_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    enum In {
        /// Nothing of the field has come but blanks.
        Start,
        Plain,
        Quotes,
        /// After a quote inside quotes: another one continues the field, anything else ends it.
        Closed,
    }
    let mut place = In::Start;
    bytes.iter().enumerate().filter_map(move |(at, &byte)| {
        let (next, end) = match (&place, byte) {
            (In::Start | In::Closed, b'"') => (In::Quotes, None),
            (In::Quotes, b'"') => (In::Closed, None),
            (In::Quotes, _) => (In::Quotes, None),
            (_, b'\n') => (In::Start, Some(at + 1)),
            (_, b',') => (In::Start, None),
            (In::Start, byte) if is_blank(byte) => (In::Start, None),
            _ => (In::Plain, None),
        };
        place = next;
        end
    })
}

/// Where the last whole row of `bytes` ends.
pub(super) fn whole_rows(bytes: &[u8]) -> usize {
    row_ends(bytes).last().unwrap_or(0)
}
