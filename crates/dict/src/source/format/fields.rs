//! Fields as the readers of CSV and TabSeparated deliver them, without quotes and escapes.

use crate::error::DictError;

/// One field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// `\N`.
    Null,
    /// A value; an empty one is missing.
    Plain(&'a [u8]),
    /// A string, even if it is empty or looks like a number: what CSV has in quotes.
    Exact(&'a [u8]),
}

/// Takes fields as they are read.
pub trait FieldSink {
    /// The next field of a row; `column` counts from 0.
    fn field(&mut self, column: usize, field: Field<'_>) -> Result<(), DictError>;

    /// Whether the backslashes of a field of TabSeparated are the value's own, as they are inside an array or a map.
    fn keeps_escapes(&self, _column: usize) -> bool {
        false
    }

    /// The row ends here, after `columns` fields.
    fn end_row(&mut self, columns: usize) -> Result<(), DictError>;
}
