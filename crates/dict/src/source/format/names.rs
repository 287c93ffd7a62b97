//! FORMAT and its companions: how keys go to a program or a server, and rows come back.

use crate::config::Values;
use crate::error::{Code, DictError};

/// How keys and rows are written on a pipe, on a connection or in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `TabSeparated`, `TSV`.
    TabSeparated,
    /// `TabSeparatedWithNames`: the first line says which column is which.
    TabSeparatedWithNames,
    /// `TabSeparatedWithNamesAndTypes`; the line of types is not looked at.
    TabSeparatedWithNamesAndTypes,
    /// `CSV`.
    Csv,
    /// `CSVWithNames`.
    CsvWithNames,
    /// `CSVWithNamesAndTypes`; the line of types is not looked at.
    CsvWithNamesAndTypes,
    /// `JSONEachRow`, `JSONCompactEachRow` and their relatives.
    Json(JsonFormat),
    /// `RowBinary`.
    RowBinary,
    /// `RowBinaryWithNames`.
    RowBinaryWithNames,
    /// `RowBinaryWithNamesAndTypes`.
    RowBinaryWithNamesAndTypes,
    /// `Native`: blocks of columns, with names and types.
    Native,
    /// `ArrowStream`: Arrow's IPC stream.
    ArrowStream,
}

/// How rows are written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonFormat {
    /// What a row is.
    pub row: JsonRow,
    /// How its values are written.
    pub values: JsonValues,
    /// Lines before the rows: none, one of names, or one of names and one of types.
    pub head: u8,
}

/// What a row is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonRow {
    /// An object: columns by their names.
    Object,
    /// An array: columns in their order (`Compact`).
    Array,
}

/// How values are written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonValues {
    /// Each in its own JSON type.
    Typed,
    /// All as strings (`Strings`).
    Strings,
}

const fn json(row: JsonRow, values: JsonValues, head: u8) -> Format {
    Format::Json(JsonFormat { row, values, head })
}

/// ClickHouse's names; of several the first is printed.
const NAMES: &[(&str, Format)] = &[
    ("TabSeparated", Format::TabSeparated),
    ("TSV", Format::TabSeparated),
    ("TabSeparatedWithNames", Format::TabSeparatedWithNames),
    ("TSVWithNames", Format::TabSeparatedWithNames),
    ("TabSeparatedWithNamesAndTypes", Format::TabSeparatedWithNamesAndTypes),
    ("TSVWithNamesAndTypes", Format::TabSeparatedWithNamesAndTypes),
    ("CSV", Format::Csv),
    ("CSVWithNames", Format::CsvWithNames),
    ("CSVWithNamesAndTypes", Format::CsvWithNamesAndTypes),
    ("JSONEachRow", Format::JSON_EACH_ROW),
    ("JSONLines", Format::JSON_EACH_ROW),
    ("NDJSON", Format::JSON_EACH_ROW),
    ("JSONStringsEachRow", json(JsonRow::Object, JsonValues::Strings, 0)),
    ("JSONCompactEachRow", json(JsonRow::Array, JsonValues::Typed, 0)),
    ("JSONCompactEachRowWithNames", json(JsonRow::Array, JsonValues::Typed, 1)),
    ("JSONCompactEachRowWithNamesAndTypes", json(JsonRow::Array, JsonValues::Typed, 2)),
    ("JSONCompactStringsEachRow", json(JsonRow::Array, JsonValues::Strings, 0)),
    ("JSONCompactStringsEachRowWithNames", json(JsonRow::Array, JsonValues::Strings, 1)),
    ("JSONCompactStringsEachRowWithNamesAndTypes", json(JsonRow::Array, JsonValues::Strings, 2)),
    ("RowBinary", Format::RowBinary),
    ("RowBinaryWithNames", Format::RowBinaryWithNames),
    ("RowBinaryWithNamesAndTypes", Format::RowBinaryWithNamesAndTypes),
    ("Native", Format::Native),
    ("ArrowStream", Format::ArrowStream),
];

impl Format {
    /// `JSONEachRow`.
    pub const JSON_EACH_ROW: Format = json(JsonRow::Object, JsonValues::Typed, 0);

    /// The format of this name, ignoring case.
    pub fn named(name: &str) -> Option<Format> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
    }

    /// ClickHouse's names of all formats, one for each.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(|(name, format)| format.name() == *name).map(|(name, _)| *name)
    }

    /// Returns the format that the parameter FORMAT names.
    pub(in crate::source) fn of(values: &Values) -> Format {
        Format::named(values.text("FORMAT")).expect("the name was read")
    }

    /// ClickHouse's name.
    pub fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(_, format)| *format == self);
        known.expect("every format has a name").0
    }
}

/// Reads the name of any format.
pub(in crate::source) fn read_format(
    source: &str,
    _parameter: &str,
    name: &str,
) -> Result<String, DictError> {
    read_some_format(source, name, |_| true)
}

/// Reads the name of a format that is allowed.
pub(in crate::source) fn read_some_format(
    source: &str,
    name: &str,
    allowed: fn(Format) -> bool,
) -> Result<String, DictError> {
    let format = Format::named(name).filter(|&format| allowed(format)).ok_or_else(|| {
        let known: Vec<&str> =
            Format::names().filter(|name| Format::named(name).is_some_and(allowed)).collect();
        let text = format!("SOURCE({source}): unknown FORMAT {name}; allowed are {}", known.join(", "));
        DictError::new(Code::UnknownFormat, text)
    })?;
    Ok(format.name().to_string())
}
