//! What a lookup yields.

use crate::error::DictError;
use crate::row::Decoder;
use arrow::array::{ArrayRef, BooleanArray};
use std::ops::Range;

/// All of it, in row order.
#[derive(Clone, Debug)]
pub struct Answer {
    /// One array for each attribute asked for; defaults where a key was not found.
    pub columns: Vec<ArrayRef>,
    /// Which rows' keys the source has.
    pub found: BooleanArray,
}

/// Rows that were looked up and are made into arrays piece by piece.
pub struct AnswerRows<'a> {
    decoder: Decoder<'a>,
    /// Of each row, the decoder's row that it shows.
    places: Vec<u32>,
    found: BooleanArray,
}

impl<'a> AnswerRows<'a> {
    pub(crate) fn new(decoder: Decoder<'a>, places: Vec<u32>, found: BooleanArray) -> AnswerRows<'a> {
        AnswerRows { decoder, places, found }
    }

    /// Which rows' keys the source has.
    pub fn found(&self) -> &BooleanArray {
        &self.found
    }

    /// Some rows, in order: one array for each attribute asked for; defaults where a key was not found.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if they are more than one batch can hold, `INCORRECT_DATA` if they are not as declared.
    pub fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, DictError> {
        self.decoder.columns(&self.places[rows])
    }

    /// All rows.
    ///
    /// # Errors
    /// Those of [`columns`](Self::columns).
    pub fn into_answer(self) -> Result<Answer, DictError> {
        Ok(Answer { columns: self.columns(0..self.places.len())?, found: self.found })
    }
}
