//! Reads keys that are sent to us as we send them to a source, or rows of any columns, from a stream that comes in
//! pieces.

use super::names::Format;
use super::{End, Reader, Rows};
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits::ROW_BYTES_MAX;
use crate::types::DataType;
use arrow::array::ArrayRef;

/// Takes bytes, gives rows: keys, as a rule.
pub struct RowReader {
    reader: Reader,
    rows: Rows,
    /// An incomplete row.
    rest: Vec<u8>,
    /// How long `rest` must be before it is read again. It doubles while no row ends, so that a long row is tried a few
    /// times and not once for each piece.
    enough: usize,
}

impl RowReader {
    pub(crate) fn new(format: Format, structure: &Structure) -> RowReader {
        RowReader::over(Reader::without_detection(format), Rows::of_key(structure))
    }

    fn over(reader: Reader, rows: Rows) -> RowReader {
        RowReader { reader, rows, rest: Vec::new(), enough: 0 }
    }

    /// For rows of columns with these names and types, all of them nullable.
    pub fn of_columns(format: Format, columns: &[(String, DataType)]) -> RowReader {
        RowReader::over(Reader::new(format), Rows::of_columns(columns))
    }

    /// Has `check` asked, while rows are read, whether so many further bytes of memory may be taken. Without it they
    /// have 2 GiB at most.
    #[must_use]
    pub fn within_memory(self, check: impl Fn(usize) -> Result<(), DictError> + Send + 'static) -> RowReader {
        RowReader { rows: self.rows.within_memory(Box::new(check)), ..self }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// `CANNOT_PARSE_TEXT` and the like if the bytes are not rows in this format; `LIMIT_EXCEEDED` for a row, or a
    /// block of Native or ArrowStream, of more than 64 MiB.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), DictError> {
        let read = if self.rest.is_empty() {
            let read = self.reader.read(bytes, End::Later, &mut self.rows)?;
            self.rest.extend_from_slice(&bytes[read..]);
            read
        } else {
            self.rest.extend_from_slice(bytes);
            if self.rest.len() < self.enough {
                return Ok(());
            }
            let read = self.reader.read(&self.rest, End::Later, &mut self.rows)?;
            self.rest.drain(..read);
            read
        };
        self.enough = if read == 0 { 2 * self.rest.len() } else { 0 };
        if self.rest.len() > ROW_BYTES_MAX {
            let text = format!("A row or block of more than {ROW_BYTES_MAX} bytes");
            return Err(DictError::new(Code::LimitExceeded, text));
        }
        Ok(())
    }

    /// Says that no more bytes come.
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    pub fn finish(&mut self) -> Result<(), DictError> {
        self.reader.read(&std::mem::take(&mut self.rest), End::Here, &mut self.rows)?;
        Ok(())
    }

    /// How many rows are there to be taken.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows that came since they were taken last: an array for each column.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if their strings are over 2 GiB.
    pub fn take(&mut self) -> Result<Vec<ArrayRef>, DictError> {
        self.rows.take()
    }

    /// All rows of a whole body.
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    pub fn read_all(mut self, bytes: &[u8]) -> Result<Vec<ArrayRef>, DictError> {
        self.reader.read(bytes, End::Here, &mut self.rows)?;
        self.take()
    }
}
