//! Values as RowBinary and Native have them: little-endian, strings behind a varint length. Some types are narrower
//! there than in a row here, or turned, so they are cut, padded or turned back.

use super::Rows;
use crate::error::DictError;
use crate::row::{Raw, is_utf8, put_varint, text_span};
use crate::types::{DataType, Fixed, Shape};

/// How the values of one type that are not NULL lie there.
pub(super) struct Wire<'a> {
    data_type: &'a DataType,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    /// So many bytes, which are those of a row.
    AsInRow(usize),
    /// So many bytes, of which those of a row are made.
    Converted(usize),
}

impl Wire<'_> {
    pub fn of(data_type: &DataType) -> Wire<'_> {
        let width = width(data_type);
        let form = match data_type.shape() {
            Shape::Text => Form::Text,
            Shape::Fixed(there) if there == width && *data_type.inner() != DataType::Uuid => {
                Form::AsInRow(width)
            }
            Shape::Fixed(_) | Shape::Bit => Form::Converted(width),
        };
        Wire { data_type, form }
    }

    /// Bytes of a value, if all have so many.
    pub fn width(&self) -> Option<usize> {
        match self.form {
            Form::Text => None,
            Form::AsInRow(width) | Form::Converted(width) => Some(width),
        }
    }

    /// Where so many values end; `None`: not all of them are there.
    #[inline]
    pub fn end(&self, bytes: &[u8], at: usize, count: usize) -> Option<usize> {
        match self.form {
            Form::Text => (0..count).try_fold(at, |at, _| Some(text_span(bytes, at)?.1)),
            Form::AsInRow(width) | Form::Converted(width) => {
                Some(at.checked_add(count.checked_mul(width)?)?).filter(|&end| end <= bytes.len())
            }
        }
    }

    /// Reads so many values into a column; the place behind them.
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
            Form::Text => (0..count).try_fold(at, |at, _| {
                let (start, end) = text_span(bytes, at).ok_or_else(cut_off)?;
                let text = &bytes[start..end];
                if !is_utf8(text) {
                    return Err(rows.not_utf8(column));
                }
                rows.column(column).push_text(text);
                Ok(end)
            }),
            Form::AsInRow(_) => {
                let end = self.end(bytes, at, count).ok_or_else(cut_off)?;
                rows.column(column).extend_packed(&bytes[at..end]);
                Ok(end)
            }
            Form::Converted(width) => {
                let end = self.end(bytes, at, count).ok_or_else(cut_off)?;
                for raw in bytes[at..end].chunks_exact(width) {
                    rows.column(column).push_fixed(&in_row(self.data_type.inner(), raw));
                }
                Ok(end)
            }
        }
    }
}

pub(super) fn cut_off() -> DictError {
    DictError::parse_text("The bytes end in the middle of a value")
}

/// A fixed-width value as a row has it.
fn in_row(data_type: &DataType, raw: &[u8]) -> Fixed {
    let mut fixed: Fixed = [0; 16];
    match data_type {
        DataType::Uuid => fixed = uuid(raw),
        DataType::Decimal { .. } => {
            // Sign extension to 128 bits.
            let negative = raw[raw.len() - 1] & 0x80 != 0;
            fixed = [if negative { 0xff } else { 0 }; 16];
            fixed[..raw.len()].copy_from_slice(raw);
        }
        _ => fixed[..raw.len()].copy_from_slice(raw),
    }
    fixed
}

/// Writes a value without its NULL flag; of NULL, nothing.
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

/// Bytes of a fixed-width value there; 1 for a text: an empty one has its length.
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
