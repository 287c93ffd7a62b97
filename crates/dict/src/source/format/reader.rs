//! A stream of rows that is read piece by piece.

use super::header::HeaderLine;
use super::names::{Format, JsonFormat};
use super::{ColumnOrder, Field, FieldSink, Rows, arrow_stream, csv, json, native, read_text, row_binary};
use super::{tab_separated, whole_rows};
use crate::error::DictError;
use crate::limits::{COLUMNS_MAX, HEAD_BYTES_MAX};
use crate::source::text::TextFormat;

/// Whether more will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The bytes are the last: what is cut off is an error.
    Here,
    /// A cut-off row will come again, with its rest.
    Later,
}

/// State of a stream between two pieces.
pub(crate) struct Reader {
    name: &'static str,
    state: ReaderState,
    /// Nothing has been read.
    is_new: bool,
}

/// The mark that some programs write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Bytes of the byte order mark that text begins with, or 0; `None`: more bytes are needed to tell.
pub(crate) fn byte_order_mark(bytes: &[u8], end: End) -> Option<usize> {
    match bytes.starts_with(BYTE_ORDER_MARK) {
        true => Some(BYTE_ORDER_MARK.len()),
        false => (end == End::Here || !BYTE_ORDER_MARK.starts_with(bytes)).then_some(0),
    }
}

enum ReaderState {
    /// Without names, columns are as declared.
    Text {
        format: TextFormat,
        header: HeaderLine,
        order: Option<ColumnOrder>,
    },
    Json(json::Stream),
    /// `None`: the head is still to come.
    RowBinary {
        head: Head,
        order: Option<ColumnOrder>,
    },
    Native,
    Arrow(Box<arrow_stream::ArrowStreamReader>),
}

#[derive(Clone, Copy, PartialEq)]
enum Head {
    None,
    Names,
    NamesAndTypes,
}

impl Reader {
    /// At the beginning of a stream.
    pub fn new(format: Format) -> Reader {
        let text = |format, header| ReaderState::Text { format, header, order: None };
        let binary = |head| ReaderState::RowBinary { head, order: None };
        let state = match format {
            Format::TabSeparated => text(TextFormat::TabSeparated, HeaderLine::NamesGuessed),
            Format::TabSeparatedWithNames => text(TextFormat::TabSeparated, HeaderLine::Names),
            Format::TabSeparatedWithNamesAndTypes => {
                text(TextFormat::TabSeparated, HeaderLine::NamesAndTypes)
            }
            Format::Csv => text(TextFormat::Csv, HeaderLine::NamesGuessed),
            Format::CsvWithNames => text(TextFormat::Csv, HeaderLine::Names),
            Format::CsvWithNamesAndTypes => text(TextFormat::Csv, HeaderLine::NamesAndTypes),
            Format::Json(JsonFormat { row, values, head }) => {
                ReaderState::Json(json::Stream::new(row, values, HeaderLine::given(head)))
            }
            Format::RowBinary => binary(Head::None),
            Format::RowBinaryWithNames => binary(Head::Names),
            Format::RowBinaryWithNamesAndTypes => binary(Head::NamesAndTypes),
            Format::Native => ReaderState::Native,
            Format::ArrowStream => ReaderState::Arrow(Box::default()),
        };
        Reader { name: format.name(), state, is_new: true }
    }

    /// Like [`new`](Self::new), for keys and for answers to keys, whose text has no header unless its format says so: a
    /// first row of values that are names of columns is a row.
    pub fn without_detection(format: Format) -> Reader {
        let mut reader = Reader::new(format);
        if let ReaderState::Text { header: header @ HeaderLine::NamesGuessed, .. } = &mut reader.state {
            *header = HeaderLine::Read;
        }
        reader
    }

    /// Whether there is a bracket around the rows that is not closed yet.
    #[cfg_attr(not(feature = "executable-pool"), expect(dead_code, reason = "others read to the end"))]
    pub fn is_open(&self) -> bool {
        matches!(&self.state, ReaderState::Json(stream) if stream.is_open())
    }

    /// Reads the whole rows at the beginning of `bytes`, and returns how many bytes they took: the rest must come
    /// again, before what follows.
    ///
    /// # Errors
    /// `CANNOT_PARSE_TEXT` with the row, counted from 1 over all pieces that went into `rows`.
    pub fn read(&mut self, bytes: &[u8], end: End, rows: &mut Rows) -> Result<usize, DictError> {
        let mark = match &self.state {
            ReaderState::Text { .. } | ReaderState::Json(_) if self.is_new => byte_order_mark(bytes, end),
            _ => Some(0),
        };
        let Some(mark) = mark else { return Ok(0) };
        self.is_new = false;
        let bytes = &bytes[mark..];
        let read = match &mut self.state {
            ReaderState::Text { format, header, order } => {
                read_lines(*format, header, order, bytes, end, rows)
            }
            ReaderState::Json(stream) => stream.read(bytes, end, rows),
            ReaderState::RowBinary { head, order } => read_binary(*head, order, bytes, end, rows),
            ReaderState::Native => native::read(bytes, end, rows),
            ReaderState::Arrow(reader) => reader.read(bytes, rows).and_then(|()| {
                if end == End::Here {
                    reader.finish()?;
                }
                Ok(bytes.len())
            }),
        };
        let read = read.map_err(|e| e.within(format_args!("{} row {}", self.name, rows.ended() + 1)))?;
        Ok(mark + read)
    }
}

