//! The hash map: tables of words, each of which is replaced by a larger or smaller one when necessary.

mod permutation;
mod table;

use super::occupancy::Occupancy;
use super::{Map, MapError, Place, check};
use crate::limits::{
    HASH_BLOCKS_PER_SHARD, HASH_REGION_BLOCKS_MIN, HASH_REGIONS_MAX, HASH_REMAINDER_BITS, HASH_SHARDS_MAX,
    HASH_SLOT_BITS_MIN,
};
use arc_swap::ArcSwap;
use permutation::Permutation;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use table::{Refused, Table};

/// A lock-free hash map.
///
/// Each logical block belongs to one of many shards, which has a table. A table that is full is frozen, word by word,
/// and copied to one of the size that its live entries need, which then takes its place; the last reader of the old one
/// frees it. A thread that meets a frozen word does not wait for the freezing thread: it freezes and copies, too, and
/// the first to finish wins. So a write waits at most as long as it takes to copy one shard.
///
/// Memory: slots of 8 bytes, of which at most three quarters are in use. As a map grows, that is 11 to 22
/// bytes a mapped block; as blocks are unmapped, up to 64 before the table is made smaller. A table never has
/// more slots than the shard has logical blocks, rounded up to a power of two. While a shard is copied, its
/// old table is there, too. The counters for scans take 2 bytes for each 64 logical blocks (more blocks where
/// there are more than 2^32); pages of counters that never changed cost no RAM.
pub struct HashMap {
    blocks: u64,
    permutation: Permutation,
    /// Bits of a block's key within its shard.
    key_bits: u32,
    slot_bits_min: u32,
    shards: Box<[ArcSwap<Table>]>,
    occupancy: Occupancy,
}

/// The bits of the numbers below `count`.
fn bits_of(count: u64) -> u32 {
    count.next_power_of_two().trailing_zeros()
}

impl HashMap {
    /// A map of `blocks` blocks, none of which is mapped.
    ///
    /// # Errors
    /// If there are too many blocks or too little memory.
    pub fn new(blocks: u64) -> Result<Self, MapError> {
        check(blocks)?;
        let shards = (blocks / HASH_BLOCKS_PER_SHARD).clamp(1, HASH_SHARDS_MAX);
        Self::with_shape(blocks, bits_of(shards), HASH_SLOT_BITS_MIN, RandomState::new().hash_one(blocks))
    }

    /// A map with `1 << shard_bits` tables, which begin with `1 << slot_bits` slots.
    #[doc(hidden)]
    pub fn with_shape(blocks: u64, shard_bits: u32, slot_bits: u32, key: u64) -> Result<Self, MapError> {
        let bits = bits_of(blocks).max(shard_bits + 1);
        let key_bits = bits - shard_bits;
        let slot_bits_min = slot_bits.min(key_bits).max(key_bits.saturating_sub(HASH_REMAINDER_BITS));
        let region_blocks = (blocks.next_power_of_two() / HASH_REGIONS_MAX).max(HASH_REGION_BLOCKS_MIN);
        let table = |_| ArcSwap::from_pointee(Table::new(key_bits, slot_bits_min));
        Ok(Self {
            blocks,
            permutation: Permutation::new(bits, key),
            key_bits,
            slot_bits_min,
            shards: (0..1u64 << shard_bits).map(table).collect(),
            occupancy: Occupancy::new(blocks, region_blocks)?,
        })
    }

    /// The shard that `lba` is in, and its key there.
    fn locate(&self, lba: u64) -> (&ArcSwap<Table>, u64) {
        let mixed = self.permutation.apply(lba);
        (&self.shards[(mixed >> self.key_bits) as usize], mixed & ((1 << self.key_bits) - 1))
    }

    /// Replaces the place of `lba` by what `change` returns for it; returns the old place.
    fn update(&self, lba: u64, change: impl Fn(Option<Place>) -> Option<Option<Place>>) -> Option<Place> {
        let (shard, key) = self.locate(lba);
        loop {
            let table = shard.load();
            match table.update(key, &change) {
                Ok(old) => return old,
                Err(refused) => self.renew(shard, &table, refused),
            }
        }
    }

