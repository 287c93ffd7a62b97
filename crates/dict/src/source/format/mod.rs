//! ClickHouse's formats on a pipe: keys out, rows in.

mod arrays;
mod arrow_stream;
mod backing;
mod csv;
mod fields;
mod header;
mod json;
mod json_row;
pub(super) mod names;
mod native;
mod order;
mod reader;
mod row_binary;
mod row_reader;
mod tab_separated;
mod wire;

pub(super) use arrow_stream::push as push_batch;
pub use fields::{Field, FieldSink};
pub use row_reader::RowReader;

use self::names::{Format, JsonFormat};
use self::order::ColumnOrder;
pub(super) use self::reader::{End, Reader, byte_order_mark};
use super::BatchSink;
use super::rows::Rows;
use super::text::TextFormat;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::{Cells, Raw, Style, print};
use crate::types::{DataType, Shape};
use arrow::array::{Array, ArrayRef};
use std::io::{self, Read};

/// A key column to be written.
struct KeyCells<'a> {
    name: &'a str,
    data_type: &'a DataType,
    cells: Cells,
}

/// Keys as bytes; `columns` are their names and types.
pub(super) fn write_keys(
    format: Format,
    columns: &[(String, DataType)],
    keys: &[ArrayRef],
) -> Result<Vec<u8>, DictError> {
    let cells = columns
        .iter()
        .zip(keys)
        .map(|((name, data_type), array)| {
            Ok(KeyCells { name, data_type, cells: Cells::new(data_type, array)? })
        })
        .collect::<Result<Vec<_>, DictError>>()?;
    let mut out = Vec::new();
    let names = || columns.iter().map(|(name, _)| name.as_str());
    let types: Vec<String> = columns.iter().map(|(_, data_type)| data_type.to_string()).collect();
    let count = keys.first().map_or(0, |array| array.len());
    match format {
        Format::TabSeparated | Format::Csv | Format::RowBinary => {}
        Format::TabSeparatedWithNames => tab_separated::write_head(names(), &mut out),
        Format::TabSeparatedWithNamesAndTypes => {
            tab_separated::write_head(names(), &mut out);
            tab_separated::write_head(types.iter().map(String::as_str), &mut out);
        }
        Format::CsvWithNames => csv::write_head(names(), &mut out),
        Format::CsvWithNamesAndTypes => {
            csv::write_head(names(), &mut out);
            csv::write_head(types.iter().map(String::as_str), &mut out);
        }
        Format::Json(JsonFormat { head, .. }) => {
            if head > 0 {
                json::write_head(names(), &mut out);
            }
            if head > 1 {
                json::write_head(types.iter().map(String::as_str), &mut out);
            }
        }
        Format::RowBinaryWithNames => row_binary::write_head(names(), [].into_iter(), &mut out),
        Format::RowBinaryWithNamesAndTypes => {
            row_binary::write_head(names(), types.into_iter(), &mut out);
        }
        Format::Native => native::write(&cells, count, &mut out),
        Format::ArrowStream => arrow_stream::write(columns, keys, &mut out)?,
    }
    for row in 0..count {
        match format {
            Format::TabSeparated | Format::TabSeparatedWithNames | Format::TabSeparatedWithNamesAndTypes => {
                tab_separated::write_row(&cells, row, &mut out);
            }
            Format::Csv | Format::CsvWithNames | Format::CsvWithNamesAndTypes => {
                csv::write_row(&cells, row, &mut out);
            }
            Format::Json(JsonFormat { row: shape, values, .. }) => {
                json::write_row(shape, values, &cells, row, &mut out);
            }
            Format::RowBinary | Format::RowBinaryWithNames | Format::RowBinaryWithNamesAndTypes => {
                row_binary::write_row(&cells, row, &mut out);
            }
            // Their columns are written already.
            Format::Native | Format::ArrowStream => break,
        }
    }
    Ok(out)
}

/// Reads rows to the end of `bytes`.
pub(super) fn read_rows(format: Format, bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
    Reader::new(format).read(bytes, End::Here, rows)?;
    Ok(())
}

/// Like [`read_rows`], of an answer that has no header unless its format says so.
pub(super) fn read_answer(format: Format, bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
    Reader::without_detection(format).read(bytes, End::Here, rows)?;
    Ok(())
}

