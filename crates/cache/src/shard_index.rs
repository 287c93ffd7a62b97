//! The places of one shard's entries on flash: the index, and collisions that lookups found.

use crate::framing::block::{payload, payload_size};
use crate::framing::{Log, Placed, records_in};
use crate::index::{Capacity, CollisionFilter, Table};
use crate::key::{Key, KeyHash};
use crate::limits::LOOK_ALIKE_BITS;
use crate::record;
use granary_log::Location;

/// The index of one shard, and the collisions that lookups found.
pub(crate) struct ShardIndex {
    pub table: Table,
    pub collisions: CollisionFilter,
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InsertOutcome {
    /// Another entry left the index for want of room.
    pub evicted: bool,
    /// Entries that were replaced although they may belong to other keys.
    pub unsure: u64,
    /// Look-alikes known to belong to other keys stay in the index beside it.
    pub has_look_alikes: bool,
}

/// Whose entries a key's look-alikes are, if that is not known of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookAlikes {
    /// They may be the key's: they must leave the index.
    MayBeIts,
    /// They are other keys': no version of the key is on flash.
    Others,
}

impl ShardIndex {
    pub fn new(capacity: Capacity) -> Self {
        Self { table: Table::new(capacity), collisions: CollisionFilter::default() }
    }

    fn bits(&self, hash: KeyHash) -> u64 {
        hash.below_shard(self.table.hash_bits())
    }

    /// Has the processor fetch the index slots that a lookup of this hash reads.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.table.prefetch(self.bits(hash));
    }

    /// Visits the blocks that may hold an entry of this hash, each with its found mark; `sets_found_marks`: sets it.
    #[inline]
    pub fn find(&mut self, hash: KeyHash, sets_found_marks: bool, visit: impl FnMut(u64, bool)) {
        let bits = self.bits(hash);
        self.table.find(bits, sets_found_marks, visit);
    }

    /// The found mark of this hash's entry in `block`; `None`: there is no such entry.
    pub fn at(&self, hash: KeyHash, block: u64) -> Option<bool> {
        self.table.contains(self.bits(hash), block)
    }

    /// Whether the index has any entry that looks like this hash's.
    pub fn any(&self, hash: KeyHash) -> bool {
        self.table.any(self.bits(hash), |_| true)
    }

    /// Removes an entry of this hash in `block`; returns whether there was one.
    pub fn remove(&mut self, hash: KeyHash, block: u64) -> bool {
        let bits = self.bits(hash);
        self.table.remove(bits, block)
    }

    /// Moves an entry that was appended again to its new block.
    pub fn relocate(&mut self, hash: KeyHash, from: u64, to: u64) {
        let bits = self.bits(hash);
        self.table.relocate(bits, from, to);
    }

    /// The number of entries that look like this hash's.
    pub fn count(&self, hash: KeyHash) -> usize {
        let mut count = 0;
        self.table.any(self.bits(hash), |_| {
            count += 1;
            false
        });
        count
    }

    /// Points a key at its new block only.
    pub fn point(
        &mut self,
        log: &Log,
        key: Key<'_>,
        placed: Placed,
        look_alikes: LookAlikes,
    ) -> InsertOutcome {
        let bits = self.bits(key.hash());
        let (table, collisions) = (&mut self.table, &self.collisions);
        let mut unsure = DoubtfulBlocks::default();
        let same = |block| match (holds(log, collisions, key, block), look_alikes) {
            (Holds::Unknown, LookAlikes::Others) => false,
            (holds, _) => unsure.takes_over(block, holds),
        };
        let blocks = log.geometry().blocks();
        let age = |block: u64| (placed.block + blocks - block) % blocks;
        let inserted = table.insert(bits, placed.block, same, age);
        InsertOutcome {
            evicted: inserted.evicted.is_some(),
            unsure: unsure.count(),
            has_look_alikes: inserted.look_alikes > 0,
        }
    }

    /// Removes all entries that are or may be a key's; returns how many may be another key's.
    pub fn remove_key(&mut self, log: &Log, key: Key<'_>) -> u64 {
        let bits = self.bits(key.hash());
        let (table, collisions) = (&mut self.table, &self.collisions);
        let mut unsure = DoubtfulBlocks::default();
        table.remove_where(bits, |block| unsure.takes_over(block, holds(log, collisions, key, block)));
        unsure.count()
    }

    /// Removes all entries that look like this hash's; returns their number.
    pub fn remove_look_alikes(&mut self, hash: KeyHash) -> u64 {
        let bits = self.bits(hash);
        self.table.remove_where(bits, |_| true) as u64
    }

    /// Whether some version of a key may be on flash.
    pub fn may_have(&self, log: &Log, key: Key<'_>) -> bool {
        let is_its = |block| holds(log, &self.collisions, key, block) != Holds::Another;
        self.table.any(self.bits(key.hash()), is_its)
    }

    /// The expected number of other keys' entries that look like one of `keys` looked-up keys, in units of
    /// 1/2^[`LOOK_ALIKE_BITS`].
    pub fn look_alikes_expected(&self, keys: usize) -> u64 {
        (((self.table.len() as u64) << LOOK_ALIKE_BITS) >> self.table.hash_bits()) * keys as u64
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.collisions.clear();
    }

    pub fn bytes_allocated(&self) -> usize {
        self.table.bytes_allocated() + self.collisions.bytes_allocated()
    }
}

/// Blocks of replaced entries that may belong to other keys.
#[derive(Default)]
struct DoubtfulBlocks(Vec<u64>);

impl DoubtfulBlocks {
    fn takes_over(&mut self, block: u64, holds: Holds) -> bool {
        if holds == Holds::Unknown && !self.0.contains(&block) {
            self.0.push(block);
        }
        holds != Holds::Another
    }

    fn count(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Whether a block holds a key, as far as RAM tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    It,
    Another,
    Unknown,
}

fn holds(log: &Log, collisions: &CollisionFilter, key: Key<'_>, block: u64) -> Holds {
    match log.locate(block) {
        Location::WriteBuffer(segment) => {
            let segment = segment.read();
            let size = payload_size(log.geometry());
            let Some((count, bytes)) = records_in(&segment, block) else { return Holds::Unknown };
            match record::find_last(&payload(bytes)[..size], count, key.bytes()) {
                Some(_) => Holds::It,
                None => Holds::Another,
            }
        }
        Location::Device { sequence } if collisions.contains(key, block, sequence) => Holds::Another,
        Location::Device { .. } => Holds::Unknown,
    }
}
