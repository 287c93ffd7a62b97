//! ClickHouse's output formats: batches in, bytes out. One small file each.

mod arrow_stream;
mod arrow_types;
mod binary;
mod csv;
mod json;
mod json_compact_each_row;
mod json_each_row;
mod native;
mod null;
mod parquet;
mod pretty;
mod row_binary;
mod tab_separated;
mod values;
mod vertical;

use std::io::Write;
use std::str::FromStr;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use granary_dialect::text::{Column, Style, escape, shown_name};
use granary_dialect::{Error, Result};

/// The formats that a result can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Tabs between values, escapes with backslashes.
    TabSeparated,
    /// TabSeparated without escapes.
    TabSeparatedRaw,
    /// TabSeparated after a line of column names.
    TabSeparatedWithNames,
    /// TabSeparated after lines of column names and of their types.
    TabSeparatedWithNamesAndTypes,
    /// Commas between values, texts in double quotes.
    Csv,
    /// CSV after a line of column names.
    CsvWithNames,
    /// One object with columns, rows as objects, and statistics.
    Json,
    /// JSON with rows as arrays.
    JsonCompact,
    /// An object a line.
    JsonEachRow,
    /// An array a line.
    JsonCompactEachRow,
    /// JSONCompactEachRow after an array of column names.
    JsonCompactEachRowWithNames,
    /// JSONCompactEachRow after arrays of column names and of their types.
    JsonCompactEachRowWithNamesAndTypes,
    /// Rows in parentheses, as behind VALUES of an INSERT.
    Values,
    /// A table with a frame, for people.
    Pretty,
    /// A table with lines around the names only.
    PrettyCompact,
    /// A line for each value, below a line for each row.
    Vertical,
    /// ClickHouse's binary values, row by row.
    RowBinary,
    /// RowBinary after the column names.
    RowBinaryWithNames,
    /// RowBinary after the column names and their types.
    RowBinaryWithNamesAndTypes,
    /// ClickHouse's blocks of columns.
    Native,
    /// A Parquet file.
    Parquet,
    /// An Arrow file.
    Arrow,
    /// A stream of Arrow IPC messages.
    ArrowStream,
    /// Nothing: the query runs, and its rows are dropped.
    Null,
}

const NAMES: &[(&str, Format)] = &[
    ("TabSeparated", Format::TabSeparated),
    ("TSV", Format::TabSeparated),
    ("TabSeparatedRaw", Format::TabSeparatedRaw),
    ("TSVRaw", Format::TabSeparatedRaw),
    ("TabSeparatedWithNames", Format::TabSeparatedWithNames),
    ("TSVWithNames", Format::TabSeparatedWithNames),
    ("TabSeparatedWithNamesAndTypes", Format::TabSeparatedWithNamesAndTypes),
    ("TSVWithNamesAndTypes", Format::TabSeparatedWithNamesAndTypes),
    ("CSV", Format::Csv),
    ("CSVWithNames", Format::CsvWithNames),
    ("JSON", Format::Json),
    ("JSONCompact", Format::JsonCompact),
    ("JSONEachRow", Format::JsonEachRow),
    ("JSONCompactEachRow", Format::JsonCompactEachRow),
    ("JSONCompactEachRowWithNames", Format::JsonCompactEachRowWithNames),
    ("JSONCompactEachRowWithNamesAndTypes", Format::JsonCompactEachRowWithNamesAndTypes),
    ("Values", Format::Values),
    ("JSONLines", Format::JsonEachRow),
    ("NDJSON", Format::JsonEachRow),
    ("Pretty", Format::Pretty),
    ("PrettyCompact", Format::PrettyCompact),
    ("Vertical", Format::Vertical),
    ("RowBinary", Format::RowBinary),
    ("RowBinaryWithNames", Format::RowBinaryWithNames),
    ("RowBinaryWithNamesAndTypes", Format::RowBinaryWithNamesAndTypes),
    ("Native", Format::Native),
    ("Parquet", Format::Parquet),
    ("Arrow", Format::Arrow),
    ("ArrowStream", Format::ArrowStream),
    ("Null", Format::Null),
];

impl Format {
    /// The format's name.
    pub fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(_, format)| *format == self);
        known.expect("every format has a name").0
    }

    /// The names accepted after FORMAT.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, format)) => Ok(*format),
            None => {
                let known: Vec<&str> = Format::names().collect();
                Err(Error::unknown_format(format!("Unknown format {name}; known are {}", known.join(", "))))
            }
        }
    }
}

