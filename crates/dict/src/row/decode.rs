//! From rows' bytes to the columns asked for.

use super::encode::{Place, RowFormat};
use super::{Column, text_span};
use crate::error::DictError;
use arrow::array::ArrayRef;

/// Decodes rows into Arrow columns, only the attributes asked for.
pub(crate) struct Decoder<'a> {
    format: &'a RowFormat,
    wanted: Vec<usize>,
    columns: Vec<Column>,
    /// How many strings from the front have to be found.
    texts: usize,
    /// Where they are in the row at hand.
    spans: Vec<(usize, usize)>,
    rows: usize,
}

/// A row that its format cannot have written.
#[derive(Debug, PartialEq)]
pub(crate) struct BadRow;

impl<'a> Decoder<'a> {
    /// `wanted` are places of attributes, all in range; one may come twice.
    pub fn new(format: &'a RowFormat, wanted: &[usize], capacity: usize) -> Decoder<'a> {
        let columns =
            wanted.iter().map(|&i| Column::with_capacity(&format.slots[i].data_type, capacity)).collect();
        let ordinal = |&i: &usize| match format.slots[i].place {
            Place::Text { ordinal } => ordinal + 1,
            Place::Fixed { .. } => 0,
        };
        let texts = wanted.iter().map(ordinal).max().unwrap_or(0);
        Decoder { format, wanted: wanted.to_vec(), columns, texts, spans: Vec::with_capacity(texts), rows: 0 }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Adds a row; a bad one adds nothing.
    #[inline]
    pub fn push(&mut self, row: &[u8]) -> Result<(), BadRow> {
        if row.len() < self.format.fixed_bytes {
            return Err(BadRow);
        }
        self.spans.clear();
        let mut at = self.format.fixed_bytes;
        for _ in 0..self.texts {
            let (start, end) = text_span(row, at).ok_or(BadRow)?;
            let text = &row[start..end];
            if !text.is_ascii() {
                std::str::from_utf8(text).map_err(|_| BadRow)?;
            }
            self.spans.push((start, end));
            at = end;
        }
        for (&attribute, column) in self.wanted.iter().zip(&mut self.columns) {
            let slot = &self.format.slots[attribute];
            if slot.null_bit.is_some_and(|bit| row[bit / 8] >> (bit % 8) & 1 == 1) {
                column.push_null();
                continue;
            }
            match slot.place {
                Place::Fixed { at, width } => column.push_fixed(&row[at..at + width]),
                Place::Text { ordinal } => {
                    let (start, end) = self.spans[ordinal];
                    column.push_text(&row[start..end]);
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds a row of the attributes' defaults.
    pub fn push_default(&mut self) {
        for (&attribute, column) in self.wanted.iter().zip(&mut self.columns) {
            column.push_cell(&self.format.slots[attribute].default);
        }
        self.rows += 1;
    }

    pub fn finish(self) -> Result<Vec<ArrayRef>, DictError> {
        self.columns.into_iter().map(Column::finish).collect()
    }
}
