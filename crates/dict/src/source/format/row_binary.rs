//! RowBinary: values one behind the other, little-endian, strings behind a varint length, Nullable behind a
//! byte that is 1 for NULL. Some types are narrower there than in a row here, so they are cut or padded.

use super::{End, KeyCells, Order, Rows};
use crate::error::DictError;
use crate::row::{Raw, is_utf8, put_varint, text_span};
use crate::types::{DataType, Fixed, Shape};

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for key in keys {
        let value = key.cells.get(row);
        if key.data_type.is_nullable() {
            out.push(u8::from(matches!(value, Raw::Null)));
        }
        write_value(key.data_type, value, out);
    }
}

/// A value without its NULL flag; of NULL, nothing.
pub(super) fn write_value(data_type: &DataType, value: Raw<'_>, out: &mut Vec<u8>) {
    match value {
        Raw::Null => {}
        Raw::Bit(bit) => out.push(u8::from(bit)),
        Raw::Text(text) => {
            put_varint(out, text.len());
            out.extend_from_slice(text);
        }
        Raw::Fixed(raw) if *data_type.inner() == DataType::Uuid => out.extend_from_slice(&uuid(raw)),
        Raw::Fixed(raw) => out.extend_from_slice(&raw[..width(data_type)]),
    }
}

/// Bytes of a fixed-width value in RowBinary.
pub(super) fn width(data_type: &DataType) -> usize {
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

/// Names, or names and types, as the formats of that name begin.
pub(super) fn write_head<'a>(
    texts: impl ExactSizeIterator<Item = &'a str>,
    types: impl Iterator<Item = String>,
    out: &mut Vec<u8>,
) {
    put_varint(out, texts.len());
    texts.for_each(|text| put_text(text, out));
    types.for_each(|text| put_text(&text, out));
}

pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    put_varint(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Reads whole rows of columns in this order, and says where they end. A row that is cut off is left there for the
/// next time, unless there is none.
pub(super) fn read(bytes: &[u8], order: &Order, end: End, rows: &mut Rows) -> Result<usize, DictError> {
    let whole = whole_rows(bytes, &order.types);
    if end == End::Here && whole < bytes.len() {
        return Err(DictError::parse_text("The bytes end in the middle of a row"));
    }
    let mut at = 0;
    while at < whole {
        for (place, data_type) in order.places.iter().zip(&order.types) {
            at = match place {
                Some(column) => value(bytes, at, data_type, *column, rows)?,
                None => value_end(bytes, at, data_type).ok_or_else(cut_off)?,
            };
        }
        order.end_row(rows)?;
    }
    Ok(whole)
}

fn cut_off() -> DictError {
    DictError::parse_text("The bytes end in the middle of a value")
}

/// Reads a value, with its NULL flag if its type has one, into a column; the place behind it.
fn value(
    bytes: &[u8],
    mut at: usize,
    data_type: &DataType,
    column: usize,
    rows: &mut Rows,
) -> Result<usize, DictError> {
    if data_type.is_nullable() {
        at += 1;
        match bytes.get(at - 1).ok_or_else(cut_off)? {
            0 => {}
            1 => {
                rows.column(column).push_null();
                return Ok(at);
            }
            other => return Err(DictError::parse_text(format!("{other} is not a NULL flag"))),
        }
    }
    present_value(bytes, at, data_type, column, rows)
}

/// Reads a value that is not NULL.
pub(super) fn present_value(
    bytes: &[u8],
    at: usize,
    data_type: &DataType,
    column: usize,
    rows: &mut Rows,
) -> Result<usize, DictError> {
    if data_type.shape() == Shape::Text {
        let (start, end) = text_span(bytes, at).ok_or_else(cut_off)?;
        let text = &bytes[start..end];
        if !is_utf8(text) {
            return Err(rows.not_utf8(column));
        }
        rows.column(column).push_text(text);
        return Ok(end);
    }
    let width = width(data_type);
    let raw = bytes.get(at..at + width).ok_or_else(cut_off)?;
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
    Ok(at + width)
}

/// Where the last whole row of `bytes` ends.
pub(super) fn whole_rows(bytes: &[u8], types: &[DataType]) -> usize {
    let mut end = 0;
    while let Some(next) = types.iter().try_fold(end, |at, data_type| value_end(bytes, at, data_type)) {
        // A row without columns has no end.
        if next == end {
            break;
        }
        end = next;
    }
    end
}

fn value_end(bytes: &[u8], at: usize, data_type: &DataType) -> Option<usize> {
    let at = match data_type.is_nullable() {
        true if *bytes.get(at)? == 0 => at + 1,
        true => return Some(at + 1),
        false => at,
    };
    present_value_end(bytes, at, data_type)
}

/// Where a value that is not NULL ends.
pub(super) fn present_value_end(bytes: &[u8], at: usize, data_type: &DataType) -> Option<usize> {
    match data_type.shape() {
        Shape::Text => text_span(bytes, at).map(|(_, end)| end),
        Shape::Fixed(_) | Shape::Bit => Some(at + width(data_type)).filter(|&end| end <= bytes.len()),
    }
}
