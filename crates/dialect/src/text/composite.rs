//! Formats arrays, maps and tuples.

use super::column::{Cells, Column};
use super::escape;
use super::value::{Style, write_cell};

pub fn array(items: &Column, range: std::ops::Range<usize>, style: Style, out: &mut Vec<u8>) {
    if style == Style::Csv {
        return one_field(out, |text| array(items, range, Style::Nested, text));
    }
    let inner = if style.is_json() { style } else { Style::Nested };
    // ClickHouse breaks lines inside JSON arrays only when their items are tuples or maps.
    let lines = match (style, &items.cells) {
        (Style::JsonIndented(depth), Cells::Tuple { .. } | Cells::Map { .. }) => Some(depth),
        _ => None,
    };
    list(range.map(|row| (items, row)), (b'[', b']'), inner, lines, None, out);
}

pub fn tuple(names: Option<&[String]>, items: &[Column], row: usize, style: Style, out: &mut Vec<u8>) {
    let cells = items.iter().map(|item| (item, row));
    match style {
        Style::Csv => {
            for (i, (item, row)) in cells.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_cell(item, row, style, out);
            }
        }
        Style::Json | Style::JsonIndented(_) => {
            let lines = if let Style::JsonIndented(depth) = style { Some(depth) } else { None };
            let brackets = if names.is_some() { (b'{', b'}') } else { (b'[', b']') };
            list(cells, brackets, style, lines, names, out);
        }
        _ => list(cells, (b'(', b')'), Style::Nested, None, None, out),
    }
}

/// `{'a':1}`; in JSON every key is a string.
pub fn map(keys: &Column, values: &Column, range: std::ops::Range<usize>, style: Style, out: &mut Vec<u8>) {
    if style == Style::Csv {
        return one_field(out, |text| map(keys, values, range, Style::Nested, text));
    }
    let lines =
        if let Style::JsonIndented(depth) = style { Some(depth) } else { None }.filter(|_| !range.is_empty());
    let inner = match lines {
        Some(depth) => Style::JsonIndented(depth + 1),
        None if style.is_json() => style,
        None => Style::Nested,
    };
    out.push(b'{');
    for (i, row) in range.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if let Some(depth) = lines {
            new_line(depth + 1, out);
        }
        if style.is_json() {
            let mut key = Vec::new();
            write_cell(keys, row, Style::Raw, &mut key);
            escape::json(&key, out);
        } else {
            write_cell(keys, row, Style::Nested, out);
        }
        out.extend_from_slice(if lines.is_some() { b": " } else { b":" });
        write_cell(values, row, inner, out);
    }
    if let Some(depth) = lines {
        new_line(depth, out);
    }
    out.push(b'}');
}

/// In CSV it is one field, quoted like a text.
fn one_field(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut text = Vec::new();
    write(&mut text);
    escape::csv(&text, out);
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b'\t', depth));
}

fn list<'a>(
    cells: impl Iterator<Item = (&'a Column, usize)>,
    brackets: (u8, u8),
    style: Style,
    lines: Option<usize>,
    names: Option<&[String]>,
    out: &mut Vec<u8>,
) {
    out.push(brackets.0);
    for (i, (column, row)) in cells.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if let Some(depth) = lines {
            new_line(depth + 1, out);
        }
        if let Some(name) = names.and_then(|names| names.get(i)) {
            escape::json(name.as_bytes(), out);
            out.extend_from_slice(if lines.is_some() { b": " } else { b":" });
        }
        let inner = match lines {
            Some(depth) => Style::JsonIndented(depth + 1),
            None => style,
        };
        write_cell(column, row, inner, out);
    }
    if let Some(depth) = lines {
        new_line(depth, out);
    }
    out.push(brackets.1);
}
