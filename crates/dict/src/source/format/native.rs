//! Native: blocks of columns, each after its name and type; the values in sequence as in RowBinary, after the NULL
//! flags of the column.

use super::arrays;
use super::order::sent_type;
use super::row_binary::put_text;
use super::wire::{Wire, width, write_value};
use super::{ColumnOrder, End, KeyCells, Rows};
use crate::error::{Code, DictError};
use crate::limits::{COLUMNS_MAX, HEAD_BYTES_MAX};
use crate::row::{Raw, put_varint, text_span};
use std::ops::Range;

/// One block of all rows.
pub(super) fn write(keys: &[KeyCells<'_>], rows: usize, out: &mut Vec<u8>) {
    put_varint(out, keys.len());
    put_varint(out, rows);
    for key in keys {
        put_text(key.name, out);
        put_text(&key.data_type.to_string(), out);
        if key.is_composite() {
            let arrays: Vec<Raw<'_>> = (0..rows).map(|row| key.cells.get(row)).collect();
            arrays::write(key.data_type, &arrays, out);
            continue;
        }
        if key.data_type.is_nullable() {
            out.extend((0..rows).map(|row| u8::from(matches!(key.cells.get(row), Raw::Null))));
        }
        for row in 0..rows {
            match key.cells.get(row) {
                // Something has to stand there: zeros are a value of every type, and an empty string.
                Raw::Null => out.resize(out.len() + width(key.data_type), 0),
                value => write_value(key.data_type, value, out),
            }
        }
    }
}

/// Reads the whole blocks at the beginning of `bytes`, and says where they end.
pub(super) fn read(bytes: &[u8], end: End, rows: &mut Rows) -> Result<usize, DictError> {
    let mut at = 0;
    while at < bytes.len() {
        let Some(block) = Block::find(bytes, at, rows)? else {
            return match end {
                End::Later => Ok(at),
                End::Here => Err(DictError::parse_text("The bytes end in the middle of a block")),
            };
        };
        block.read(bytes, rows)?;
        at = block.end;
    }
    Ok(at)
}

/// Positions of a block's parts.
struct Block {
    rows: usize,
    order: ColumnOrder,
    /// The columns of a block: the NULL flags of each, if it has any, and its values.
    columns: Vec<(Option<Range<usize>>, usize)>,
    end: usize,
}

impl Block {
    /// `None`: the block is incomplete.
    fn find(bytes: &[u8], at: usize, rows: &Rows) -> Result<Option<Block>, DictError> {
        let Some((width, at)) = varint(bytes, at) else { return Ok(None) };
        let Some((count, mut at)) = varint(bytes, at) else { return Ok(None) };
        if width > COLUMNS_MAX || (width == 0 && count > 0) {
            return Err(DictError::parse_text(format!("A block of {width} columns and {count} rows")));
        }
        let (mut names, mut types, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        let mut head = HEAD_BYTES_MAX;
        for _ in 0..width {
            let Some((name, type_at)) = text(bytes, at, &mut head)? else { return Ok(None) };
            let Some((type_name, values_at)) = text(bytes, type_at, &mut head)? else { return Ok(None) };
            let ours = rows.column_called(&name)?.map(|column| rows.data_type(column));
            let data_type = sent_type(&name, &type_name, ours)?;
            at = values_at;
            let flags = match data_type.is_nullable() && count > 0 {
                true => Some(at..at.saturating_add(count)).filter(|flags| flags.end <= bytes.len()),
                false => None,
            };
            match (&flags, data_type.is_nullable() && count > 0) {
                (Some(flags), _) => at = flags.end,
                (None, true) => return Ok(None),
                (None, false) => {}
            }
            columns.push((flags, at));
            let Some(end) = arrays::end(&data_type, bytes, at, count) else { return Ok(None) };
            at = end;
            names.push(name);
            types.push(type_name);
        }
        // The last block may have neither rows nor columns.
        let order = match width {
            0 => ColumnOrder::declared(rows),
            _ => ColumnOrder::of_head(&names, &types, rows)?,
        };
        Ok(Some(Block { rows: count, order, columns, end: at }))
    }

    fn read(&self, bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
        for (i, (flags, values)) in self.columns.iter().enumerate() {
            let Some(column) = self.order.places[i] else { continue };
            rows.check_growth()?;
            let wire = Wire::of(&self.order.types[i]);
            if self.order.types[i].is_composite() {
                let read = arrays::read(&self.order.types[i], bytes, *values, self.rows, rows.column(column));
                read.map_err(|e| rows.within(column, e))?;
                continue;
            }
            let Some(flags) = flags else {
                wire.read(bytes, *values, self.rows, column, rows)?;
                continue;
            };
            let mut at = *values;
            for flag in &bytes[flags.clone()] {
                if *flag != 0 {
                    rows.column(column).push_null();
                    at = wire.end(bytes, at, 1).expect("the block is whole");
                } else {
                    at = wire.read(bytes, at, 1, column, rows)?;
                }
            }
        }
        (0..self.rows).try_for_each(|_| self.order.end_row(rows))
    }
}

/// A number in groups of seven bits; `None`: cut off. More than 35 bits give the largest number.
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0;
    for i in 0..5 {
        let byte = *bytes.get(at + i)?;
        value |= usize::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((value, at + i + 1));
        }
    }
    Some((usize::MAX, at + 5))
}

/// A name or a type, and where it ends; `None`: cut off. `left` are the bytes that names and types may still have: they
/// become lists and trees of many times their size.
pub(super) fn text(bytes: &[u8], at: usize, left: &mut usize) -> Result<Option<(String, usize)>, DictError> {
    match varint(bytes, at) {
        Some((length, _)) if length > *left => {
            let text = format!("Names and types of columns of more than {HEAD_BYTES_MAX} bytes");
            return Err(DictError::new(Code::LimitExceeded, text));
        }
        Some((length, _)) => *left -= length,
        None => {}
    }
    let Some((start, end)) = text_span(bytes, at) else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[start..end])
        .map_err(|_| DictError::parse_text("A name or a type is not UTF-8"))?;
    Ok(Some((text.to_string(), end)))
}