/// Reads rows to the end of `input`, and hands them over while they come.
pub(super) fn pass_rows(
    format: Format,
    input: impl Read,
    rows: Rows,
    sink: &mut BatchSink<'_>,
) -> Result<(), DictError> {
    pass(Reader::new(format), input, rows, sink)
}

/// Like [`pass_rows`], of an answer that has no header unless its format says so.
pub(super) fn pass_answer(
    format: Format,
    input: impl Read,
    rows: Rows,
    sink: &mut BatchSink<'_>,
) -> Result<(), DictError> {
    pass(Reader::without_detection(format), input, rows, sink)
}

fn pass(
    mut reader: Reader,
    mut input: impl Read,
    mut rows: Rows,
    sink: &mut BatchSink<'_>,
) -> Result<(), DictError> {
    // Bytes not read yet, which end in the middle of a row or a block.
    let mut bytes = Vec::new();
    // How many of them there must be before the next try: see `RowReader`.
    let mut enough = 0;
    loop {
        let piece = input.by_ref().take(limits::ANSWER_PIECE_BYTES).read_to_end(&mut bytes).map_err(|e| {
            let code = match e.kind() {
                io::ErrorKind::TimedOut => Code::TimeoutExceeded,
                _ => Code::NetworkError,
            };
            DictError::new(code, format!("The answer of the source breaks off: {e}"))
        })?;
        if piece == 0 || bytes.len() >= enough {
            let end = if piece == 0 { End::Here } else { End::Later };
            let read = reader.read(&bytes, end, &mut rows)?;
            bytes.drain(..read);
            enough = if read == 0 { 2 * bytes.len() } else { 0 };
            if bytes.len() > limits::ROW_BYTES_MAX {
                let text = format!("A row or block of more than {} bytes", limits::ROW_BYTES_MAX);
                return Err(DictError::new(Code::LimitExceeded, text));
            }
        }
        if piece == 0 {
            return rows.flush(sink);
        }
        rows.flush_if_full(sink)?;
    }
}

/// Reads the fields of whole rows.
pub(super) fn read_text(
    format: TextFormat,
    bytes: &[u8],
    sink: &mut impl FieldSink,
) -> Result<(), DictError> {
    match format {
        TextFormat::Csv => csv::read(bytes, sink),
        TextFormat::TabSeparated => tab_separated::read(bytes, sink),
    }
}

/// Where the last whole row ends.
pub(super) fn whole_rows(format: TextFormat, bytes: &[u8]) -> usize {
    match format {
        TextFormat::Csv => csv::whole_rows(bytes),
        TextFormat::TabSeparated => tab_separated::whole_rows(bytes),
    }
}

impl KeyCells<'_> {
    /// The text of a value, without escapes except in its parts; `None`: NULL.
    fn text(&self, row: usize, style: Style) -> Option<String> {
        let value = self.cells.get(row);
        let mut text = String::new();
        print(self.data_type, &value, style, &mut text);
        (!matches!(value, Raw::Null)).then_some(text)
    }

    fn is_composite(&self) -> bool {
        self.data_type.is_composite()
    }
}

impl FieldSink for Rows {
    #[inline]
    fn field(&mut self, column: usize, field: Field<'_>) -> Result<(), DictError> {
        if column >= self.width() || !self.is_wanted(column) {
            return Ok(());
        }
        let is_text = self.data_type(column).shape() == Shape::Text;
        let bytes = match field {
            Field::Null => return self.push_parsed(column, None),
            Field::Plain(b"") if self.data_type(column).is_nullable() => {
                return self.push_parsed(column, None);
            }
            Field::Plain(b"") | Field::Exact(b"") if !is_text => return self.push_parsed(column, None),
            Field::Plain(bytes) | Field::Exact(bytes) => bytes,
        };
        self.push_lenient_bytes(column, bytes)
    }

    fn keeps_escapes(&self, column: usize) -> bool {
        column < self.width() && self.data_type(column).is_composite()
    }

    fn end_row(&mut self, columns: usize) -> Result<(), DictError> {
        if columns == self.width() {
            return Rows::end_row(self);
        }
        Err(DictError::parse_text(format!("Expected {} columns, got {columns}", self.width())))
    }
}

#[cfg(test)]
mod tests;
