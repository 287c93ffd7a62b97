//! Rows as JSON. JSONEachRow: an object for each, columns by name, in any order; an attribute that is missing is NULL
//! (so the default). JSONCompactEachRow: an array for each, columns in their order or in that of a head. Lines of them,
//! or, of objects, one array around all. With Strings in the format's name every value is written as a string. What is
//! no string is read as it is written: a number by its digits, an array or an object for a String as it came.

use super::header::HeaderLine;
use super::json_row::Row;
use super::names::{JsonRow, JsonValues};
use super::{ColumnOrder, End, KeyCells, Rows, csv};
use crate::error::DictError;
use crate::row::Style;
use crate::types::Shape;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};
use std::borrow::Cow;

/// NULL where every value is a string.
const NULL: &str = "ᴺᵁᴸᴸ";

/// Bytes of invalid input that an error shows.
const SHOWN_BYTES: usize = 64;

pub(super) fn write_row(
    shape: JsonRow,
    values: JsonValues,
    keys: &[KeyCells<'_>],
    row: usize,
    out: &mut Vec<u8>,
) {
    let (open, close) = if shape == JsonRow::Object { (b'{', b'}') } else { (b'[', b']') };
    out.push(open);
    for (i, key) in keys.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if shape == JsonRow::Object {
            out.extend_from_slice(Value::from(key.name).to_string().as_bytes());
            out.push(b':');
        }
        let text = match key.text(row, Style::Json) {
            None if values == JsonValues::Strings => Value::from(NULL).to_string(),
            None => "null".to_string(),
            Some(text) if values == JsonValues::Strings || csv::quoted(key.data_type) => {
                Value::from(text).to_string()
            }
            // JSON has no such numbers; ClickHouse writes null.
            Some(text) if text.ends_with("nan") || text.ends_with("inf") => "null".to_string(),
            Some(text) => text,
        };
        out.extend_from_slice(text.as_bytes());
    }
    out.push(close);
    out.push(b'\n');
}

/// Writes a line of a head.
pub(super) fn write_head<'a>(texts: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    out.extend_from_slice(Value::from_iter(texts).to_string().as_bytes());
    out.push(b'\n');
}

/// State of a stream between two pieces.
pub(super) struct Stream {
    shape: JsonRow,
    values: JsonValues,
    header: HeaderLine,
    order: Option<ColumnOrder>,
    brackets: Brackets,
}

/// Whether one array is around all rows.
#[derive(Clone, Copy, PartialEq)]
enum Brackets {
    Unknown,
    None,
    Open,
    Closed,
}

impl Stream {
    /// A stream at its beginning.
    pub fn new(shape: JsonRow, values: JsonValues, header: HeaderLine) -> Stream {
        Stream { shape, values, header, order: None, brackets: Brackets::Unknown }
    }

    /// Whether there is a bracket around the rows that is not closed yet.
    pub fn is_open(&self) -> bool {
        self.brackets == Brackets::Open
    }

    /// Reads the whole rows at the beginning of `bytes`, and says where they end.
    pub fn read(&mut self, bytes: &[u8], end: End, rows: &mut Rows) -> Result<usize, DictError> {
        let mut read = 0;
        // A number at the end may be cut off. No row ends with a number's characters.
        let whole = match end {
            End::Here => bytes.len(),
            End::Later => bytes.len() - bytes.iter().rev().take_while(|&&byte| is_of_number(byte)).count(),
        };
        loop {
            read += self.skip(&bytes[read..])?;
            if read == bytes.len() {
                if end == End::Here && self.brackets == Brackets::Open {
                    return Err(DictError::parse_text("The array of rows is not closed"));
                }
                return Ok(read);
            }
            self.check_begin(&bytes[read..])?;
            let mut values = Deserializer::from_slice(&bytes[read..whole]).into_iter::<Row<'_>>();
            match values.next() {
                Some(Ok(row)) => {
                    let length = values.byte_offset();
                    self.take(row, rows)?;
                    read += length;
                }
                Some(Err(e)) if e.is_eof() && end == End::Later => return Ok(read),
                Some(Err(e)) => return Err(malformed(&e)),
                None => return Ok(bytes.len()),
            }
        }
    }

