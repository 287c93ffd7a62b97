//! A chunk: consecutive entries, in private memory or in the file that outlives the process.

use super::entry::{self, FLAGS_AT, RECORD_AT};
use super::shared::{Arena, UnitRange, store_released};
use crate::entry::StoredEntry;
use crate::record::HeaderBytes;
use std::ops::Deref;
use std::sync::Arc;

enum Bytes {
    Own(Box<[u8]>),
    Shared(UnitRange),
}

/// A chunk. In a shared one an entry is valid once [`append`](Self::append) has written it completely.
pub(super) struct Chunk {
    bytes: Bytes,
    len: usize,
}

impl Deref for Chunk {
    type Target = [u8];

    /// The entries.
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Own(bytes) => &bytes[..self.len],
            Bytes::Shared(extent) => &extent[..self.len],
        }
    }
}

impl Chunk {
    /// An empty chunk in the arena, as number `sequence` of a shard, or in private memory if the arena has no room.
    pub fn new(arena: Option<&Arc<Arena>>, bytes: usize, shard: usize, sequence: u64) -> Self {
        let Some(extent) = arena.and_then(|arena| arena.take(bytes)) else {
            return Self { bytes: Bytes::Own(vec![0; bytes].into()), len: 0 };
        };
        let mut chunk = Self { bytes: Bytes::Shared(extent), len: 0 };
        chunk.reuse(shard, sequence);
        chunk
    }

    /// A chunk of the last process, whose first `len` bytes are valid.
    pub fn found(extent: UnitRange, len: usize) -> Self {
        Self { bytes: Bytes::Shared(extent), len }
    }

    /// Whether the chunk lies in the arena.
    pub fn is_shared(&self) -> bool {
        matches!(self.bytes, Bytes::Shared(_))
    }

    pub fn capacity(&self) -> usize {
        match &self.bytes {
            Bytes::Own(bytes) => bytes.len(),
            Bytes::Shared(extent) => extent.len(),
        }
    }

    #[inline]
    fn all(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(extent) => extent,
        }
    }

    /// Reuses an empty chunk under another number.
    pub fn reuse(&mut self, shard: usize, sequence: u64) {
        if let Bytes::Shared(extent) = &self.bytes {
            extent.arena().slot(extent).begin(shard, sequence, extent.units());
        }
        self.len = 0;
    }

    /// Gives the chunk another number in the order of the shard's chunks.
    pub fn renumber(&mut self, shard: usize, sequence: u64) {
        if let Bytes::Shared(extent) = &self.bytes {
            extent.arena().slot(extent).renumber(shard, sequence);
        }
    }

    /// Removes all entries: no recovery finds them. The chunk keeps its memory.
    pub fn empty(&mut self) {
        if let Bytes::Shared(extent) = &self.bytes {
            extent.arena().slot(extent).end();
        }
        self.len = 0;
    }

    /// Ends the chunk and gives its memory back.
    pub fn release(self) {
        if let Bytes::Shared(extent) = self.bytes {
            let arena = Arc::clone(extent.arena());
            arena.give_back(extent);
        }
    }

    /// Appends an entry for which there is room.
    pub fn append(&mut self, header: &HeaderBytes, entry: &StoredEntry<'_>, flags: u8, counts: u8) {
        let StoredEntry { key, value, .. } = *entry;
        let sum = match &self.bytes {
            Bytes::Own(_) => 0,
            Bytes::Shared(extent) => entry::checksum(entry, extent.arena().checksum_seed()),
        };
        let head = entry::head(key.hash(), flags, counts, sum);
        let mut at = self.len;
        let all = self.all();
        for part in [&head[..], header.as_slice(), key.bytes(), value.map_or(&[], |value| value.bytes)] {
            all[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.len = at;
        if let Bytes::Shared(extent) = &mut self.bytes {
            // From here on the entry is valid: it was written completely before.
            extent.arena().slot(extent).commit(at as u32, extent.units());
            extent.arena().before_store();
        }
    }

    /// The entry at `at` and the bytes after it, split into the head before the record and the rest. In the head only
    /// what does not affect the entry's validity may be changed.
    #[inline]
    pub fn head_and_record(&mut self, at: usize) -> (&mut [u8], &[u8]) {
        let len = self.len;
        let (head, record) = self.all()[at..len].split_at_mut(RECORD_AT);
        (head, record)
    }

    /// Changes the flags of the entry at `at`: a recovery sees the old or the new flags and, with the new ones,
    /// everything written before.
    #[inline]
    pub fn set_flags(&mut self, at: usize, flags: u8) {
        if let Bytes::Shared(extent) = &self.bytes {
            extent.arena().before_store();
        }
        store_released(&mut self.all()[at + FLAGS_AT], flags);
    }

    /// Drops the entries from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if let Bytes::Shared(extent) = &self.bytes {
            extent.arena().slot(extent).commit(self.len as u32, extent.units());
        }
    }
}
