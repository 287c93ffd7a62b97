//! One shard of the blocks in RAM. Knows no lock.

use super::slab::Slab;
use crate::limits::{BLOCK_VISIT_DIVISOR, BLOCK_VISIT_REPLACED_MIN};
use crate::memory::shared::Arena;
use hashbrown::HashTable;
use std::ops::Range;
use std::sync::Arc;

/// The bookkeeping of one block.
#[derive(Clone, Copy)]
struct BlockSlot {
    /// The block's number; [`NOTHING`]: the slot is free.
    block_number: u64,
    /// The segment that it was read from.
    sequence: u64,
    /// The number of visits since the hand passed, up to [`VISITS_MAX`].
    visits: u8,
    /// The time of its last visit, as [`BlockShard::visit_now`] counts.
    visited: u8,
    /// Keys found in it, modulo 256.
    finds: u8,
    saving: Saving,
}

/// The part of the RAM tier that would, if larger, have saved the read that brought a block. The read is counted for
/// that part until the block turns out to serve other entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Saving {
    /// Blocks, or neither: more room for entries would not have saved it.
    #[default]
    NotEntries,
    /// Entries: those that it was read for had left RAM lately.
    Entries,
    /// Entries, and also blocks, which need more room for it.
    EntriesOrBlocks,
}

const NOTHING: u64 = u64::MAX;

/// A block that was visited more often is no more likely to be visited again.
const VISITS_MAX: u8 = 3;

/// Blocks by their numbers, in the slots of slabs, replaced by CLOCK.
///
/// Invariants, checked by `validate`:
/// 1. `table` has exactly the slots that are not free.
/// 2. There are `blocks_per_slab` slots for each slab.
pub(super) struct BlockShard {
    block_size: usize,
    blocks_per_slab: usize,
    table: HashTable<u32>,
    slots: Vec<BlockSlot>,
    free: Vec<u32>,
    slabs: Vec<Slab>,
    hand: usize,
    /// Number of blocks replaced so far, to distinguish visits.
    replaced: u64,
}

/// A block that was read.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    /// Its number.
    pub block_number: u64,
    /// The block's segment.
    pub sequence: u64,
    pub bytes: &'a [u8],
    pub saving: Saving,
}

/// A block that was found in RAM.
pub(super) struct CachedBlock<'a> {
    pub bytes: &'a [u8],
    pub sequence: u64,
    /// Other blocks were replaced since its last visit.
    pub is_new_visit: bool,
    /// Keys found in it before, modulo 256.
    pub finds: &'a mut u8,
    pub saving: &'a mut Saving,
}

