//! Arrays in Native: where the items of each row end, then the items of all rows, as a column of their own.

use super::wire::{Wire, cut_off, width, write_value};
use crate::error::DictError;
use crate::row::{Column, Raw, items};
use crate::types::DataType;

/// The values of a column, with their NULL flags if it is Nullable.
pub(super) fn write(data_type: &DataType, values: &[Raw<'_>], out: &mut Vec<u8>) {
    if data_type.is_nullable() {
        out.extend(values.iter().map(|value| u8::from(matches!(value, Raw::Null))));
    }
    let DataType::Array(item) = data_type else {
        for value in values {
            match *value {
                // Something has to stand there: zeros are a value of every type, and an empty string.
                Raw::Null => out.resize(out.len() + width(data_type), 0),
                value => write_value(data_type, value, out),
            }
        }
        return;
    };
    let mut all = Vec::new();
    for value in values {
        if let Raw::List(bytes) = value {
            all.extend(items(item, bytes));
        }
        out.extend_from_slice(&(all.len() as u64).to_le_bytes());
    }
    write(item, &all, out);
}

/// Where the values of a column end, its NULL flags apart; `None`: not all of them have come.
pub(super) fn end(data_type: &DataType, bytes: &[u8], at: usize, count: usize) -> Option<usize> {
    let DataType::Array(item) = data_type.inner() else {
        return Wire::of(data_type).end(bytes, at, count);
    };
    let (ends, at) = ends(bytes, at, count)?;
    let total = ends.last().map_or(Some(0), |&end| usize::try_from(end).ok())?;
    let at = match item.is_nullable() {
        true => at.checked_add(total).filter(|&at| at <= bytes.len())?,
        false => at,
    };
    end(item, bytes, at, total)
}

/// Where the items of each row end, and what follows.
fn ends(bytes: &[u8], at: usize, count: usize) -> Option<(Vec<u64>, usize)> {
    let end = at.checked_add(count.checked_mul(8)?)?;
    let (ends, _) = bytes.get(at..end)?.as_chunks::<8>();
    Some((ends.iter().map(|end| u64::from_le_bytes(*end)).collect(), end))
}

/// Reads so many arrays, all of which have come; the place behind them.
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
    let (ends, mut at) = ends(bytes, at, count).ok_or_else(cut_off)?;
    let before = column.items().len();
    let mut total = 0;
    for end in ends {
        let end = usize::try_from(end).ok().filter(|&end| end >= total);
        total = end.ok_or_else(|| DictError::parse_text("The ends of arrays are not in order"))?;
        column.end_array_at(before + total);
    }
    let item = data_type.item();
    let flags = match item.is_nullable() {
        true => bytes.get(at..at.checked_add(total).ok_or_else(cut_off)?).ok_or_else(cut_off)?,
        false => &[],
    };
    at += flags.len();
    if let DataType::Array(_) = item {
        return read(item, bytes, at, total, column.items());
    }
    let wire = Wire::of(item);
    for i in 0..total {
        match flags.get(i) {
            None | Some(0) => at = wire.read_one(bytes, at, column.items())?,
            Some(_) => {
                column.items().push_null();
                at = wire.end(bytes, at, 1).ok_or_else(cut_off)?;
            }
        }
    }
    Ok(at)
}
