//! Arrays as text: `[1,2]`, `['a','b\'c']`, `[[1],[]]`, `[NULL]`. What JSON writes is read, too.

use super::cells::Raw;
use super::{Cell, value};
use crate::error::DictError;
use crate::types::{DataType, Shape, escape, print_fixed, unescape};
use std::fmt::Write;

/// How strings are quoted and NULL is spelled inside an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Single quotes and backslashes, NULL.
    Quoted,
    /// Double quotes, null.
    Json,
}

/// Appends the text of a value that is not NULL, an array's in a style.
pub(crate) fn print(data_type: &DataType, value: &Raw<'_>, style: Style, out: &mut String) {
    match value {
        Raw::Null => {}
        Raw::Text(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
        Raw::Fixed(raw) => print_fixed(data_type, raw, out),
        Raw::Bit(bit) => print_fixed(data_type, &[u8::from(*bit)], out),
        Raw::List(bytes) => {
            out.push('[');
            for (i, item) in value::items(data_type.item(), bytes).enumerate() {
                if i > 0 {
                    out.push(',');
                }
                print_item(data_type.item(), &item, style, out);
            }
            out.push(']');
        }
    }
}

fn print_item(data_type: &DataType, value: &Raw<'_>, style: Style, out: &mut String) {
    let null = if style == Style::Json { "null" } else { "NULL" };
    if let Raw::Null = value {
        return out.push_str(null);
    }
    if let Raw::List(_) = value {
        return print(data_type, value, style, out);
    }
    let mut text = String::new();
    print(data_type, value, style, &mut text);
    let quoted = data_type.shape() == Shape::Text || data_type.inner().is_quoted();
    let written = match (quoted, style) {
        (true, Style::Json) => write!(out, "{}", serde_json::Value::from(text)),
        (true, Style::Quoted) => {
            let mut escaped = Vec::with_capacity(text.len());
            escape(text.as_bytes(), &mut escaped);
            write!(out, "'{}'", String::from_utf8_lossy(&escaped))
        }
        // JSON has no such numbers; ClickHouse writes null.
        (false, Style::Json) if text.ends_with("nan") || text.ends_with("inf") => out.write_str(null),
        (false, _) => out.write_str(&text),
    };
    written.expect("a String takes everything");
}

/// The items of an array of this type, as they lie in a row.
///
/// # Errors
/// `CANNOT_PARSE_TEXT`.
pub(crate) fn parse(data_type: &DataType, text: &str) -> Result<Vec<u8>, DictError> {
    let mut reader = Reader { text, at: 0 };
    let mut out = Vec::new();
    reader.array(data_type, &mut out)?;
    reader.skip_blanks();
    match reader.at == text.len() {
        true => Ok(out),
        false => Err(reader.expected("the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> DictError {
        let shown: String = self.text.chars().take(64).collect();
        DictError::parse_text(format!(
            "Cannot parse '{shown}' as an array: expected {what} at byte {}",
            self.at
        ))
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let taken = self.rest().as_bytes().first() == Some(&byte);
        self.at += usize::from(taken);
        taken
    }

    fn array(&mut self, data_type: &DataType, out: &mut Vec<u8>) -> Result<(), DictError> {
        if !self.take(b'[') {
            return Err(self.expected("'['"));
        }
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.item(data_type.item(), out)?;
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn item(&mut self, data_type: &DataType, out: &mut Vec<u8>) -> Result<(), DictError> {
        self.skip_blanks();
        if data_type.shape() == Shape::List {
            let mut inner = Vec::new();
            self.array(data_type, &mut inner)?;
            value::put(data_type, &Raw::List(&inner), out);
            return Ok(());
        }
        let cell = match self.rest().as_bytes().first() {
            Some(quote @ (b'\'' | b'"')) => {
                let text = self.quoted(*quote)?;
                Cell::parse(data_type, &text)?
            }
            _ => {
                let length = self.rest().find([',', ']', ' ']).unwrap_or(self.rest().len());
                let text = self.text[self.at..self.at + length].trim_end();
                self.at += length;
                match text {
                    "NULL" | "null" if data_type.is_nullable() => Cell::Null,
                    _ if data_type.shape() == Shape::Text => {
                        return Err(self.expected("a string in quotes before"));
                    }
                    text => Cell::parse(data_type, text)?,
                }
            }
        };
        cell.put(data_type, out);
        Ok(())
    }

    /// What is between this quote and the next one that is not escaped.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(data_type: &str, text: &str, style: Style) -> Result<String, DictError> {
        let data_type = DataType::parse(data_type).unwrap();
        let bytes = parse(&data_type, text)?;
        assert!(value::are_items(data_type.item(), &bytes));
        let mut out = String::new();
        print(&data_type, &Raw::List(&bytes), style, &mut out);
        Ok(out)
    }

    #[test]
    fn arrays_go_there_and_back() {
        for (data_type, text, json) in [
            ("Array(UInt8)", "[]", "[]"),
            ("Array(UInt8)", "[1,2,255]", "[1,2,255]"),
            ("Array(String)", r"['a','it\'s','\\','\t','é','']", r#"["a","it's","\\","\t","é",""]"#),
            ("Array(Nullable(String))", "[NULL,'NULL']", r#"[null,"NULL"]"#),
            ("Array(Array(Nullable(Int16)))", "[[],[NULL,-1],[3]]", "[[],[null,-1],[3]]"),
            ("Array(Date)", "['2024-02-29']", r#"["2024-02-29"]"#),
            ("Array(DateTime64(2, 'UTC'))", "['2024-02-29 01:02:03.40']", r#"["2024-02-29 01:02:03.40"]"#),
            ("Array(IPv4)", "['1.2.3.4']", r#"["1.2.3.4"]"#),
            ("Array(Bool)", "[true,false]", "[true,false]"),
            ("Array(Float64)", "[1.5,nan]", "[1.5,null]"),
            ("Array(Decimal(60, 2))", "[1.25]", "[1.25]"),
        ] {
            assert_eq!(printed(data_type, text, Style::Quoted).unwrap(), text, "{data_type}");
            assert_eq!(printed(data_type, text, Style::Json).unwrap(), json, "{data_type}");
            if !json.contains("null]") {
                assert_eq!(printed(data_type, json, Style::Quoted).unwrap(), text, "{data_type}");
            }
        }
        assert_eq!(printed("Array(UInt8)", " [ 1 , 2 ] ", Style::Quoted).unwrap(), "[1,2]");
        assert_eq!(printed("Array(String)", r#"["\u00e9"]"#, Style::Quoted).unwrap(), "['é']");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_array_or_refused(text in r#"[\[\]'",\\NULx0-9 é]{0,24}"#) {
            for data_type in ["Array(Nullable(String))", "Array(Array(UInt8))"] {
                if let Ok(text) = printed(data_type, &text, Style::Quoted) {
                    proptest::prop_assert_eq!(printed(data_type, &text, Style::Quoted).unwrap(), text);
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_no_array() {
        for (data_type, text) in [
            ("Array(UInt8)", ""),
            ("Array(UInt8)", "["),
            ("Array(UInt8)", "[1"),
            ("Array(UInt8)", "[1,]"),
            ("Array(UInt8)", "[,1]"),
            ("Array(UInt8)", "[1] 2"),
            ("Array(UInt8)", "[256]"),
            ("Array(UInt8)", "[NULL]"),
            ("Array(UInt8)", "[[1]]"),
            ("Array(Array(UInt8))", "[1]"),
            ("Array(String)", "[a]"),
            ("Array(String)", "['a"),
            ("Array(String)", r"['a\"),
            ("Array(String)", r#"["\u00"]"#),
            ("Array(String)", r"['\xff']"),
        ] {
            assert_eq!(printed(data_type, text, Style::Quoted).unwrap_err().code(), 6, "{data_type} {text}");
        }
    }
}