fn spread(block_number: u64) -> u64 {
    block_number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl BlockShard {
    pub fn new(block_size: usize, blocks_per_slab: usize) -> Self {
        Self {
            block_size,
            blocks_per_slab,
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            slabs: Vec::new(),
            hand: 0,
            replaced: 0,
        }
    }

    /// Most bytes of RAM of a block beside its content: its slot, and its share of the table and the free list.
    pub const SLOT_BYTES: usize = size_of::<BlockSlot>() + 2 * (size_of::<u32>() + 1) + size_of::<u32>();

    pub fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// A counter that changes whenever a part of the blocks has been replaced.
    fn visit_now(&self) -> u8 {
        let part = self.slots.len() as u64 / BLOCK_VISIT_DIVISOR;
        (self.replaced / part.max(BLOCK_VISIT_REPLACED_MIN)) as u8
    }

    fn slot_of(&self, block_number: u64) -> Option<u32> {
        self.table
            .find(spread(block_number), |slot| self.slots[*slot as usize].block_number == block_number)
            .copied()
    }

    /// The slab of a slot, and its block's range in it.
    fn room_of(&self, slot: u32) -> (usize, Range<usize>) {
        let slot = slot as usize;
        let at = slot % self.blocks_per_slab * self.block_size;
        (slot / self.blocks_per_slab, at..at + self.block_size)
    }

    /// Finds a block, and counts a visit.
    pub fn get(&mut self, block_number: u64) -> Option<CachedBlock<'_>> {
        let number = self.slot_of(block_number)?;
        let now = self.visit_now();
        let slot = &mut self.slots[number as usize];
        let is_new_visit = slot.visited != now;
        if is_new_visit {
            slot.visited = now;
            slot.visits = (slot.visits + 1).min(VISITS_MAX);
        }
        let (slab, range) = self.room_of(number);
        let BlockSlot { sequence, finds, saving, .. } = &mut self.slots[number as usize];
        Some(CachedBlock {
            bytes: &self.slabs[slab][range],
            sequence: *sequence,
            is_new_visit,
            finds,
            saving,
        })
    }

    /// Keeps a block, in place of its older version, in a free slot, or in place of another block, which is passed to
    /// `leaves`. `false`: there is no slot.
    pub fn insert(&mut self, block: Block<'_>, leaves: impl FnMut(u64)) -> bool {
        let Block { block_number, sequence, bytes, saving } = block;
        let number = match self.slot_of(block_number) {
            Some(number) => number,
            None => {
                let Some(number) = self.free.pop().or_else(|| self.evict(leaves)) else { return false };
                let slots = &self.slots;
                self.table.insert_unique(spread(block_number), number, |slot| {
                    spread(slots[*slot as usize].block_number)
                });
                number
            }
        };
        let visited = self.visit_now();
        self.slots[number as usize] =
            BlockSlot { block_number, sequence, visits: 0, visited, finds: 0, saving };
        let (slab, range) = self.room_of(number);
        self.slabs[slab][range].copy_from_slice(bytes);
        true
    }

    /// Whether there is a free slot.
    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Frees the slot of the next victim; `None`: there are no slots.
    fn evict(&mut self, mut leaves: impl FnMut(u64)) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[self.hand];
            if slot.visits > 0 {
                slot.visits -= 1;
                continue;
            }
            leaves(slot.block_number);
            self.remove(self.hand as u32);
            self.replaced += 1;
            return Some(self.hand as u32);
        }
    }

    fn remove(&mut self, number: u32) {
        let block_number = self.slots[number as usize].block_number;
        if let Ok(entry) = self.table.find_entry(spread(block_number), |slot| *slot == number) {
            entry.remove();
        }
        self.slots[number as usize].block_number = NOTHING;
    }

    /// Adds a slab.
    pub fn grow(&mut self, arena: Option<&Arc<Arena>>) {
        self.slabs.push(Slab::new(arena, self.blocks_per_slab * self.block_size));
        let first = self.slots.len();
        let slot = BlockSlot {
            block_number: NOTHING,
            sequence: 0,
            visits: 0,
            visited: 0,
            finds: 0,
            saving: Saving::default(),
        };
        self.slots.resize(first + self.blocks_per_slab, slot);
        self.free.extend((first as u32..self.slots.len() as u32).rev());
    }

    /// Gives back a slab. Its visited blocks take the places of unvisited ones elsewhere; blocks that leave are passed
    /// to `leaves`.
    pub fn shrink(&mut self, mut leaves: impl FnMut(u64)) {
        let Some(slab) = self.slabs.pop() else { return };
        let first = self.slots.len() - self.blocks_per_slab;
        let mut visited = Vec::new();
        for number in first..self.slots.len() {
            let slot = self.slots[number];
            if slot.block_number != NOTHING {
                self.remove(number as u32);
                let stays = slot.visits > 0 && first > 0;
                if stays { visited.push((number - first, slot)) } else { leaves(slot.block_number) }
            }
        }
        self.slots.truncate(first);
        self.free.retain(|number| (*number as usize) < first);
        for (at, BlockSlot { block_number, sequence, saving, .. }) in visited {
            let bytes = &slab[at * self.block_size..(at + 1) * self.block_size];
            self.insert(Block { block_number, sequence, bytes, saving }, &mut leaves);
        }
        slab.release();
        if self.slabs.is_empty() {
            *self = Self::new(self.block_size, self.blocks_per_slab);
        } else if self.table.capacity() > 4 * first {
            let slots = &self.slots;
            self.table.shrink_to(first, |slot| spread(slots[*slot as usize].block_number));
            self.slots.shrink_to_fit();
            self.free.shrink_to(first);
        }
    }

    /// Derives everything anew and compares.
    pub fn validate(&self) {
        let used = self.slots.iter().filter(|slot| slot.block_number != NOTHING);
        assert_eq!(used.clone().count(), self.table.len(), "invariant 1");
        assert!(used.clone().all(|slot| self.slot_of(slot.block_number).is_some()), "invariant 1");
        assert_eq!(self.table.len() + self.free.len(), self.slots.len(), "invariant 1");
        assert_eq!(self.slabs.len() * self.blocks_per_slab, self.slots.len(), "invariant 2");
    }
}
