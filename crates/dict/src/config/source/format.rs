//! FORMAT and its companions: how keys go to a program or a server, and rows come back.

use crate::error::{Code, DictError};

/// How keys and rows are written on a pipe, on a connection or in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `TabSeparated`, `TSV`.
    TabSeparated,
    /// `CSV`.
    Csv,
    /// `JSONEachRow`.
    JsonEachRow,
    /// `RowBinary`.
    RowBinary,
}

/// Whether the rows of a program repeat their keys (IMPLICIT_KEY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEcho {
    /// Key columns, then attributes.
    Repeated,
    /// Attributes only, a row for each key, in the keys' order.
    Implicit,
}

/// Whether a line with the number of keys goes before them (SEND_CHUNK_HEADER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkHeader {
    /// Keys alone.
    None,
    /// The number of keys in decimal digits.
    RowCount,
}

impl Format {
    pub(super) fn parse(source: &str, name: &str) -> Result<Format, DictError> {
        match name.to_ascii_lowercase().as_str() {
            "tabseparated" | "tsv" => Ok(Format::TabSeparated),
            "csv" => Ok(Format::Csv),
            "jsoneachrow" => Ok(Format::JsonEachRow),
            "rowbinary" => Ok(Format::RowBinary),
            _ => Err(DictError::new(
                Code::UnknownFormat,
                format!(
                    "SOURCE({source}): unknown FORMAT {name}; allowed are TabSeparated, CSV, JSONEachRow, RowBinary"
                ),
            )),
        }
    }

    /// ClickHouse's name.
    pub fn name(self) -> &'static str {
        match self {
            Format::TabSeparated => "TabSeparated",
            Format::Csv => "CSV",
            Format::JsonEachRow => "JSONEachRow",
            Format::RowBinary => "RowBinary",
        }
    }
}
