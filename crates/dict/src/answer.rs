//! What a lookup yields.

use crate::error::DictError;
use crate::row::Decoder;
use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use std::ops::Range;

/// A whole answer, in row order.
#[derive(Clone, Debug)]
pub struct Answer {
    /// One array for each attribute asked for; defaults where a key was not found.
    pub columns: Vec<ArrayRef>,
    /// Whether the source has each row's key; for text lookups, whether the row got all attributes asked for.
    pub found: BooleanArray,
    /// For text lookups, whether each row got each attribute; otherwise empty.
    pub found_each: Vec<BooleanArray>,
}

/// Rows that were looked up and are made into arrays piece by piece.
pub struct AnswerRows<'a> {
    content: Content<'a>,
    found: BooleanArray,
}

enum Content<'a> {
    Rows {
        decoder: Decoder<'a>,
        /// For each row, the decoder's row that it shows.
        places: Vec<u32>,
    },
    /// Finished arrays, each with the rows that have a value in it.
    Columns(Vec<(ArrayRef, BooleanArray)>),
}

impl<'a> AnswerRows<'a> {
    pub(crate) fn new(decoder: Decoder<'a>, places: Vec<u32>, found: BooleanArray) -> AnswerRows<'a> {
        AnswerRows { content: Content::Rows { decoder, places }, found }
    }

    /// Makes rows of attributes that were found separately; there is at least one.
    pub(crate) fn of_columns(columns: Vec<(ArrayRef, BooleanArray)>) -> AnswerRows<'a> {
        let rows = columns[0].1.len();
        let all = columns.iter().fold(BooleanBuffer::new_set(rows), |all, (_, found)| &all & found.values());
        AnswerRows { content: Content::Columns(columns), found: BooleanArray::new(all, None) }
    }

    /// Whether the source has each row's key; for text lookups, whether the row got all attributes asked for.
    pub fn found(&self) -> &BooleanArray {
        &self.found
    }

    /// Some rows, in order: one array for each attribute asked for; defaults where a key was not found.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if they are more than one batch can hold, `INCORRECT_DATA` if they are not as declared.
    pub fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, DictError> {
        match &self.content {
            Content::Rows { decoder, places } => decoder.columns(&places[rows]),
            Content::Columns(columns) => {
                Ok(columns.iter().map(|(column, _)| column.slice(rows.start, rows.len())).collect())
            }
        }
    }

    /// All rows.
    ///
    /// # Errors
    /// The errors of [`columns`](Self::columns).
    pub fn into_answer(self) -> Result<Answer, DictError> {
        let columns = self.columns(0..self.found.len())?;
        let found_each = match self.content {
            Content::Rows { .. } => Vec::new(),
            Content::Columns(columns) => columns.into_iter().map(|(_, found)| found).collect(),
        };
        Ok(Answer { columns, found: self.found, found_each })
    }
}
