//! Composite values in Native: for arrays and maps the ends of each row's items, then the items of all rows as a column
//! of their own; for tuples a column for each element.

use super::wire::{Wire, cut_off, width, write_value};
use crate::error::DictError;
use crate::row::{Column, Raw, elements, items};
use crate::types::{DataType, Shape};

/// The values of a column, with their NULL flags if it is Nullable.
pub(super) fn write(data_type: &DataType, values: &[Raw<'_>], out: &mut Vec<u8>) {
    if data_type.is_nullable() {
        out.extend(values.iter().map(|value| u8::from(matches!(value, Raw::Null))));
    }
    match data_type.shape() {
        Shape::List => {
            let mut all = Vec::new();
            for value in values {
                if let Raw::Items(bytes) = value {
                    all.extend(items(data_type.item(), bytes));
                }
                out.extend_from_slice(&(all.len() as u64).to_le_bytes());
            }
            write(data_type.item(), &all, out);
        }
        Shape::Tuple => {
            let mut columns = vec![Vec::with_capacity(values.len()); data_type.elements().len()];
            for value in values {
                let Raw::Items(bytes) = value else { unreachable!("a tuple is never NULL") };
                let parts = columns.iter_mut().zip(elements(data_type, bytes));
                parts.for_each(|(column, (_, value))| column.push(value));
            }
            let columns = data_type.elements().iter().zip(&columns);
            columns.for_each(|(element, column)| write(&element.data_type, column, out));
        }
        Shape::Fixed(_) | Shape::Bit | Shape::Text => {
            for value in values {
                match *value {
                    // Something has to stand there: zeros are a value of every type, and an empty string.
                    Raw::Null => out.resize(out.len() + width(data_type), 0),
                    value => write_value(data_type, value, out),
                }
            }
        }
    }
}

/// Where the values of a column end, without its NULL flags; `None`: some have not come.
pub(super) fn end(data_type: &DataType, bytes: &[u8], at: usize, count: usize) -> Option<usize> {
    match data_type.shape() {
        Shape::List => {
            let (ends, at) = ends(bytes, at, count)?;
            let total = ends.last().map_or(Some(0), |&end| usize::try_from(end).ok())?;
            column_end(data_type.item(), bytes, at, total)
        }
        Shape::Tuple => {
            let mut elements = data_type.elements().iter();
            elements.try_fold(at, |at, element| column_end(&element.data_type, bytes, at, count))
        }
        Shape::Fixed(_) | Shape::Bit | Shape::Text => Wire::of(data_type).end(bytes, at, count),
    }
}

/// Where a column ends, with its NULL flags.
fn column_end(data_type: &DataType, bytes: &[u8], at: usize, count: usize) -> Option<usize> {
    let at = match data_type.is_nullable() {
        true => at.checked_add(count).filter(|&at| at <= bytes.len())?,
        false => at,
    };
    end(data_type, bytes, at, count)
}

/// Where the items of each row end, and what follows.
fn ends(bytes: &[u8], at: usize, count: usize) -> Option<(Vec<u64>, usize)> {
    let end = at.checked_add(count.checked_mul(8)?)?;
    let (ends, _) = bytes.get(at..end)?.as_chunks::<8>();
    Some((ends.iter().map(|end| u64::from_le_bytes(*end)).collect(), end))
}

/// Reads `count` values that are not NULL, all of which have come; returns the position after them.
///
/// # Errors
/// `CANNOT_PARSE_TEXT` if a row ends before the one in front of it.
pub(super) fn read(
    data_type: &DataType,
    bytes: &[u8],
    at: usize,
    count: usize,
    column: &mut Column,
) -> Result<usize, DictError> {
    match data_type.shape() {
        Shape::List => {
            let (ends, at) = ends(bytes, at, count).ok_or_else(cut_off)?;
            let before = column.items().len();
            let mut total = 0;
            for end in ends {
                let end = usize::try_from(end).ok().filter(|&end| end >= total);
                total = end.ok_or_else(|| DictError::parse_text("The ends of arrays are not in order"))?;
                column.end_list_at(before + total);
            }
            read_column(data_type.item(), bytes, at, total, column.items())
        }
        Shape::Tuple => {
            let mut parts = data_type.elements().iter().zip(column.elements());
            let end = parts.try_fold(at, |at, (element, column)| {
                read_column(&element.data_type, bytes, at, count, column)
            })?;
            column.end_tuples(count);
            Ok(end)
        }
        Shape::Fixed(_) | Shape::Bit | Shape::Text => {
            let wire = Wire::of(data_type);
            (0..count).try_fold(at, |at, _| wire.read_one(bytes, at, column))
        }
    }
}

/// Reads the values of a column, with its NULL flags.
fn read_column(
    data_type: &DataType,
    bytes: &[u8],
    at: usize,
    count: usize,
    column: &mut Column,
) -> Result<usize, DictError> {
    if !data_type.is_nullable() {
        return read(data_type, bytes, at, count, column);
    }
    let values = at.checked_add(count).ok_or_else(cut_off)?;
    let flags = bytes.get(at..values).ok_or_else(cut_off)?;
    let wire = Wire::of(data_type);
    flags.iter().try_fold(values, |at, flag| match flag {
        0 => wire.read_one(bytes, at, column),
        _ => {
            column.push_null();
            wire.end(bytes, at, 1).ok_or_else(cut_off)
        }
    })
}
