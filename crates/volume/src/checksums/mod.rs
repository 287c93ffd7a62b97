//! A bounded cache of the checksums of blocks, by segment.
//!
//! The checksums of a segment are in its footer. A read of a block takes the checksum from this cache, or reads the
//! footer and caches it. An entry belongs to a slot and a sequence number: once the slot is used for another segment,
//! the former one's entry is no longer found.

mod shard;

pub use crate::framing::content_hash;

use crate::limits::{CHECKSUM_SHARD_BYTES_MIN, CHECKSUM_SHARDS_MAX};
use shard::Shard;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The checksums of blocks, in shards with a lock each. No lock is held while a footer is read.
pub struct Checksums {
    shards: Box<[Mutex<Shard>]>,
}

impl Checksums {
    /// A cache that allocates at most `budget` bytes for its entries. With a budget of 0 it keeps nothing.
    pub fn new(budget: u64) -> Self {
        let most = (budget / CHECKSUM_SHARD_BYTES_MIN).clamp(1, CHECKSUM_SHARDS_MAX);
        let shards = 1 << most.ilog2();
        Self { shards: (0..shards).map(|_| Mutex::new(Shard::new(budget / shards))).collect() }
    }

    fn shard(&self, slot: u32) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[slot as usize % self.shards.len()];
        // Nothing panics under a lock; only `validate`, which changes nothing, may.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the checksum of block `index` of the segment `sequence` in `slot`, or `None` if the segment's
    /// checksums are not here, or it has no such block.
    pub fn get(&self, slot: u32, sequence: u64, index: u32) -> Option<u32> {
        self.shard(slot).get(slot, sequence)?.get(index as usize).copied()
    }

    /// Has the processor fetch the checksum of block `index` of the segment in `slot`, if it is here, while the block
    /// is read.
    pub fn prefetch(&self, slot: u32, index: u32) {
        self.shard(slot).prefetch(slot, index);
    }

    /// Returns the checksum of block `index` of the segment `sequence` in `slot`, or `None` if it has no such
    /// block. Calls `load` for the checksums of the segment if they are not here, and keeps them.
    ///
    /// # Errors
    /// The error of `load`. Then nothing is kept.
    pub fn get_or_load<E>(
        &self,
        slot: u32,
        sequence: u64,
        index: u32,
        load: impl FnOnce() -> Result<Box<[u32]>, E>,
    ) -> Result<Option<u32>, E> {
        if let Some(checksums) = self.shard(slot).get(slot, sequence) {
            return Ok(checksums.get(index as usize).copied());
        }
        let checksums = load()?;
        let found = checksums.get(index as usize).copied();
        self.insert(slot, sequence, checksums);
        Ok(found)
    }

    /// Keeps the checksums of the segment `sequence` in `slot`, and forgets those of an earlier segment. A segment
    /// older than the slot's entry is not kept: its slot was reused.
    pub fn insert(&self, slot: u32, sequence: u64, checksums: Box<[u32]>) {
        self.shard(slot).insert(slot, sequence, checksums);
    }

    /// Forgets the checksums of `slot`.
    pub fn invalidate(&self, slot: u32) {
        self.shard(slot).remove(slot);
    }

    /// The bytes of memory that the entries have allocated.
    pub fn bytes_allocated(&self) -> u64 {
        (0..self.shards.len() as u32).map(|shard| self.shard(shard).bytes_allocated()).sum()
    }

    /// Derives all counters anew.
    ///
    /// # Panics
    /// If one is wrong.
    #[doc(hidden)]
    pub fn validate(&self) {
        (0..self.shards.len() as u32).for_each(|shard| self.shard(shard).validate());
    }
}
