//! Keys and rows in one buffer.

use crate::error::{Code, DictError};

/// Encoded rows, each with its key and a place.
#[derive(Default)]
pub(crate) struct KeyedRows {
    /// Keys, each followed by its row.
    bytes: Vec<u8>,
    /// In the order in which they are shown.
    spans: Vec<Span>,
}

/// Where a key and its row are. Sized for tables of many short rows.
#[derive(Clone, Copy)]
pub(super) struct Span {
    start: u64,
    key_bytes: u32,
    row_bytes: u32,
}

const _: () = assert!(size_of::<Span>() == 16);

impl KeyedRows {
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn key(&self, place: u32) -> &[u8] {
        let span = self.spans[place as usize];
        &self.bytes[span.start as usize..][..span.key_bytes as usize]
    }

    pub fn row(&self, place: u32) -> &[u8] {
        let Span { start, key_bytes, row_bytes } = self.spans[place as usize];
        &self.bytes[start as usize + key_bytes as usize..][..row_bytes as usize]
    }

    pub fn row_mut(&mut self, place: u32) -> &mut [u8] {
        let Span { start, key_bytes, row_bytes } = self.spans[place as usize];
        &mut self.bytes[start as usize + key_bytes as usize..][..row_bytes as usize]
    }

    /// Adds a row, which `encode` appends, at the last place.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if the rows are more than 32 bits can count.
    pub fn push(&mut self, key: &[u8], encode: impl FnOnce(&mut Vec<u8>)) -> Result<u32, DictError> {
        let place = u32::try_from(self.spans.len()).map_err(|_| too_many())?;
        let span = self.append(key, encode)?;
        self.spans.push(span);
        Ok(place)
    }

    /// Replaces the row at `place`, which keeps its key; the old bytes are not freed.
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    pub fn replace(&mut self, place: u32, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), DictError> {
        let key = self.key(place).to_vec();
        self.spans[place as usize] = self.append(&key, encode)?;
        Ok(())
    }

    /// Sorts the rows by `by` of their keys.
    pub fn sort_by_key<K: Ord>(&mut self, by: impl Fn(&[u8]) -> K) {
        let bytes = &self.bytes;
        let key = |span: &Span| by(&bytes[span.start as usize..][..span.key_bytes as usize]);
        self.spans.sort_unstable_by_key(key);
    }

    /// Frees spare capacity, once all rows are added.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.spans.shrink_to_fit();
    }

    /// RAM of keys and rows.
    pub fn bytes_allocated(&self) -> usize {
        self.bytes.capacity()
    }

    /// RAM of their places.
    pub fn span_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
    }

    fn append(&mut self, key: &[u8], encode: impl FnOnce(&mut Vec<u8>)) -> Result<Span, DictError> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        encode(&mut self.bytes);
        let row_bytes = self.bytes.len() - start - key.len();
        match (u32::try_from(key.len()), u32::try_from(row_bytes)) {
            (Ok(key_bytes), Ok(row_bytes)) => Ok(Span { start: start as u64, key_bytes, row_bytes }),
            _ => Err(too_many()),
        }
    }
}

fn too_many() -> DictError {
    let what = "The rows of a dictionary that holds all of them are more, or longer, than 32 bits can count";
    DictError::new(Code::LimitExceeded, what)
}
