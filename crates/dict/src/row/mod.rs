//! Rows between Arrow and the cache: inside, a row is bytes.
//!
//! ```text
//! row   = null bitmap (a bit for each Nullable attribute, in order; absent if there is none)
//!         fixed-width attributes, raw little-endian, in order (zeros where NULL)
//!         strings, arrays and maps, in order: varint length, bytes (length 0 where NULL)
//! key   = simple: little-endian, without trailing zero bytes, but one byte at least
//!       | complex: for each column: [1 if NULL, else 0; only if Nullable] raw bytes or varint length, bytes
//! array = its items as the columns of a complex key
//! map   = the key and the value of each entry, in the same way
//! tuple = its elements, in the same way
//! ```

mod cell;
mod cells;
mod column;
mod composite;
mod decode;
mod encode;
mod from_arrow;
mod key;
mod list;
mod range;
mod value;

pub(crate) use cell::Cell;
pub(crate) use cells::{Cells, Raw};
pub(crate) use column::Column;
pub(crate) use decode::{BadRow, Decoder};
pub(crate) use encode::RowFormat;
pub(crate) use key::{KeyBatch, KeyFormat, key_number, number_key};
pub(crate) use list::{Style, print};
pub(crate) use value::{are_items, elements, items, put};

/// Counts changes of the layout above, and of how lifetimes follow from keys: files of another version are not read.
pub(crate) const ROW_FORMAT_VERSION: u64 = 3;

// Rows and Arrow buffers are copied into each other, and rows on disk are little-endian.
const _: () = assert!(cfg!(target_endian = "little"), "Granary's rows are little-endian");

/// Appends bytes, mostly few: these take two loads and a store, and no call.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let eight = |word: &[u8; 8]| u128::from(u64::from_le_bytes(*word));
    let four = |word: &[u8; 4]| u128::from(u32::from_le_bytes(*word));
    let ends = match bytes.len() {
        8..=16 => bytes.first_chunk().map(eight).zip(bytes.last_chunk().map(eight)).zip(Some(8)),
        4..8 => bytes.first_chunk().map(four).zip(bytes.last_chunk().map(four)).zip(Some(4)),
        _ => None,
    };
    let Some(((first, last), width)) = ends else { return out.extend_from_slice(bytes) };
    // Where the two overlap, their bits are equal.
    let word = first | last << (8 * (bytes.len() - width));
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(out.len() - (size_of_val(&word) - bytes.len()));
}

/// Appends a length, 7 bits a byte, low bits first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes `length, bytes` off at `at`: where the bytes start and end; `None` if they do not fit into `row`.
#[inline]
pub(crate) fn text_span(row: &[u8], at: usize) -> Option<(usize, usize)> {
    if let Some(&length @ 0..0x80) = row.get(at) {
        let end = at + 1 + usize::from(length);
        return (end <= row.len()).then_some((at + 1, end));
    }
    let mut length = 0usize;
    for (i, &byte) in row.get(at..)?.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            let start = at + i + 1;
            let end = start.checked_add(length)?;
            return (end <= row.len()).then_some((start, end));
        }
    }
    None
}

/// Whether these bytes are text; quick for the few ASCII characters that most texts have.
#[inline]
pub(crate) fn is_utf8(text: &[u8]) -> bool {
    is_ascii(text) || std::str::from_utf8(text).is_ok()
}

#[inline]
fn is_ascii(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk::<8>() else {
        return text.iter().fold(0, |all, byte| all | byte) < 0x80;
    };
    let (words, _) = text.as_chunks::<8>();
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    words.iter().fold(word(last), |all, bytes| all | word(bytes)) & 0x8080_8080_8080_8080 == 0
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
