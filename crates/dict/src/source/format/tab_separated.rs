//! TabSeparated: fields between tabs, rows between line ends, backslash escapes, `\N` for NULL.

use super::{KeyCells, Rows, utf8, wrong_width};
use crate::error::DictError;

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for (i, key) in keys.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        match key.text(row) {
            None => out.extend_from_slice(b"\\N"),
            Some(text) => escape(text.as_bytes(), out),
        }
    }
    out.push(b'\n');
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        let letter = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\0' => b'0',
            8 => b'b',
            12 => b'f',
            b'\\' | b'\'' => byte,
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

pub(super) fn read(bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
    let mut scratch = Vec::new();
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Ok(());
    }
    for line in body.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let fields = line.split(|&byte| byte == b'\t').count();
        if fields != rows.width() {
            return Err(wrong_width(fields, rows));
        }
        for (column, field) in line.split(|&byte| byte == b'\t').enumerate() {
            if field == b"\\N" {
                rows.push_parsed(column, None)?;
            } else if field.contains(&b'\\') {
                unescape(field, &mut scratch);
                let text = utf8(&scratch, rows, column)?;
                rows.push_parsed(column, Some(text))?;
            } else {
                let text = utf8(field, rows, column)?;
                rows.push_parsed(column, Some(text))?;
            }
        }
    }
    Ok(())
}

fn unescape(field: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'0') => 0,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(&other) => other,
            None => b'\\',
        });
    }
}