    /// Skips white space, commas and brackets between rows; returns where the next row begins.
    fn skip(&mut self, bytes: &[u8]) -> Result<usize, DictError> {
        for (at, byte) in bytes.iter().enumerate() {
            match (byte, self.brackets) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => {}
                (_, Brackets::Closed) => {
                    return Err(DictError::parse_text("There is more behind the array of rows"));
                }
                (b'[', Brackets::Unknown) if self.shape == JsonRow::Object => self.brackets = Brackets::Open,
                (b']', Brackets::Open) => self.brackets = Brackets::Closed,
                (b',', Brackets::Open | Brackets::None) => {}
                _ => {
                    if self.brackets == Brackets::Unknown {
                        self.brackets = Brackets::None;
                    }
                    return Ok(at);
                }
            }
        }
        Ok(bytes.len())
    }

    /// Whether a row of the format begins here.
    fn check_begin(&self, bytes: &[u8]) -> Result<(), DictError> {
        let (open, wanted) = match self.shape {
            JsonRow::Object => (b'{', "object"),
            JsonRow::Array => (b'[', "array"),
        };
        if bytes.first() == Some(&open) {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
        Err(DictError::parse_text(format!("Expected an {wanted} of JSON, got {shown}")))
    }

    fn take(&mut self, row: Row<'_>, rows: &mut Rows) -> Result<(), DictError> {
        match row {
            Row::Object(members) => self.take_object(&members, rows),
            Row::Array(items) if !self.header.is_read() => {
                let mut texts = Vec::new();
                for item in items {
                    texts.push(unquoted(item.get())?.into_owned());
                }
                self.header.read(texts, &mut self.order, rows)?;
                Ok(())
            }
            Row::Array(items) => self.take_array(&items, rows),
        }
    }

    fn take_object(&self, members: &[(String, &RawValue)], rows: &mut Rows) -> Result<(), DictError> {
        for column in 0..rows.width() {
            // Of members with the same name the last counts.
            let called = members.iter().rev().find(|(name, _)| name == rows.name(column));
            let value = match called {
                Some((_, value)) => Some(*value),
                None => like(rows, column, members)?,
            };
            match value {
                None if column < rows.key_width() => {
                    return Err(rows.missing_key(column, members.iter().map(|(name, _)| name)));
                }
                None => rows.push_parsed(column, None)?,
                Some(value) => push(self.values, column, value, rows)?,
            }
        }
        rows.end_row()
    }

    fn take_array(&mut self, items: &[&RawValue], rows: &mut Rows) -> Result<(), DictError> {
        let order = self.order.get_or_insert_with(|| ColumnOrder::declared(rows));
        if items.len() != order.places.len() {
            let text = format!("Expected {} columns, got {}", order.places.len(), items.len());
            return Err(DictError::parse_text(text));
        }
        for (place, value) in order.places.iter().zip(items) {
            if let Some(column) = place {
                push(self.values, *column, value, rows)?;
            }
        }
        order.end_row(rows)
    }
}

/// The member whose name is the column's, ignoring case.
fn like<'v>(
    rows: &Rows,
    column: usize,
    members: &[(String, &'v RawValue)],
) -> Result<Option<&'v RawValue>, DictError> {
    for (name, value) in members.iter().rev() {
        if name.eq_ignore_ascii_case(rows.name(column)) && rows.column_called(name)? == Some(column) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Adds a value by its text, for a String whatever it is, as in ClickHouse.
fn push(values: JsonValues, column: usize, value: &RawValue, rows: &mut Rows) -> Result<(), DictError> {
    let is_text = rows.data_type(column).shape() == Shape::Text;
    match value.get() {
        "null" => rows.push_parsed(column, None),
        "true" if !is_text => rows.push_parsed(column, Some("1")),
        "false" if !is_text => rows.push_parsed(column, Some("0")),
        raw => {
            let text = unquoted(raw).map_err(|e| rows.within(column, e))?;
            let is_null = values == JsonValues::Strings && text == NULL;
            match (is_null, raw.starts_with('"')) {
                (true, _) => rows.push_parsed(column, None),
                (_, true) => rows.push_lenient(column, Some(&text)),
                // A number is not read like a text: as a time it is Unix seconds.
                (_, false) => rows.push_parsed(column, Some(&text)),
            }
        }
    }
}

/// The content of a string, or the text of another value.
fn unquoted(raw: &str) -> Result<Cow<'_, str>, DictError> {
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        None => Ok(Cow::Borrowed(raw)),
        Some(text) if !text.contains('\\') => Ok(Cow::Borrowed(text)),
        Some(_) => serde_json::from_str::<String>(raw).map(Cow::Owned).map_err(|e| malformed(&e)),
    }
}

fn malformed(error: &serde_json::Error) -> DictError {
    DictError::parse_text(format!("Malformed JSON: {error}"))
}

/// Whether numbers are written with this byte.
fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}
