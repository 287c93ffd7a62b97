//! RowBinary: values in sequence, Nullable ones after a byte that is 1 for NULL.

use super::wire::{Wire, cut_off, write_value};
use super::{ColumnOrder, End, KeyCells, Rows};
use crate::error::DictError;
use crate::limits::LONG_ROW_BYTES;
use crate::row::{Raw, put_varint};
use crate::source::rows::bytes_for_one;

pub(super) fn write_row(keys: &[KeyCells<'_>], row: usize, out: &mut Vec<u8>) {
    for key in keys {
        let value = key.cells.get(row);
        if key.data_type.is_nullable() {
            out.push(u8::from(matches!(value, Raw::Null)));
        }
        write_value(key.data_type, value, out);
    }
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

/// How the values of one column of the stream are read.
struct StreamColumn<'a> {
    /// The column they go to; `None`: they are skipped.
    column: Option<usize>,
    nullable: bool,
    wire: Wire<'a>,
    /// See [`bytes_for_one`].
    bytes_for_one: Option<usize>,
}

/// Reads whole rows of columns in this order, and returns where they end. A cut-off row is left for the next call, or
/// is an error at the end.
pub(super) fn read(bytes: &[u8], order: &ColumnOrder, end: End, rows: &mut Rows) -> Result<usize, DictError> {
    let columns = order.places.iter().zip(&order.types).map(|(&column, data_type)| StreamColumn {
        column,
        nullable: data_type.is_nullable(),
        wire: Wire::of(data_type),
        bytes_for_one: bytes_for_one(data_type),
    });
    let columns: Vec<StreamColumn<'_>> = columns.collect();
    let mut at = 0;
    // Rows of one column whose values all have one width are one piece.
    if let [StreamColumn { column: Some(column), nullable: false, wire, .. }] = columns.as_slice()
        && let Some(width) = wire.width()
    {
        let count = bytes.len() / width;
        at = wire.read(bytes, 0, count, *column, rows)?;
        (0..count).try_for_each(|_| order.end_row(rows))?;
    }
    while let Some(next) = row_end(bytes, at, &columns) {
        // A row without columns has no end.
        if next == at {
            break;
        }
        for values in &columns {
            if let Some(bytes_for_one) = values.bytes_for_one
                && next - at >= LONG_ROW_BYTES
            {
                let end = values.end(bytes, at).ok_or_else(cut_off)?;
                rows.check_long(end - at, bytes_for_one)?;
            }
            at = values.read(bytes, at, rows)?;
        }
        order.end_row(rows)?;
    }
    if end == End::Here && at < bytes.len() {
        return Err(DictError::parse_text("The bytes end in the middle of a row"));
    }
    Ok(at)
}

fn row_end(bytes: &[u8], at: usize, columns: &[StreamColumn<'_>]) -> Option<usize> {
    columns.iter().try_fold(at, |at, values| values.end(bytes, at))
}

impl StreamColumn<'_> {
    fn end(&self, bytes: &[u8], at: usize) -> Option<usize> {
        match self.nullable {
            true if *bytes.get(at)? == 0 => self.wire.end(bytes, at + 1, 1),
            true => Some(at + 1),
            false => self.wire.end(bytes, at, 1),
        }
    }

    /// Reads a value, with its NULL flag if its type has one; returns the position after it.
    fn read(&self, bytes: &[u8], mut at: usize, rows: &mut Rows) -> Result<usize, DictError> {
        let Some(column) = self.column else { return self.end(bytes, at).ok_or_else(cut_off) };
        if self.nullable {
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
        self.wire.read(bytes, at, 1, column, rows)
    }
}