fn read_lines(
    format: TextFormat,
    header: &mut HeaderLine,
    order: &mut Option<ColumnOrder>,
    bytes: &[u8],
    end: End,
    rows: &mut Rows,
) -> Result<usize, DictError> {
    let mut at = 0;
    while !header.is_read() && at < bytes.len() {
        let first = match format {
            TextFormat::Csv => csv::row_ends(&bytes[at..]).next(),
            TextFormat::TabSeparated => tab_separated::first_row(&bytes[at..]),
        };
        let line = match (first, end) {
            (Some(line), _) => line,
            (None, End::Here) => bytes.len() - at,
            (None, End::Later) => return Ok(at),
        };
        let mut fields = Names::default();
        read_text(format, &bytes[at..at + line], &mut fields)?;
        if header.read(fields.0, order, rows)? {
            at += line;
        }
    }
    let whole = match end {
        End::Here => bytes.len(),
        End::Later => at + whole_rows(format, &bytes[at..]),
    };
    match order {
        None => read_text(format, &bytes[at..whole], rows)?,
        Some(order) => read_text(format, &bytes[at..whole], &mut Ordered { order, rows })?,
    }
    Ok(whole)
}

/// The fields of a line of names or types.
#[derive(Default)]
struct Names(Vec<String>);

impl FieldSink for Names {
    fn field(&mut self, _column: usize, field: Field<'_>) -> Result<(), DictError> {
        let text = match field {
            Field::Null => "",
            Field::Plain(text) | Field::Exact(text) => std::str::from_utf8(text).unwrap_or(""),
        };
        if self.0.len() == COLUMNS_MAX {
            return Err(DictError::parse_text(format!("More than {COLUMNS_MAX} columns")));
        }
        self.0.push(text.to_string());
        Ok(())
    }

    fn end_row(&mut self, _columns: usize) -> Result<(), DictError> {
        Ok(())
    }
}

/// Rows whose fields come in the order of a head.
struct Ordered<'a> {
    order: &'a ColumnOrder,
    rows: &'a mut Rows,
}

impl FieldSink for Ordered<'_> {
    fn field(&mut self, column: usize, field: Field<'_>) -> Result<(), DictError> {
        match self.order.places.get(column) {
            Some(Some(place)) => self.rows.field(*place, field),
            _ => Ok(()),
        }
    }

    fn keeps_escapes(&self, column: usize) -> bool {
        matches!(self.order.places.get(column), Some(Some(place)) if self.rows.keeps_escapes(*place))
    }

    fn end_row(&mut self, columns: usize) -> Result<(), DictError> {
        let expected = self.order.places.len();
        if columns == expected {
            return self.order.end_row(self.rows);
        }
        Err(DictError::parse_text(format!("Expected {expected} columns, got {columns}")))
    }
}

fn read_binary(
    head: Head,
    order: &mut Option<ColumnOrder>,
    bytes: &[u8],
    end: End,
    rows: &mut Rows,
) -> Result<usize, DictError> {
    // An empty input has no rows, even if a head was expected.
    if bytes.is_empty() && end == End::Here {
        return Ok(0);
    }
    let mut at = 0;
    let order = match order {
        Some(order) => order,
        None if head == Head::None => order.insert(ColumnOrder::declared(rows)),
        None => {
            let Some((names, types, rest)) = read_head(head, bytes)? else {
                return match end {
                    End::Later => Ok(0),
                    End::Here => Err(DictError::parse_text("The bytes end in the middle of the names")),
                };
            };
            at = rest;
            order.insert(ColumnOrder::of_head(&names, &types, rows)?)
        }
    };
    Ok(at + row_binary::read(&bytes[at..], order, end, rows)?)
}

type HeadTexts = Vec<String>;

/// Names, types if there are any, and where the rows begin; `None`: the head is incomplete.
fn read_head(head: Head, bytes: &[u8]) -> Result<Option<(HeadTexts, HeadTexts, usize)>, DictError> {
    let Some((count, mut at)) = native::varint(bytes, 0) else { return Ok(None) };
    if count > COLUMNS_MAX {
        return Err(DictError::parse_text(format!("A row of {count} columns")));
    }
    let mut left = HEAD_BYTES_MAX;
    let mut texts = |count: usize| -> Result<Option<HeadTexts>, DictError> {
        let mut texts = Vec::new();
        for _ in 0..count {
            let Some((text, next)) = native::text(bytes, at, &mut left)? else { return Ok(None) };
            at = next;
            texts.push(text);
        }
        Ok(Some(texts))
    };
    let Some(names) = texts(count)? else { return Ok(None) };
    let Some(types) = texts(if head == Head::NamesAndTypes { count } else { 0 })? else { return Ok(None) };
    Ok(Some((names, types, at)))
}
