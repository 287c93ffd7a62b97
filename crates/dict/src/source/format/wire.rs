//! Values as RowBinary and Native have them: little-endian, strings after a varint length. Some types are narrower
//! there than in a row here, or byte-swapped, so they are cut, padded or swapped back.

use super::Rows;
use super::native::varint;
use crate::error::DictError;
use crate::row::{Column, Raw, elements, is_utf8, items, put_varint, text_span};
use crate::types::{DataType, Element, Fixed, Shape, from_ticks, kept_digits, sign_extended, to_ticks};

/// The encoding of the values of one type that are not NULL.
pub(super) struct Wire<'a> {
    data_type: &'a DataType,
    form: WireForm<'a>,
}

enum WireForm<'a> {
    Text,
    /// A length, and that many items: each with a NULL flag if they are Nullable.
    List(Box<Wire<'a>>),
    /// Its elements, encoded likewise.
    Tuple(Vec<Wire<'a>>),
    /// This many bytes, as in a row.
    AsInRow(usize),
    /// This many bytes, which are converted for a row.
    Converted(usize),
}

impl<'a> Wire<'a> {
    pub fn of(data_type: &'a DataType) -> Wire<'a> {
        let form = match data_type.shape() {
            Shape::Text => WireForm::Text,
            Shape::List => WireForm::List(Box::new(Wire::of(data_type.item()))),
            Shape::Tuple => {
                let wire = |element: &'a Element| Wire::of(&element.data_type);
                WireForm::Tuple(data_type.elements().iter().map(wire).collect())
            }
            Shape::Fixed(there) if there == width(data_type) && !is_other(data_type.inner()) => {
                WireForm::AsInRow(there)
            }
            Shape::Fixed(_) | Shape::Bit => WireForm::Converted(width(data_type)),
        };
        Wire { data_type, form }
    }

    /// Bytes of a value, if all values have as many.
    pub fn width(&self) -> Option<usize> {
        match self.form {
            WireForm::Text | WireForm::List(_) | WireForm::Tuple(_) => None,
            WireForm::AsInRow(width) | WireForm::Converted(width) => Some(width),
        }
    }

    /// Where `count` values end; `None`: some have not come.
    #[inline]
    pub fn end(&self, bytes: &[u8], at: usize, count: usize) -> Option<usize> {
        match self.form {
            WireForm::Text => (0..count).try_fold(at, |at, _| Some(text_span(bytes, at)?.1)),
            WireForm::List(ref item) => (0..count).try_fold(at, |at, _| {
                let (items, at) = varint(bytes, at)?;
                (0..items).try_fold(at, |at, _| item.part_end(bytes, at))
            }),
            WireForm::Tuple(ref elements) => (0..count).try_fold(at, |at, _| {
                elements.iter().try_fold(at, |at, element| element.part_end(bytes, at))
            }),
            WireForm::AsInRow(width) | WireForm::Converted(width) => {
                Some(at.checked_add(count.checked_mul(width)?)?).filter(|&end| end <= bytes.len())
            }
        }
    }

    /// Reads `count` values into a column; returns the position after them.
    #[inline]
    pub fn read(
        &self,
        bytes: &[u8],
        at: usize,
        count: usize,
        column: usize,
        rows: &mut Rows,
    ) -> Result<usize, DictError> {
        match self.form {
            WireForm::Text => (0..count).try_fold(at, |at, _| {
                let (start, end) = text_span(bytes, at).ok_or_else(cut_off)?;
                let text = &bytes[start..end];
                if !is_utf8(text) {
                    return Err(rows.not_utf8(column));
                }
                rows.column(column).push_text(text);
                Ok(end)
            }),
            WireForm::List(_) | WireForm::Tuple(_) => (0..count)
                .try_fold(at, |at, _| self.read_one(bytes, at, rows.column(column)))
                .map_err(|e| rows.within(column, e)),
            WireForm::AsInRow(_) => {
                let end = self.end(bytes, at, count).ok_or_else(cut_off)?;
                rows.column(column).extend_packed(&bytes[at..end]);
                Ok(end)
            }
            WireForm::Converted(width) => {
                let end = self.end(bytes, at, count).ok_or_else(cut_off)?;
                for raw in bytes[at..end].chunks_exact(width) {
                    let value = in_row(self.data_type.inner(), raw).map_err(|e| rows.within(column, e))?;
                    rows.column(column).push_fixed(&value);
                }
                Ok(end)
            }
        }
    }
}

/// Values as items and elements. Each takes a byte or more, so that a length from outside is bounded by the bytes.
impl Wire<'_> {
    fn part_end(&self, bytes: &[u8], at: usize) -> Option<usize> {
        match self.data_type.is_nullable() {
            true if *bytes.get(at)? == 0 => self.end(bytes, at + 1, 1),
            true => Some(at + 1),
            false => self.end(bytes, at, 1),
        }
    }

    fn read_part(&self, bytes: &[u8], mut at: usize, column: &mut Column) -> Result<usize, DictError> {
        if self.data_type.is_nullable() {
            at += 1;
            match bytes.get(at - 1).ok_or_else(cut_off)? {
                0 => {}
                1 => {
                    column.push_null();
                    return Ok(at);
                }
                other => return Err(DictError::parse_text(format!("{other} is not a NULL flag"))),
            }
        }
        self.read_one(bytes, at, column)
    }

    /// Reads a value that is not NULL and a part of another; returns the position after it.
    pub fn read_one(&self, bytes: &[u8], at: usize, column: &mut Column) -> Result<usize, DictError> {
        match &self.form {
            WireForm::Text => {
                let (start, end) = text_span(bytes, at).ok_or_else(cut_off)?;
                if !is_utf8(&bytes[start..end]) {
                    return Err(DictError::parse_text("A string in a value is not valid UTF-8"));
                }
                column.push_text(&bytes[start..end]);
                Ok(end)
            }
            WireForm::List(item) => {
                let (count, at) = varint(bytes, at).ok_or_else(cut_off)?;
                let end = (0..count).try_fold(at, |at, _| item.read_part(bytes, at, column.items()))?;
                column.end_list();
                Ok(end)
            }
            WireForm::Tuple(elements) => {
                let mut parts = elements.iter().zip(column.elements());
                let end = parts.try_fold(at, |at, (element, column)| element.read_part(bytes, at, column))?;
                column.end_tuples(1);
                Ok(end)
            }
            WireForm::AsInRow(_) => {
                let end = self.end(bytes, at, 1).ok_or_else(cut_off)?;
                column.push_fixed(&bytes[at..end]);
                Ok(end)
            }
            WireForm::Converted(_) => {
                let end = self.end(bytes, at, 1).ok_or_else(cut_off)?;
                column.push_fixed(&in_row(self.data_type.inner(), &bytes[at..end])?);
                Ok(end)
            }
        }
    }
}

pub(super) fn cut_off() -> DictError {
    DictError::parse_text("The bytes end in the middle of a value")
}

/// Whether a value's bytes differ from those of a row, although they are as many.
fn is_other(data_type: &DataType) -> bool {
    match data_type {
        DataType::Uuid => true,
        DataType::DateTime64 { precision, .. } => kept_digits(*precision) != *precision,
        _ => false,
    }
}

/// A fixed-width value as a row has it.
fn in_row(data_type: &DataType, raw: &[u8]) -> Result<Fixed, DictError> {
    let mut fixed = Fixed::default();
    match data_type {
        DataType::Uuid => fixed[..16].copy_from_slice(&uuid(raw)),
        DataType::DateTime64 { precision, .. } => {
            let ticks = raw.first_chunk().map_or(0, |raw| i64::from_le_bytes(*raw));
            let kept = from_ticks(ticks, *precision)
                .ok_or_else(|| DictError::parse_text(format!("{ticks} ticks are no {data_type}")))?;
            fixed[..8].copy_from_slice(&kept.to_le_bytes());
        }
        DataType::Decimal { .. } | DataType::Int128 => fixed = sign_extended(raw),
        _ => fixed[..raw.len()].copy_from_slice(raw),
    }
    Ok(fixed)
}

/// Writes a value without its NULL flag, and nothing for NULL.
pub(super) fn write_value(data_type: &DataType, value: Raw<'_>, out: &mut Vec<u8>) {
    match value {
        Raw::Null => {}
        Raw::Items(bytes) if data_type.shape() == Shape::Tuple => {
            elements(data_type, bytes).for_each(|(element, value)| write_part(element, value, out));
        }
        Raw::Items(bytes) => {
            let item = data_type.item();
            put_varint(out, items(item, bytes).count());
            items(item, bytes).for_each(|value| write_part(item, value, out));
        }
        Raw::Bit(bit) => out.push(u8::from(bit)),
        Raw::Text(text) => {
            put_varint(out, text.len());
            out.extend_from_slice(text);
        }
        Raw::Fixed(raw) if *data_type.inner() == DataType::Uuid => out.extend_from_slice(&uuid(raw)),
        Raw::Fixed(raw) => match data_type.inner() {
            DataType::DateTime64 { precision, .. } => {
                let kept = raw.first_chunk().map_or(0, |raw| i64::from_le_bytes(*raw));
                out.extend_from_slice(&to_ticks(kept, *precision).to_le_bytes());
            }
            _ => out.extend_from_slice(&raw[..width(data_type)]),
        },
    }
}

/// Writes an item or an element, after its NULL flag if it has one.
fn write_part(data_type: &DataType, value: Raw<'_>, out: &mut Vec<u8>) {
    if data_type.is_nullable() {
        out.push(u8::from(matches!(value, Raw::Null)));
    }
    write_value(data_type, value, out);
}

/// Bytes of a fixed-width value in these formats; 1 for a text or an array: an empty one has its length.
pub(super) fn width(data_type: &DataType) -> usize {
    match data_type.inner() {
        DataType::Date => 2,
        DataType::DateTime { .. } => 4,
        DataType::Decimal { precision: 1..=9, .. } => 4,
        DataType::Decimal { precision: 10..=18, .. } => 8,
        DataType::Int128 | DataType::UInt128 => 16,
        other => match other.shape() {
            Shape::Fixed(width) => width,
            Shape::Bit | Shape::Text | Shape::List => 1,
            Shape::Tuple => unreachable!("a tuple's elements have widths of their own"),
        },
    }
}

/// Swaps a UUID to two 64-bit halves, the higher first, each little-endian, or back.
fn uuid(raw: &[u8]) -> [u8; 16] {
    let mut turned: [u8; 16] = raw.try_into().expect("a UUID has 16 bytes");
    turned[..8].reverse();
    turned[8..].reverse();
    turned
}
