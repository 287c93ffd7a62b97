//! Entries as callers put them and as they are stored, and the reasons for refusing one.

use crate::codec::StoredValue;
use crate::key::Key;

/// An entry to store.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its key; at most a block long, less some 30 bytes.
    pub key: Key<'a>,
    /// `None`: a negative entry, the source does not have this key.
    pub value: Option<&'a [u8]>,
    /// Unix time in seconds after which (`now > expires_at`) the entry is expired; 0: never.
    pub expires_at: u32,
}

/// An entry as it is stored.
#[derive(Clone, Copy)]
pub(crate) struct StoredEntry<'a> {
    pub key: Key<'a>,
    pub value: Option<StoredValue<'a>>,
    pub expires_at: u32,
}

impl StoredEntry<'_> {
    /// Bytes of key and stored value.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.key.bytes().len() + self.value.map_or(0, |value| value.bytes.len())
    }
}

/// The reason why an entry is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device is behind.
    #[error(
        "the device is behind with writing: wait for it, or have larger write buffers (write_buffer_size)"
    )]
    NoRoom,
    /// The entry is longer than a write buffer or half of the RAM, or its key is longer than a block.
    #[error(
        "the entry is longer than a write buffer (write_buffer_size) or half of the RAM (memory_bytes), or its key than a \
         block (block_size): have these larger"
    )]
    TooLong,
    /// A value that was made for the key at the same time may have been stored after the entry: the key was deleted.
    #[error("a value made for the key at the same time may have replaced the entry: the key is deleted")]
    Superseded,
}

/// Called for each entry that is not kept, with its place in the batch.
pub(crate) type OnRefusal<'a> = dyn FnMut(usize, Refusal) + 'a;