/// Rows and bytes that a query has read from tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows.
    pub rows_read: usize,
    /// Bytes of the rows as columns in memory, not in files.
    pub bytes_read: usize,
}

/// Writes the batches of one result.
pub trait BatchWriter {
    /// Writes one batch; all batches of a result have the same schema.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;
    /// Writes the end of the result. Must be called exactly once, also for an empty result.
    fn finish(&mut self, read: Statistics) -> Result<()>;
}

/// Starts a result like [`open`], with `Native` as in a `revision` of ClickHouse's protocol.
///
/// # Errors
/// The errors of [`open`].
pub fn open_for<'a>(
    revision: u64,
    format: Format,
    schema: SchemaRef,
    out: &'a mut (dyn Write + Send),
) -> Result<Box<dyn BatchWriter + 'a>> {
    match format {
        Format::Native => Ok(Box::new(native::Native::new(&schema, out, revision))),
        format => open(format, schema, out),
    }
}

/// Starts a result in the format asked for.
pub fn open<'a>(
    format: Format,
    schema: SchemaRef,
    out: &'a mut (dyn Write + Send),
) -> Result<Box<dyn BatchWriter + 'a>> {
    use json_compact_each_row::JsonCompactEachRow;
    use tab_separated::{HeaderLines, TabSeparated};
    Ok(match format {
        Format::TabSeparated => Box::new(TabSeparated::open(&schema, out, HeaderLines::Absent, Style::Tab)?),
        Format::TabSeparatedRaw => {
            Box::new(TabSeparated::open(&schema, out, HeaderLines::Absent, Style::Raw)?)
        }
        Format::TabSeparatedWithNames => {
            Box::new(TabSeparated::open(&schema, out, HeaderLines::Names, Style::Tab)?)
        }
        Format::TabSeparatedWithNamesAndTypes => {
            Box::new(TabSeparated::open(&schema, out, HeaderLines::NamesAndTypes, Style::Tab)?)
        }
        Format::Csv => Box::new(csv::Csv::new(out)),
        Format::CsvWithNames => Box::new(csv::Csv::with_names(&schema, out)?),
        Format::Json => Box::new(json::Json::open(&schema, out, json::RowShape::Object)?),
        Format::JsonCompact => Box::new(json::Json::open(&schema, out, json::RowShape::Array)?),
        Format::JsonCompactEachRow => Box::new(JsonCompactEachRow::open(&schema, out, HeaderLines::Absent)?),
        Format::JsonCompactEachRowWithNames => {
            Box::new(JsonCompactEachRow::open(&schema, out, HeaderLines::Names)?)
        }
        Format::JsonCompactEachRowWithNamesAndTypes => {
            Box::new(JsonCompactEachRow::open(&schema, out, HeaderLines::NamesAndTypes)?)
        }
        Format::Values => Box::new(values::Values::new(out)),
        Format::JsonEachRow => Box::new(json_each_row::JsonEachRow::new(&schema, out)),
        Format::Pretty => Box::new(pretty::Pretty::new(schema, out, pretty::Frame::Full)),
        Format::PrettyCompact => Box::new(pretty::Pretty::new(schema, out, pretty::Frame::Compact)),
        Format::Vertical => Box::new(vertical::Vertical::new(&schema, out)),
        Format::RowBinary => Box::new(row_binary::RowBinary::new(&schema, out)),
        Format::RowBinaryWithNames => Box::new(row_binary::RowBinary::with_names(&schema, out)?),
        Format::RowBinaryWithNamesAndTypes => {
            Box::new(row_binary::RowBinary::with_names_and_types(&schema, out)?)
        }
        Format::Native => Box::new(native::Native::new(&schema, out, 0)),
        Format::Parquet => Box::new(parquet::Parquet::open(&schema, out)?),
        Format::Arrow => Box::new(arrow_stream::ArrowFile::open(&schema, out)?),
        Format::ArrowStream => Box::new(arrow_stream::ArrowStream::open(&schema, out)?),
        Format::Null => Box::new(null::Null),
    })
}

fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| shown_name(field.name()).to_owned()).collect()
}

fn columns(batch: &RecordBatch) -> Result<Vec<Column>> {
    batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, array)| Column::new(field, array))
        .collect()
}
