//! From text to bytes. Depth is bounded by the types, which say what is to come.

use crate::error::DictError;
use crate::row::cells::Raw;
use crate::row::{Cell, value};
use crate::types::{DataType, Element, Shape, unescape};

/// What NULL is where the type of an item, an element, a key or a value has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    Refused,
    /// The default of that type.
    Defaults,
}

/// The items of an array or a map, or the elements of a tuple, as they lie in a row.
///
/// # Errors
/// `CANNOT_PARSE_TEXT`.
pub(crate) fn parse(data_type: &DataType, text: &str, nulls: Nulls) -> Result<Vec<u8>, DictError> {
    let mut reader = CompositeReader { data_type, text, at: 0, nulls };
    let mut out = Vec::new();
    reader.composite(data_type, &mut out)?;
    reader.skip_blanks();
    match reader.at == text.len() {
        true => Ok(out),
        false => Err(reader.expected("the end")),
    }
}

struct CompositeReader<'a> {
    /// The type of the whole text.
    data_type: &'a DataType,
    text: &'a str,
    at: usize,
    nulls: Nulls,
}

/// The characters that end a value without quotes.
const ENDS: [char; 5] = [',', ']', '}', ')', ' '];
const ENDS_OF_KEY: [char; 6] = [',', ']', '}', ')', ' ', ':'];

