//! Values in sequence, each of which says where it ends: the columns of a complex key, the items of an array or a map,
//! the elements of a tuple.

use super::cells::Raw;
use super::{is_utf8, put_varint, text_span};
use crate::types::{DataType, Shape};

/// Appends a value.
#[inline]
pub(crate) fn put(data_type: &DataType, value: &Raw<'_>, out: &mut Vec<u8>) {
    if data_type.is_nullable() {
        out.push(u8::from(matches!(value, Raw::Null)));
    }
    match value {
        Raw::Null => {}
        Raw::Fixed(raw) => out.extend_from_slice(raw),
        Raw::Bit(bit) => out.push(u8::from(*bit)),
        Raw::Items(elements) if data_type.shape() == Shape::Tuple => out.extend_from_slice(elements),
        Raw::Text(bytes) | Raw::Items(bytes) => {
            put_varint(out, bytes.len());
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads the value at `at`, and returns where it ends; `None`: it is malformed. Every value has a byte or more.
#[inline]
pub(crate) fn take<'a>(data_type: &DataType, bytes: &'a [u8], mut at: usize) -> Option<(Raw<'a>, usize)> {
    if data_type.is_nullable() {
        at += 1;
        match bytes.get(at - 1)? {
            0 => {}
            1 => return Some((Raw::Null, at)),
            _ => return None,
        }
    }
    Some(match data_type.shape() {
        Shape::Fixed(width) => (Raw::Fixed(bytes.get(at..at.checked_add(width)?)?), at + width),
        Shape::Bit => (Raw::Bit(*bytes.get(at)? != 0), at + 1),
        Shape::Text => {
            let (start, end) = text_span(bytes, at)?;
            is_utf8(&bytes[start..end]).then_some((Raw::Text(&bytes[start..end]), end))?
        }
        Shape::List => {
            let (start, end) = text_span(bytes, at)?;
            are_items(data_type.item(), &bytes[start..end])
                .then_some((Raw::Items(&bytes[start..end]), end))?
        }
        Shape::Tuple => {
            let mut end = at;
            for element in data_type.elements() {
                end = take(&element.data_type, bytes, end)?.1;
            }
            (Raw::Items(&bytes[at..end]), end)
        }
    })
}

/// Whether these bytes are items of a list, to the last one. How deep types nest, is bounded where they are read.
pub(crate) fn are_items(item: &DataType, bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        match take(item, bytes, at) {
            Some((_, next)) => at = next,
            None => return false,
        }
    }
    true
}

/// The items of a list whose bytes are valid.
pub(crate) fn items<'a>(item: &'a DataType, bytes: &'a [u8]) -> impl Iterator<Item = Raw<'a>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (value, next) = if at < bytes.len() { take(item, bytes, at)? } else { return None };
        at = next;
        Some(value)
    })
}

/// The elements of a tuple whose bytes are valid, each with its type.
pub(crate) fn elements<'a>(
    data_type: &'a DataType,
    bytes: &'a [u8],
) -> impl Iterator<Item = (&'a DataType, Raw<'a>)> {
    let mut at = 0;
    data_type.elements().iter().map_while(move |element| {
        let (value, next) = take(&element.data_type, bytes, at)?;
        at = next;
        Some((&element.data_type, value))
    })
}
