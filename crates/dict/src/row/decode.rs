//! From rows' bytes to the columns asked for. Rows are gathered as they come, then decoded in the order in which they
//! are shown: column by column, for as many rows at a time as stay in the processor's cache.

use super::encode::{Location, RowFormat, Slot};
use super::{Column, append, are_items, is_utf8, text_span};
use crate::error::{Code, DictError};
use crate::limits::DECODED_ROWS;
use arrow::array::ArrayRef;

/// Decodes rows into Arrow columns, only the attributes asked for.
pub(crate) struct Decoder<'a> {
    format: &'a RowFormat,
    wanted: Vec<usize>,
    /// How many of the first strings have to be located; what follows them is not gathered.
    texts: usize,
    bytes: Vec<u8>,
    /// Where each row begins in `bytes`.
    starts: Vec<u32>,
    size: Size,
}

/// Whether `starts` can say where the next row begins.
#[derive(PartialEq)]
enum Size {
    Fits,
    TooLarge,
}

/// A row that its format cannot have written.
#[derive(Debug, PartialEq)]
pub(crate) struct BadRow;

impl From<BadRow> for DictError {
    fn from(_: BadRow) -> DictError {
        DictError::new(Code::IncorrectData, "A row of the source was encoded wrongly")
    }
}

impl<'a> Decoder<'a> {
    /// `wanted` are places of attributes, all in range; one may come twice.
    pub fn new(format: &'a RowFormat, wanted: &[usize], capacity: usize) -> Decoder<'a> {
        let ordinal = |&i: &usize| match format.slots[i].place {
            Location::Text { ordinal } => ordinal + 1,
            Location::Fixed { .. } => 0,
        };
        let texts = wanted.iter().map(ordinal).max().unwrap_or(0);
        let starts = Vec::with_capacity(capacity);
        Decoder { format, wanted: wanted.to_vec(), texts, bytes: Vec::new(), starts, size: Size::Fits }
    }

    /// An empty decoder of the same columns.
    pub fn another(&self, capacity: usize) -> Decoder<'a> {
        let Self { format, ref wanted, texts, .. } = *self;
        let starts = Vec::with_capacity(capacity);
        Decoder { format, wanted: wanted.clone(), texts, bytes: Vec::new(), starts, size: Size::Fits }
    }

    /// Adds the rows of another decoder of the same columns.
    pub fn append(&mut self, other: Decoder<'a>) {
        if self.starts.is_empty() {
            *self = other;
            return;
        }
        let first = self.bytes.len() as u64;
        let last = other.starts.last().map_or(0, |last| first + u64::from(*last));
        if other.size == Size::TooLarge || u32::try_from(last).is_err() {
            self.size = Size::TooLarge;
        }
        // Where it is too large, no row is ever read.
        self.starts.extend(other.starts.iter().map(|start| start.wrapping_add(first as u32)));
        if self.size == Size::Fits {
            self.bytes.extend_from_slice(&other.bytes);
        }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Adds a row; a bad one adds nothing.
    #[inline]
    pub fn push(&mut self, row: &[u8]) -> Result<(), BadRow> {
        let mut end = self.format.fixed_bytes;
        if row.len() < end {
            return Err(BadRow);
        }
        for items in &self.format.items[..self.texts] {
            let (from, to) = text_span(row, end).ok_or(BadRow)?;
            let text = &row[from..to];
            let good = match items {
                None => is_utf8(text),
                Some(item) => are_items(item, text),
            };
            if !good {
                return Err(BadRow);
            }
            end = to;
        }
        match u32::try_from(self.bytes.len()) {
            Ok(start) => {
                self.starts.push(start);
                append(&mut self.bytes, &row[..end]);
            }
            Err(_) => self.size = Size::TooLarge,
        }
        Ok(())
    }

    /// Adds a row of the attributes' defaults.
    pub fn push_default(&mut self) {
        self.push(&self.format.default_row()).expect("it is well-formed");
    }

    /// The columns, with the rows in the order in which they came.
    pub fn finish(self) -> Result<Vec<ArrayRef>, DictError> {
        let rows: Vec<u32> = (0..self.starts.len() as u32).collect();
        self.columns(&rows)
    }

    /// The columns, with these rows in this order.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if there is more than one batch can hold.
    pub fn columns(&self, rows: &[u32]) -> Result<Vec<ArrayRef>, DictError> {
        if self.size == Size::TooLarge {
            let what = "The rows of one batch exceed 4 GiB; use a smaller max_block_size";
            return Err(DictError::new(Code::LimitExceeded, what));
        }
        let slots: Vec<&Slot> = self.wanted.iter().map(|&attribute| &self.format.slots[attribute]).collect();
        let with_room = |slot: &&Slot| Column::with_capacity(&slot.data_type, rows.len());
        let mut columns: Vec<Column> = slots.iter().map(with_room).collect();
        for rows in rows.chunks(DECODED_ROWS) {
            self.touch(rows);
            for (column, slot) in columns.iter_mut().zip(&slots) {
                self.extend(column, slot, rows);
            }
        }
        columns.into_iter().map(Column::finish).collect()
    }

    /// Prefetches the first bytes of these rows, all at once: they lie anywhere, and decoding one takes too long for
    /// the processor to look ahead to the next.
    fn touch(&self, rows: &[u32]) {
        let first = |row: &u32| self.bytes.get(self.starts[*row as usize] as usize).copied();
        std::hint::black_box(rows.iter().filter_map(first).fold(0, |all, byte| all ^ byte));
    }

    /// Adds an attribute of these rows to its column.
    fn extend(&self, column: &mut Column, slot: &Slot, rows: &[u32]) {
        let bytes_of = |row: u32| &self.bytes[self.starts[row as usize] as usize..];
        match slot.place {
            Location::Text { ordinal } if slot.null_bit.is_none() => {
                column.extend_texts(rows, |row| self.text(bytes_of(row), ordinal));
            }
            Location::Fixed { at, width } if slot.null_bit.is_none() => {
                column.extend_fixed(rows, |row| &bytes_of(row)[at..at + width]);
            }
            place => {
                for &row in rows {
                    let row = bytes_of(row);
                    if slot.null_bit.is_some_and(|bit| row[bit / 8] >> (bit % 8) & 1 == 1) {
                        column.push_null();
                        continue;
                    }
                    match place {
                        Location::Fixed { at, width } => column.push_fixed(&row[at..at + width]),
                        Location::Text { ordinal } => column.push_sized(self.text(row, ordinal)),
                    }
                }
            }
        }
    }

    #[inline]
    fn text<'r>(&self, row: &'r [u8], ordinal: usize) -> &'r [u8] {
        let mut span = (0, self.format.fixed_bytes);
        for _ in 0..=ordinal {
            span = text_span(row, span.1).expect("the row was looked at when it came");
        }
        &row[span.0..span.1]
    }
}