impl CompositeReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> DictError {
        let shown: String = self.text.chars().take(64).collect();
        let data_type = self.data_type.inner();
        DictError::parse_text(format!(
            "Cannot parse '{shown}' as {data_type}: expected {what} at byte {}",
            self.at
        ))
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.rest().bytes().next()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn demand(&mut self, byte: u8, what: &str) -> Result<(), DictError> {
        if self.take(byte) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn composite(&mut self, data_type: &DataType, out: &mut Vec<u8>) -> Result<(), DictError> {
        match data_type.inner() {
            DataType::Map(entry) => self.map(entry.elements(), out),
            DataType::Tuple(elements) => self.tuple(elements, out),
            _ => {
                self.demand(b'[', "'['")?;
                self.until(b']', "',' or ']'", |reader| reader.part(data_type.item(), &ENDS, out))
            }
        }
    }

    /// Reads items between commas, none or more, up to `closing`.
    fn until(
        &mut self,
        closing: u8,
        expected: &str,
        mut one: impl FnMut(&mut Self) -> Result<(), DictError>,
    ) -> Result<(), DictError> {
        if self.take(closing) {
            return Ok(());
        }
        loop {
            one(self)?;
            if self.take(closing) {
                return Ok(());
            }
            self.demand(b',', expected)?;
        }
    }

    fn map(&mut self, entry: &[Element], out: &mut Vec<u8>) -> Result<(), DictError> {
        let [key, value] = entry else { unreachable!("an entry of a map is a key and a value") };
        self.demand(b'{', "'{'")?;
        self.until(b'}', "',' or '}'", |reader| {
            reader.key(&key.data_type, out)?;
            reader.demand(b':', "':'")?;
            reader.part(&value.data_type, &ENDS, out)
        })
    }

    /// A map's key, which JSON writes as a string, even if it is composite.
    fn key(&mut self, data_type: &DataType, out: &mut Vec<u8>) -> Result<(), DictError> {
        if !data_type.is_composite() || self.peek() != Some(b'"') {
            return self.part(data_type, &ENDS_OF_KEY, out);
        }
        let text = self.quoted(b'"')?;
        value::put(data_type, &Raw::Items(&parse(data_type, &text, self.nulls)?), out);
        Ok(())
    }

    /// `(1,'a')`, and what JSON has for it: `[1,"a"]`, `{"x":1,"y":"a"}`.
    fn tuple(&mut self, elements: &[Element], out: &mut Vec<u8>) -> Result<(), DictError> {
        let closing = match self.peek() {
            Some(b'(') => b')',
            Some(b'[') => b']',
            Some(b'{') if elements.iter().all(|element| element.name.is_some()) => {
                return self.named(elements, out);
            }
            _ => return Err(self.expected("'('")),
        };
        self.at += 1;
        for (i, element) in elements.iter().enumerate() {
            if i > 0 {
                self.demand(b',', "','")?;
            }
            self.part(&element.data_type, &ENDS, out)?;
        }
        // A single element may be followed by a comma.
        if elements.len() == 1 {
            self.take(b',');
        }
        self.demand(closing, if closing == b')' { "')'" } else { "']'" })
    }

    /// Reads elements by their names, in any order: a missing one has its default, an unknown one is skipped.
    fn named(&mut self, elements: &[Element], out: &mut Vec<u8>) -> Result<(), DictError> {
        let mut found: Vec<Option<Vec<u8>>> = vec![None; elements.len()];
        self.at += 1;
        self.until(b'}', "',' or '}'", |reader| {
            let name = match reader.peek() {
                Some(quote @ (b'"' | b'\'')) => reader.quoted(quote)?,
                _ => return Err(reader.expected("a name in quotes")),
            };
            reader.demand(b':', "':'")?;
            let Some(place) = elements.iter().position(|element| element.name.as_ref() == Some(&name)) else {
                return reader.skip();
            };
            let mut value = Vec::new();
            reader.part(&elements[place].data_type, &ENDS, &mut value)?;
            found[place] = Some(value);
            Ok(())
        })?;
        for (element, found) in elements.iter().zip(found) {
            match found {
                Some(value) => out.extend_from_slice(&value),
                None => Cell::of_type(&element.data_type).put(&element.data_type, out),
            }
        }
        Ok(())
    }

    /// Skips a value of any type.
    fn skip(&mut self) -> Result<(), DictError> {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b',' | b']' | b'}' | b')' if depth == 0 => break,
                b'"' | b'\'' => {
                    self.quoted(byte)?;
                    continue;
                }
                b'[' | b'{' | b'(' => depth += 1,
                b']' | b'}' | b')' => depth -= 1,
                _ => {}
            }
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        }
        Ok(())
    }

    /// An item, an element, a key or a value.
    fn part(&mut self, data_type: &DataType, ends: &[char], out: &mut Vec<u8>) -> Result<(), DictError> {
        if self.takes_null(data_type, ends) {
            Cell::of_type(data_type).put(data_type, out);
            return Ok(());
        }
        if data_type.is_composite() {
            let mut inner = Vec::new();
            self.composite(data_type, &mut inner)?;
            value::put(data_type, &Raw::Items(&inner), out);
            return Ok(());
        }
        let cell = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => {
                let text = self.quoted(quote)?;
                Cell::of_written(data_type, &text)?
            }
            _ => {
                let length = self.rest().find(ends).unwrap_or(self.rest().len());
                match self.text[self.at..self.at + length].trim_end() {
                    text if data_type.shape() == Shape::Text && !is_json(text) => {
                        return Err(self.expected("a string in quotes"));
                    }
                    text => {
                        self.at += length;
                        Cell::parse(data_type, text)?
                    }
                }
            }
        };
        cell.put(data_type, out);
        Ok(())
    }

    /// Skips a NULL, if one stands here and the type has NULL, or has a default for it.
    fn takes_null(&mut self, data_type: &DataType, ends: &[char]) -> bool {
        const NULL: [&str; 2] = ["NULL", "null"];
        self.skip_blanks();
        let behind = NULL.iter().find_map(|null| self.rest().strip_prefix(null));
        let is_null = behind.is_some_and(|behind| {
            behind.is_empty() || behind.starts_with(ends) || behind.starts_with(char::is_whitespace)
        });
        let is_taken = is_null && (data_type.is_nullable() || self.nulls == Nulls::Defaults);
        self.at += if is_taken { NULL[0].len() } else { 0 };
        is_taken
    }

    /// The text between this quote and the next one that is not escaped.
    fn quoted(&mut self, quote: u8) -> Result<String, DictError> {
        let bytes = self.rest().as_bytes();
        let mut end = 1;
        while let Some(&byte) = bytes.get(end).filter(|&&byte| byte != quote) {
            end += if byte == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return Err(self.expected("a quote that ends this string"));
        }
        let unquoted = match quote {
            b'"' => serde_json::from_slice(&bytes[..=end]).ok(),
            _ => {
                let mut text = Vec::new();
                unescape(&bytes[1..end], &mut text);
                String::from_utf8(text).ok()
            }
        };
        let unquoted = unquoted.ok_or_else(|| self.expected("a string of UTF-8"))?;
        self.at += end + 1;
        Ok(unquoted)
    }
}

/// Whether this is a number or a boolean of JSON, which ClickHouse reads as a string where one is wanted.
fn is_json(text: &str) -> bool {
    matches!(text, "true" | "false")
        || (text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && text.parse::<f64>().is_ok())
}
