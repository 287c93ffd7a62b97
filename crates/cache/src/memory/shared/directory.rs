//! The directory: 16 bytes for each unit of the file, with the owner and the valid length of a chunk that begins there.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | 0: no chunk begins here; else the chunk's number in its shard (56 bits, from 1 on) and the shard (8 bits) |
//! | 8..12 | bytes of the chunk that hold entries |
//! | 12..16 | units of the chunk |
//!
//! Each half is stored atomically. A chunk's second half is written before its first; entries are complete before the
//! valid length includes them.

use crate::limits::SHARDS;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const ENTRY_SIZE: usize = 16;

/// Greatest number of a chunk.
pub(crate) const SEQUENCE_MAX: u64 = (1 << 56) - 1;

/// A chunk's entry in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    pub shard: usize,
    /// The chunk's number in the shard: higher ones hold later entries.
    pub sequence: u64,
    pub len: u32,
    pub units: u32,
}

impl DirectoryEntry {
    /// Parses an entry; `None`: no chunk begins at this unit.
    pub fn parse(bytes: &[u8; ENTRY_SIZE]) -> Option<Self> {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let (owner, extent) = (u64_at(0), u64_at(8));
        let (shard, sequence) = ((owner & 0xFF) as usize, owner >> 8);
        let is_chunk = shard < SHARDS && (1..=SEQUENCE_MAX).contains(&sequence);
        is_chunk.then_some(Self { shard, sequence, len: extent as u32, units: (extent >> 32) as u32 })
    }
}

/// The two halves of a unit's entry in the mapped directory.
pub(crate) struct DirectorySlot<'a> {
    pub owner: &'a AtomicU64,
    pub extent: &'a AtomicU64,
}

impl DirectorySlot<'_> {
    /// Makes an empty chunk part of a shard; from here on a recovery finds it.
    pub fn begin(&self, shard: usize, sequence: u64, units: u32) {
        self.extent.store((u64::from(units) << 32).to_le(), Ordering::Release);
        self.renumber(shard, sequence);
    }

    /// Gives the chunk another number.
    pub fn renumber(&self, shard: usize, sequence: u64) {
        debug_assert!(sequence <= SEQUENCE_MAX);
        self.owner.store((sequence << 8 | shard as u64).to_le(), Ordering::Release);
    }

    /// Sets the valid length to `len`: all entries in it are complete.
    #[inline]
    pub fn commit(&self, len: u32, units: u32) {
        self.extent.store((u64::from(units) << 32 | u64::from(len)).to_le(), Ordering::Release);
    }

    /// Ends the chunk: no recovery finds it.
    pub fn end(&self) {
        self.owner.store(0, Ordering::Release);
    }
}
