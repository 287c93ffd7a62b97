//! From bytes to text.

use super::Style;
use crate::row::cells::Raw;
use crate::row::value;
use crate::types::{DataType, Shape, escape, print_fixed};
use std::fmt::Write;

/// Appends the text of a value that is not NULL; its parts are written in `style`.
pub(crate) fn print(data_type: &DataType, value: &Raw<'_>, style: Style, out: &mut String) {
    match value {
        Raw::Null => {}
        Raw::Text(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
        Raw::Fixed(raw) => print_fixed(data_type, raw, out),
        Raw::Bit(bit) => print_fixed(data_type, &[u8::from(*bit)], out),
        Raw::Items(bytes) => match data_type.inner() {
            DataType::Map(entry) => map(entry, bytes, style, out),
            DataType::Tuple(_) => tuple(data_type, bytes, style, out),
            _ => {
                out.push('[');
                for (i, item) in value::items(data_type.item(), bytes).enumerate() {
                    separate(i, out);
                    part(data_type.item(), &item, style, out);
                }
                out.push(']');
            }
        },
    }
}

fn separate(place: usize, out: &mut String) {
    if place > 0 {
        out.push(',');
    }
}

/// `{'a':1}`, `map('a',1)`; in JSON every key is a string.
fn map(entry: &DataType, bytes: &[u8], style: Style, out: &mut String) {
    let (opening, between, closing) =
        if style == Style::Calls { ("map(", ',', ')') } else { ("{", ':', '}') };
    out.push_str(opening);
    for (i, value) in value::items(entry, bytes).enumerate() {
        separate(i, out);
        let Raw::Items(pair) = value else { unreachable!("an entry is a tuple") };
        for (place, (data_type, value)) in value::elements(entry, pair).enumerate() {
            match (place, style) {
                (0, Style::Json) => {
                    let mut key = String::new();
                    print(data_type, &value, Style::Quoted, &mut key);
                    write!(out, "{}", serde_json::Value::from(key)).expect("a String takes everything");
                }
                _ => part(data_type, &value, style, out),
            }
            if place == 0 {
                out.push(between);
            }
        }
    }
    out.push(closing);
}

/// `(1,'a')`, `tuple(1,'a')`; in JSON `{"x":1,"y":"a"}` if the elements have names, and an array otherwise.
fn tuple(data_type: &DataType, bytes: &[u8], style: Style, out: &mut String) {
    let named = data_type.elements().iter().all(|element| element.name.is_some());
    let (opening, closing) = match style {
        Style::Json if named => ("{", '}'),
        Style::Json => ("[", ']'),
        Style::Quoted => ("(", ')'),
        Style::Calls => ("tuple(", ')'),
    };
    out.push_str(opening);
    let elements = data_type.elements().iter().zip(value::elements(data_type, bytes));
    for (i, (element, (_, value))) in elements.enumerate() {
        separate(i, out);
        if let (Style::Json, Some(name)) = (style, &element.name) {
            write!(out, "{}:", serde_json::Value::from(name.as_str())).expect("a String takes everything");
        }
        part(&element.data_type, &value, style, out);
    }
    out.push(closing);
}

/// An item, an element, a key or a value.
fn part(data_type: &DataType, value: &Raw<'_>, style: Style, out: &mut String) {
    let null = if style == Style::Json { "null" } else { "NULL" };
    match value {
        Raw::Null => return out.push_str(null),
        Raw::Items(_) => return print(data_type, value, style, out),
        _ => {}
    }
    let mut text = String::new();
    print(data_type, value, style, &mut text);
    // In a statement a number of many digits would be a float.
    let is_long = style == Style::Calls && data_type.is_exact();
    let quoted = data_type.shape() == Shape::Text || data_type.inner().is_quoted() || is_long;
    let written = match (quoted, style) {
        (true, Style::Json) => write!(out, "{}", serde_json::Value::from(text)),
        (true, Style::Quoted | Style::Calls) => {
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
