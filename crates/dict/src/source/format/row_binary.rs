//! RowBinary: values one behind the other, little-endian, strings behind a varint length, Nullable behind a
//! byte that is 1 for NULL. Some types are narrower there than in a row here, so they are cut or padded.

use super::{KeyCells, Rows};
use crate::error::DictError;
use crate::row::{Raw, is_utf8, put_varint, text_span};
use crate::types::{DataType, Fixed, Shape};

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for key in keys {
        let value = key.cells.get(row);
        if key.data_type.is_nullable() {
            out.push(u8::from(matches!(value, Raw::Null)));
        }
        match value {
            Raw::Null => {}
            Raw::Bit(bit) => out.push(u8::from(bit)),
            Raw::Text(text) => {
                put_varint(out, text.len());
                out.extend_from_slice(text);
            }
            Raw::Fixed(raw) if *key.data_type.inner() == DataType::Uuid => out.extend_from_slice(&uuid(raw)),
            Raw::Fixed(raw) => out.extend_from_slice(&raw[..width(key.data_type)]),
        }
    }
}

/// Bytes of a fixed-width value in RowBinary.
fn width(data_type: &DataType) -> usize {
    match data_type.inner() {
        DataType::Date => 2,
        DataType::DateTime { .. } => 4,
        DataType::Decimal { precision: 1..=9, .. } => 4,
        DataType::Decimal { precision: 10..=18, .. } => 8,
        other => match other.shape() {
            Shape::Fixed(width) => width,
            Shape::Bit | Shape::Text => 1,
        },
    }
}

/// Two 64-bit halves, the higher first, each little-endian; the same there and back.
fn uuid(raw: &[u8]) -> Fixed {
    let mut turned: Fixed = raw.try_into().expect("a UUID has 16 bytes");
    turned[..8].reverse();
    turned[8..].reverse();
    turned
}

pub(super) fn read(bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
    let ends = || DictError::parse_text("The answer ends in the middle of a row");
    let mut at = 0;
    while at < bytes.len() {
        for column in 0..rows.width() {
            let data_type = rows.data_type(column).clone();
            if data_type.is_nullable() {
                at += 1;
                match bytes.get(at - 1).ok_or_else(ends)? {
                    0 => {}
                    1 => {
                        rows.column(column).push_null();
                        continue;
                    }
                    other => return Err(DictError::parse_text(format!("{other} is not a NULL flag"))),
                }
            }
            if data_type.shape() == Shape::Text {
                let (start, end) = text_span(bytes, at).ok_or_else(ends)?;
                let text = &bytes[start..end];
                if !is_utf8(text) {
                    return Err(rows.not_utf8(column));
                }
                rows.column(column).push_text(text);
                at = end;
                continue;
            }
            let width = width(&data_type);
            let raw = bytes.get(at..at + width).ok_or_else(ends)?;
            at += width;
            let mut fixed: Fixed = [0; 16];
            match data_type.inner() {
                DataType::Uuid => fixed = uuid(raw),
                DataType::Decimal { .. } => {
                    // Sign extension to 128 bits.
                    let negative = raw[width - 1] & 0x80 != 0;
                    fixed = [if negative { 0xff } else { 0 }; 16];
                    fixed[..width].copy_from_slice(raw);
                }
                _ => fixed[..width].copy_from_slice(raw),
            }
            rows.column(column).push_fixed(&fixed);
        }
    }
    Ok(())
}

/// Where the last whole row of `bytes` ends.
pub(super) fn whole_rows(bytes: &[u8], rows: &Rows) -> usize {
    let mut end = 0;
    while let Some(next) = (0..rows.width()).try_fold(end, |at, column| value_end(bytes, at, rows, column)) {
        // A row of no columns has no end of its own.
        if next == end {
            break;
        }
        end = next;
    }
    end
}

/// The place behind a value; `None`: it is cut off.
fn value_end(bytes: &[u8], mut at: usize, rows: &Rows, column: usize) -> Option<usize> {
    let data_type = rows.data_type(column);
    if data_type.is_nullable() {
        at += 1;
        // What is no flag is an error, which reading it reports.
        if *bytes.get(at - 1)? != 0 {
            return Some(at);
        }
    }
    match data_type.shape() {
        Shape::Text => text_span(bytes, at).map(|(_, end)| end),
        Shape::Fixed(_) | Shape::Bit => Some(at + width(data_type)).filter(|&end| end <= bytes.len()),
    }
}
