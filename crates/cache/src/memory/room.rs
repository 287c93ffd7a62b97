//! Room for another entry: within the budget, and in a chunk.

use super::chunk::Chunk;
use super::clock::{Eviction, Protected};
use super::entry::RECORD_AT;
use super::pool::{CHUNKS_MAX, CHUNKS_OF_MARGIN};
use super::{EntryAt, EntryState, Memory, Role};
use crate::key::Key;
use crate::limits::{MEMORY_CHUNK_BYTES_MAX, SHARED_MEMORY_PAGE_BYTES};

/// A shard's next chunk has at most this part of its bytes, but a page.
const CHUNKS_OF_GROWING_SHARD: usize = 16;

impl Memory {
    /// The most bytes of an entry.
    pub(super) fn entry_bytes_max(&self, state: EntryState) -> u64 {
        match (state, self.role) {
            (EntryState::Clean, Role::InFrontOfFlash) => self.pool.share(),
            _ => self.pool.entry_bytes_max(),
        }
    }

    /// Makes room for an entry of `len` bytes of `key`, first by removing the key's older entry.
    pub(super) fn make_room(&mut self, key: Key<'_>, len: usize, now: u32) {
        self.grow_table();
        if !self.lacks_room(len) {
            return;
        }
        self.remove(key);
        // Clean entries leave without asking the policy.
        self.evict_while(|this| this.lacks_room(len), Protected::Fresh, now, |_| Eviction::Keep);
        // If other shards have entries that are not fresh, the caller evicts those.
        self.evict_while(Self::exceeds_own_bounds, Protected::Nothing, now, |_| Eviction::Keep);
    }

    /// Whether another entry of `len` bytes would exceed the budget.
    fn lacks_room(&self, len: usize) -> bool {
        let more = if self.needs_chunk(len) { self.next_chunk_bytes().max(len) } else { 0 } as u64;
        let exceeds = self.bytes_allocated() as u64 + more > self.pool.share()
            && match self.role {
                Role::InFrontOfFlash => true,
                Role::Alone => {
                    self.pool.used() - self.counted_bytes as u64 + self.bytes_allocated() as u64 + more
                        > self.pool.bytes()
                }
            };
        exceeds || self.exceeds_own_bounds()
    }

    /// Whether an entry with a record of `record` bytes fits a shard that is not full.
    pub fn has_room(&self, record: usize) -> bool {
        let more = RECORD_AT + record + CHUNKS_OF_MARGIN as usize * self.next_chunk_bytes();
        (self.bytes_allocated() + more) as u64 <= self.pool.share() && !self.exceeds_own_bounds()
    }

    /// Whether another entry would exceed the shard's bounds, whatever its length.
    fn exceeds_own_bounds(&self) -> bool {
        self.table.len() as u64 >= self.entries || self.chunks.len() >= CHUNKS_MAX
    }

    /// Bytes of the next chunk: a shard that grows leaves a small part of its last one unused.
    pub(super) fn next_chunk_bytes(&self) -> usize {
        let grown = (self.chunk_bytes / CHUNKS_OF_GROWING_SHARD).max(1);
        self.pool.chunk_bytes(self.entries).min(grown.next_multiple_of(SHARED_MEMORY_PAGE_BYTES as usize))
    }

    /// Whether an entry of `len` bytes does not fit the last chunk.
    pub(super) fn needs_chunk(&self, len: usize) -> bool {
        let full =
            |chunk: &Chunk| chunk.capacity() - chunk.len() < len || chunk.len() >= MEMORY_CHUNK_BYTES_MAX;
        self.chunks.back().is_none_or(full)
    }

    /// The place of the next entry, which has `len` bytes.
    pub(super) fn room_for(&mut self, len: usize) -> EntryAt {
        if self.needs_chunk(len) {
            let wanted = self.next_chunk_bytes().max(len);
            let sequence = self.next_sequence();
            let chunk = match self.spare.take() {
                Some(mut spare) if spare.capacity() >= wanted => {
                    spare.reuse(self.shard, sequence);
                    spare
                }
                spare => {
                    spare.into_iter().for_each(Chunk::release);
                    Chunk::new(self.arena.as_ref(), wanted, self.shard, sequence)
                }
            };
            self.chunk_bytes += chunk.capacity();
            self.chunks.push_back(chunk);
        }
        EntryAt::new(self.last_chunk(), self.chunks.back().map_or(0, |chunk| chunk.len()))
    }
}
