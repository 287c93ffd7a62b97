//! ClickHouse's formats on a pipe: keys out, rows in.

mod csv;
mod fields;
mod json;
mod row_binary;
mod tab_separated;

pub use fields::{Field, FieldSink};

use super::rows::Rows;
use super::text::TextFormat;
use crate::config::Format;
use crate::error::DictError;
use crate::row::{Cells, Raw};
use crate::types::{DataType, Shape, print_fixed};
use arrow::array::{Array, ArrayRef};

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
    for row in 0..keys.first().map_or(0, |array| array.len()) {
        match format {
            Format::TabSeparated => tab_separated::write_row(&cells, row, &mut out),
            Format::Csv => csv::write_row(&cells, row, &mut out),
            Format::JsonEachRow => json::write_row(&cells, row, &mut out),
            Format::RowBinary => row_binary::write_row(&cells, row, &mut out),
        }
    }
    Ok(out)
}

/// Reads rows to the end of `bytes`.
pub(super) fn read_rows(format: Format, bytes: &[u8], rows: &mut Rows) -> Result<(), DictError> {
    let read = match format {
        Format::TabSeparated => read_text(TextFormat::TabSeparated, bytes, rows),
        Format::Csv => read_text(TextFormat::Csv, bytes, rows),
        Format::JsonEachRow => json::read(bytes, rows),
        Format::RowBinary => row_binary::read(bytes, rows),
    };
    let row = match format {
        Format::TabSeparated | Format::Csv => rows.ended(),
        Format::JsonEachRow | Format::RowBinary => rows.len(),
    } + 1;
    read.map_err(|e| e.within(format_args!("{} row {row}", format.name())))
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

/// Where the last whole row ends of a stream in which every row has its line end.
pub(super) fn whole_rows_of(format: Format, rows: &Rows, bytes: &[u8]) -> usize {
    match format {
        Format::TabSeparated => tab_separated::whole_rows(bytes),
        Format::Csv => csv::whole_rows(bytes),
        Format::JsonEachRow => bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1),
        Format::RowBinary => row_binary::whole_rows(bytes, rows),
    }
}

impl KeyCells<'_> {
    /// The text of a value, unescaped; `None`: NULL.
    fn text(&self, row: usize) -> Option<String> {
        let mut text = String::new();
        match self.cells.get(row) {
            Raw::Null => return None,
            Raw::Text(bytes) => text += &String::from_utf8_lossy(bytes),
            Raw::Fixed(raw) => print_fixed(self.data_type, raw, &mut text),
            Raw::Bit(bit) => print_fixed(self.data_type, &[u8::from(bit)], &mut text),
        }
        Some(text)
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
        self.push_bytes(column, bytes)
    }

    fn end_row(&mut self, columns: usize) -> Result<(), DictError> {
        if columns == self.width() {
            Rows::end_row(self);
            return Ok(());
        }
        Err(DictError::parse_text(format!("Expected {} columns, got {columns}", self.width())))
    }
}

#[cfg(test)]
mod tests;
