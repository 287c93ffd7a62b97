//! Taking over the entries that the last process left in the file.

use super::chunk::Chunk;
use super::entry::{self, DEAD, DIRTY, STAMP_SHIFT, has_tag};
use super::shared::FoundChunk;
use super::{CHUNKS_MAX, EntryAt, Memory, spread};
use crate::key::KeyHash;
use hashbrown::hash_table::Entry as Slot;
use std::ops::AddAssign;

/// The result of taking over entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Adopted {
    pub entries: u64,
    /// Chunks with bytes that are no entry: everything from there on is dropped.
    pub torn_chunks: u64,
}

impl AddAssign for Adopted {
    fn add_assign(&mut self, other: Self) {
        self.entries += other.entries;
        self.torn_chunks += other.torn_chunks;
    }
}

/// Whether flash has a copy of an adopted entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlashCopy {
    /// It is on flash, or need not be.
    Present,
    /// It is in RAM only.
    Absent,
    /// The entry's flags tell whether it is on flash.
    AsFlagged,
    /// Flash may have a newer version: the entry is dropped.
    Superseded,
}

impl Memory {
    /// Takes over a shard's chunks into the empty tier. If a key has two entries, the later one counts: the process was
    /// killed between writing it and ending the older one. `flash_copy` tells whether a hash's entry is on flash.
    pub fn adopt(
        &mut self,
        mut found: Vec<FoundChunk>,
        flash_copy: impl Fn(KeyHash) -> FlashCopy,
    ) -> Adopted {
        found.sort_unstable_by_key(|chunk| chunk.sequence);
        // A shard never had more chunks than numbers.
        found.drain(..found.len().saturating_sub(CHUNKS_MAX - 1)).for_each(|chunk| {
            Chunk::found(chunk.extent, chunk.len).release();
        });
        let Some(first) = found.first() else { return Adopted::default() };
        self.first_sequence = first.sequence;
        let mut taken = Adopted::default();
        let mut live: Vec<LiveEntry> = Vec::new();
        for FoundChunk { sequence, len, extent } in found {
            let mut chunk = Chunk::found(extent, len);
            let next = self.next_sequence();
            if sequence != next {
                // Numbers of private chunks are missing. Renumbering in ascending order keeps the chunks' order.
                chunk.renumber(self.shard, next);
            }
            taken.torn_chunks += u64::from(self.check_chunk(&mut chunk, next as u16, &mut live));
            self.chunk_bytes += chunk.capacity();
            self.chunks.push_back(chunk);
        }
        self.table.reserve(live.len(), |_| unreachable!("the table is empty"));
        for LiveEntry { hash, at, flags } in live {
            let flash_copy = flash_copy(hash);
            self.point_found(hash, at);
            match flash_copy {
                FlashCopy::Superseded => _ = self.drop_entry(hash, at),
                FlashCopy::Present => self.settle(at, flags, flags & !DIRTY),
                FlashCopy::Absent => self.settle(at, flags, flags | DIRTY),
                FlashCopy::AsFlagged => {}
            }
        }
        taken.entries = self.table.len() as u64;
        self.report_len();
        taken
    }

    /// Checks the entries of a chunk and adds live ones to `live`; returns whether some bytes are no entry.
    fn check_chunk(&mut self, chunk: &mut Chunk, number: u16, live: &mut Vec<LiveEntry>) -> bool {
        let seed = self.arena.as_ref().map_or(0, |arena| arena.checksum_seed());
        let mut at = 0;
        while at < chunk.len() {
            // An offset has 16 bits: no entry begins beyond them.
            let entry = entry::check(&chunk[at..], self.hasher, seed).filter(|_| at <= usize::from(u16::MAX));
            let Some(entry) = entry else {
                chunk.truncate(at);
                return true;
            };
            if entry.flags & DEAD == 0 {
                // Stamps count the turnover of the last process.
                let flags = entry.flags & ((1 << STAMP_SHIFT) - 1);
                if flags != entry.flags {
                    chunk.set_flags(at, flags);
                }
                live.push(LiveEntry { hash: entry.hash, at: EntryAt::new(number, at), flags });
                self.dirty += usize::from(flags & DIRTY != 0);
            } else {
                self.dead_bytes += entry.len;
            }
            at += entry.len;
        }
        false
    }

    /// Points the table's entry of a key at `at`, a later place than any found so far.
    fn point_found(&mut self, hash: KeyHash, at: EntryAt) {
        let (chunks, first) = (&self.chunks, self.first_chunk());
        let bytes = |at: EntryAt| Self::bytes(chunks, first, at);
        let same = |other: &EntryAt| {
            has_tag(bytes(*other), hash)
                && entry::record_of(bytes(*other)).key == entry::record_of(bytes(at)).key
        };
        let hasher = self.hasher;
        let rehash = |at: &EntryAt| spread(entry::hash_of(bytes(*at), hasher).to_bits());
        let older = match self.table.entry(spread(hash.to_bits()), same, rehash) {
            Slot::Occupied(mut found) => Some(std::mem::replace(found.get_mut(), at)),
            Slot::Vacant(vacant) => {
                vacant.insert(at);
                None
            }
        };
        if let Some(older) = older {
            self.mark_dead(older);
        }
    }

    /// Changes the flags of the entry at `at` from `before` to `flags`, and counts dirty ones.
    fn settle(&mut self, at: EntryAt, before: u8, flags: u8) {
        if flags != before {
            let first = self.first_chunk();
            self.chunks[at.index(first)].set_flags(at.offset(), flags);
            self.dirty += usize::from(flags & DIRTY != 0);
            self.dirty -= usize::from(before & DIRTY != 0);
        }
    }
}

/// A found entry that is not dead.
struct LiveEntry {
    hash: KeyHash,
    at: EntryAt,
    flags: u8,
}
