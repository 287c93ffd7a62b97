//! Rows as JSON. JSONEachRow: an object for each, columns by name, in any order; an attribute that is missing is NULL
//! (so the default). JSONCompactEachRow: an array for each, columns in their order or in that of a head. Lines of them,
//! or, of objects, one array around all. With Strings in the format's name every value is written as a string.

use super::json_value::Json;
use super::names::{JsonRow, JsonValues};
use super::{End, KeyCells, Order, Rows, csv};
use crate::error::DictError;
use crate::row::Style;
use serde_json::{Deserializer, Number, Value};

/// NULL where every value is a string.
const NULL: &str = "ᴺᵁᴸᴸ";

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

/// A line of a head.
pub(super) fn write_head<'a>(texts: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    out.extend_from_slice(Value::from_iter(texts).to_string().as_bytes());
    out.push(b'\n');
}

/// What is known of a stream between two pieces.
pub(super) struct Stream {
    shape: JsonRow,
    values: JsonValues,
    /// Lines of a head that are still to come.
    head: usize,
    order: Option<Order>,
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
    /// At the beginning of a stream with so many lines before its rows.
    pub fn new(shape: JsonRow, values: JsonValues, head: usize) -> Stream {
        Stream { shape, values, head, order: None, brackets: Brackets::Unknown }
    }

    /// Reads the whole rows at the beginning of `bytes`, and says where they end.
    pub fn read(&mut self, bytes: &[u8], end: End, rows: &mut Rows) -> Result<usize, DictError> {
        let mut read = 0;
        loop {
            read += self.skip(&bytes[read..])?;
            if read == bytes.len() {
                if end == End::Here && self.brackets == Brackets::Open {
                    return Err(DictError::parse_text("The array of rows is not closed"));
                }
                return Ok(read);
            }
            let mut values = Deserializer::from_slice(&bytes[read..]).into_iter::<Json>();
            match values.next() {
                Some(Ok(value)) => {
                    let length = values.byte_offset();
                    self.take(value, rows)?;
                    read += length;
                }
                Some(Err(e)) if e.is_eof() && end == End::Later => return Ok(read),
                Some(Err(e)) => return Err(DictError::parse_text(format!("Malformed JSON: {e}"))),
                None => return Ok(bytes.len()),
            }
        }
    }

    /// What stands between rows: white space, commas, and the brackets around all. Where the next row begins.
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

    fn take(&mut self, value: Json, rows: &mut Rows) -> Result<(), DictError> {
        match (self.shape, value) {
            (JsonRow::Object, Json::Object(members)) => self.take_object(&members, rows),
            (JsonRow::Array, Json::Array(items)) if self.head > 0 => {
                // The names come first; of the types nobody takes notice.
                if self.order.is_none() {
                    let name = |item: &Json| match item {
                        Json::Text(text) => text.clone(),
                        other => other.to_string(),
                    };
                    let names: Vec<String> = items.iter().map(name).collect();
                    self.order = Some(Order::of_names(&names, rows)?);
                }
                self.head -= 1;
                Ok(())
            }
            (JsonRow::Array, Json::Array(items)) => self.take_array(&items, rows),
            (shape, other) => {
                let shown: String = other.to_string().chars().take(64).collect();
                let wanted = if shape == JsonRow::Object { "object" } else { "array" };
                Err(DictError::parse_text(format!("Expected an {wanted} of JSON, got {shown}")))
            }
        }
    }

    fn take_object(&self, members: &[(String, Json)], rows: &mut Rows) -> Result<(), DictError> {
        for column in 0..rows.width() {
            // Of members with one name the last counts.
            let value =
                members.iter().rev().find(|(name, _)| name == rows.name(column)).map(|(_, value)| value);
            match value {
                None if column < rows.key_width() => {
                    return Err(rows.missing_key(column, members.iter().map(|(name, _)| name)));
                }
                None => rows.push_parsed(column, None)?,
                Some(value) => push(self.values, column, value, rows)?,
            }
        }
        rows.end_row();
        Ok(())
    }

    fn take_array(&mut self, items: &[Json], rows: &mut Rows) -> Result<(), DictError> {
        let order = self.order.get_or_insert_with(|| Order::declared(rows));
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

fn push(values: JsonValues, column: usize, value: &Json, rows: &mut Rows) -> Result<(), DictError> {
    match value {
        Json::Null => rows.push_parsed(column, None),
        Json::Text(text) if values == JsonValues::Strings && text == NULL => rows.push_parsed(column, None),
        Json::Text(text) => rows.push_parsed(column, Some(text)),
        Json::Bool(flag) => rows.push_parsed(column, Some(if *flag { "1" } else { "0" })),
        value if rows.data_type(column).is_exact() && value.has_number(is_rounded) => {
            let text = format!("{value} may have lost digits as a JSON number: put it in quotes");
            Err(rows.within(column, DictError::parse_text(text)))
        }
        other => rows.push_parsed(column, Some(&other.to_string())),
    }
}

/// Digits that every float of 64 bits keeps.
const FLOAT_DIGITS: usize = 15;

/// Whether the reader may have made another number of one with more digits.
fn is_rounded(number: &Number) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    number.is_f64() && digits(&number.to_string()) > FLOAT_DIGITS
}