    /// Replaces `table` by one without tombstones and of the right size, unless another thread just did.
    fn renew(&self, shard: &ArcSwap<Table>, table: &Arc<Table>, why: Refused) {
        if !Arc::ptr_eq(&shard.load(), table) {
            return;
        }
        let slot_bits_min = match why {
            Refused::Crowded if !table.has_tombstones() => table.slot_bits() + 1,
            Refused::Crowded | Refused::Full | Refused::Frozen => self.slot_bits_min,
        };
        table.freeze();
        shard.compare_and_swap(table, Arc::new(table.copy(slot_bits_min)));
    }
}

impl Map for HashMap {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn get(&self, lba: u64) -> Option<Place> {
        if lba >= self.blocks {
            return None;
        }
        let (shard, key) = self.locate(lba);
        shard.load().get(key)
    }

    fn set(&self, lba: u64, place: Place) -> Option<Place> {
        assert!(lba < self.blocks, "the block is one of the volume's");
        if let Some(old) = self.update(lba, |old| old.map(|_| Some(place))) {
            return Some(old);
        }
        self.occupancy.add(lba);
        let old = self.update(lba, |_| Some(Some(place)));
        if old.is_some() {
            self.occupancy.subtract(lba);
        }
        old
    }

    fn remove(&self, lba: u64) -> Option<Place> {
        if lba >= self.blocks {
            return None;
        }
        let old = self.update(lba, |old| old.map(|_| None))?;
        self.occupancy.subtract(lba);
        let (shard, _) = self.locate(lba);
        let table = shard.load();
        if table.slot_bits() > self.slot_bits_min && table.is_sparse() {
            self.renew(shard, &table, Refused::Full);
        }
        Some(old)
    }

    fn replace(&self, lba: u64, from: Place, to: Place) -> bool {
        let change = |old| (old == Some(from)).then_some(Some(to));
        lba < self.blocks && self.update(lba, change) == Some(from)
    }

    fn next_mapped(&self, lba: u64) -> Option<(u64, Place)> {
        let mut from = lba;
        while let Some(range) = self.occupancy.next(from) {
            from = range.end;
            for lba in range {
                if let Some(place) = self.get(lba) {
                    return Some((lba, place));
                }
            }
        }
        None
    }

    fn len(&self) -> u64 {
        self.occupancy.total()
    }

    fn bytes_allocated(&self) -> u64 {
        // A table is preceded by two reference counts.
        let table = |shard: &ArcSwap<Table>| shard.load().bytes_allocated() + 16;
        let tables: u64 = self.shards.iter().map(table).sum();
        tables + size_of_val(&*self.shards) as u64 + self.occupancy.bytes_allocated()
    }

    fn reserve(&mut self, mapped: u64) {
        if self.is_empty() {
            let in_shard = mapped.div_ceil(self.shards.len() as u64);
            let slot_bits = bits_of(in_shard + in_shard / 2).min(self.key_bits).max(self.slot_bits_min);
            self.shards.iter().for_each(|shard| shard.store(Arc::new(Table::new(self.key_bits, slot_bits))));
        }
    }

    fn restore(&mut self, first: u64, places: &[Option<Place>]) {
        for (lba, place) in (first..).zip(places).filter(|(_, place)| place.is_some()) {
            assert!(lba < self.blocks, "the block is one of the volume's");
            self.occupancy.add(lba);
            if self.update(lba, |_| Some(*place)).is_some() {
                self.occupancy.subtract(lba);
            }
        }
    }

    fn resize(&mut self, blocks: u64) -> Result<(), MapError> {
        let resized = Self::new(blocks)?;
        let mut next = self.next_mapped(0);
        while let Some((lba, place)) = next.filter(|(lba, _)| *lba < blocks) {
            resized.set(lba, place);
            next = self.next_mapped(lba + 1);
        }
        *self = resized;
        Ok(())
    }
}
