//! ClickHouse's formats on a pipe: keys out, rows in.

mod csv;
mod json;
mod row_binary;
mod tab_separated;

use super::rows::Rows;
use crate::config::Format;
use crate::error::DictError;
use crate::row::{Cells, Raw};
use crate::types::{DataType, print_fixed};
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
        Format::TabSeparated => tab_separated::read(bytes, rows),
        Format::Csv => csv::read(bytes, rows),
        Format::JsonEachRow => json::read(bytes, rows),
        Format::RowBinary => row_binary::read(bytes, rows),
    };
    read.map_err(|e| e.within(format_args!("{} row {}", format.name(), rows.len() + 1)))
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

/// Bytes of a field as text.
fn utf8<'a>(bytes: &'a [u8], rows: &Rows, column: usize) -> Result<&'a str, DictError> {
    std::str::from_utf8(bytes).map_err(|_| not_utf8(rows, column))
}

fn not_utf8(rows: &Rows, column: usize) -> DictError {
    DictError::parse_text(format!("Column {} of the source is not valid UTF-8", rows.name(column)))
}

fn wrong_width(found: usize, rows: &Rows) -> DictError {
    DictError::parse_text(format!("Expected {} columns, got {found}", rows.width()))
}

#[cfg(test)]
mod tests;
