//! TabSeparated: fields between tabs, rows between line ends, backslash escapes, `\N` for NULL.

use super::{Field, FieldSink, KeyCells};
use crate::error::DictError;
use crate::row::Style;
use crate::types::{escape, unescape};

/// The line of names, or of types.
pub(super) fn write_head<'a>(texts: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    for (i, text) in texts.enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        escape(text.as_bytes(), out);
    }
    out.push(b'\n');
}

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for (i, key) in keys.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        match key.text(row, Style::Quoted) {
            None => out.extend_from_slice(b"\\N"),
            // Nothing in it ends a field: its strings are escaped already.
            Some(text) if key.is_composite() => out.extend_from_slice(text.as_bytes()),
            Some(text) => escape(text.as_bytes(), out),
        }
    }
    out.push(b'\n');
}

/// Reads whole rows; the last one may lack its line end.
pub(super) fn read(bytes: &[u8], sink: &mut impl FieldSink) -> Result<(), DictError> {
    let mut scratch = Vec::new();
    let mut column = 0;
    let mut start = 0;
    let mut at = 0;
    let mut escapes = 0_usize;
    // After a line end at the very end there is no row.
    while start < bytes.len() || column > 0 {
        let end = bytes.get(at).copied();
        match end {
            // The byte after a backslash ends nothing: MySQL writes a line end in a value that way.
            Some(b'\\') => {
                escapes += 1;
                at = (at + 2).min(bytes.len());
                continue;
            }
            Some(b'\t' | b'\n') | None => {}
            Some(_) => {
                at += 1;
                continue;
            }
        }
        let mut field = &bytes[start..at];
        if end != Some(b'\t') {
            field = field.strip_suffix(b"\r").unwrap_or(field);
        }
        let field = match (field, escapes) {
            (b"\\N", _) => Field::Null,
            // An empty string is one here, for NULL has a spelling of its own.
            (b"", _) => Field::Exact(field),
            (_, 0) => Field::Plain(field),
            _ if sink.keeps_escapes(column) => Field::Plain(field),
            _ => {
                unescape(field, &mut scratch);
                Field::Plain(&scratch)
            }
        };
        sink.field(column, field)?;
        column += 1;
        at += 1;
        start = at;
        escapes = 0;
        if end != Some(b'\t') {
            sink.end_row(column)?;
            column = 0;
        }
    }
    Ok(())
}

/// Where the first row of `bytes` ends.
pub(super) fn first_row(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let end = bytes.iter().position(|&byte| {
        let ends = byte == b'\n' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map(|at| at + 1)
}

/// Where the last whole row of `bytes` ends.
pub(super) fn whole_rows(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    while let Some(at) = bytes[..end].iter().rposition(|&byte| byte == b'\n') {
        let escapes = bytes[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if escapes % 2 == 0 {
            return at + 1;
        }
        end = at;
    }
    0
}
