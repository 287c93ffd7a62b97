//! Files of text as Arrow columns, read by the decoders that read a program's answers.

use super::format::{End, byte_order_mark, read_text, whole_rows};
pub use super::format::{Field, FieldSink};
use super::rows::Rows;
use crate::error::DictError;
use crate::types::DataType;
use arrow::array::ArrayRef;

/// The formats of text whose rows have their columns in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Commas, and double quotes where they are needed.
    Csv,
    /// Tabs and backslash escapes; no quotes.
    TabSeparated,
}

impl TextFormat {
    /// Where the first row of a file begins: after its byte order mark, if there is one.
    pub fn start(bytes: &[u8]) -> usize {
        byte_order_mark(bytes, End::Here).unwrap_or(0)
    }

    /// Where the last whole row of `bytes` ends; 0 if none does. `bytes` begins with a row.
    pub fn whole_rows(self, bytes: &[u8]) -> usize {
        whole_rows(self, bytes)
    }

    /// Hands the fields of whole rows over; the last row may lack its line end.
    ///
    /// # Errors
    /// `CANNOT_PARSE_TEXT`, and the errors of the sink.
    pub fn fields(self, bytes: &[u8], sink: &mut impl FieldSink) -> Result<(), DictError> {
        read_text(self, bytes, sink)
    }

    /// Reads whole rows of columns with these names and types, all of them nullable; arrays for those `wanted`.
    /// `rows_before` of them came earlier.
    ///
    /// # Errors
    /// `CANNOT_PARSE_TEXT` with the column and the row, counted from 1.
    pub fn read(
        self,
        columns: &[(String, DataType)],
        wanted: &[usize],
        bytes: &[u8],
        rows_before: usize,
    ) -> Result<Vec<ArrayRef>, DictError> {
        let mut rows = Rows::of_some(columns, wanted);
        if let Err(error) = read_text(self, bytes, &mut rows) {
            return Err(error.within(format_args!("row {}", rows_before + rows.ended() + 1)));
        }
        rows.finish_columns(wanted)
    }
}
