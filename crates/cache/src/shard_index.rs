//! Where the entries of one shard lie on flash, as far as is known: the index, and what lookups found out about it.

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

/// What became of a key that was pointed at its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointed {
    /// Another entry left the index for want of room.
    pub evicted: bool,
    /// Entries that were taken over without it being known whose they are.
    pub unsure: u64,
    /// Entries that look alike are in the index beside it: they are known to be other keys'.
    pub beside: bool,
}

/// Whose the entries are that look like a key's, where a put does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookAlikes {
    /// Perhaps they are the key's: the index must not find them any more.
    MayBeIts,
    /// Other keys': no version of the key is on flash.
    Others,
}

impl ShardIndex {
    pub fn new(capacity: Capacity) -> Self {
        Self { table: Table::new(capacity), collisions: CollisionFilter::default() }
    }

    fn bits(&self, hash: KeyHash) -> u64 {
        hash.below_shard(self.table.hash_bits())
    }

    /// Has the processor fetch what a lookup of this hash reads.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.table.prefetch(self.bits(hash));
    }

    /// Visits the blocks that may hold an entry of this hash, each with whether it was found lately; `marks`: they are from
    /// now on.
    #[inline]
    pub fn find(&mut self, hash: KeyHash, marks: bool, visit: impl FnMut(u64, bool)) {
        let bits = self.bits(hash);
        self.table.find(bits, marks, visit);
    }

    /// Whether an entry of this hash is in `block`; if so, whether it was found lately.
    pub fn at(&self, hash: KeyHash, block: u64) -> Option<bool> {
        self.table.contains(self.bits(hash), block)
    }

    /// Whether an entry that looks like this hash's is anywhere.
    pub fn any(&self, hash: KeyHash) -> bool {
        self.table.any(self.bits(hash), |_| true)
    }

    /// Removes an entry of this hash in `block`; whether there was one.
    pub fn remove(&mut self, hash: KeyHash, block: u64) -> bool {
        let bits = self.bits(hash);
        self.table.remove(bits, block)
    }

    /// An entry has been appended again.
    pub fn relocate(&mut self, hash: KeyHash, from: u64, to: u64) {
        let bits = self.bits(hash);
        self.table.relocate(bits, from, to);
    }

    /// How many entries look like this hash's.
    pub fn count(&self, hash: KeyHash) -> usize {
        let mut count = 0;
        self.table.any(self.bits(hash), |_| {
            count += 1;
            false
        });
        count
    }

    /// Points a key at its block, and no longer at older ones.
    pub fn point(&mut self, log: &Log, key: Key<'_>, placed: Placed, look_alikes: LookAlikes) -> Pointed {
        let bits = self.bits(key.hash());
        let (table, collisions) = (&mut self.table, &self.collisions);
        let mut unsure = Unsure::default();
        let same = |block| match (holds(log, collisions, key, block), look_alikes) {
            (Holds::Unknown, LookAlikes::Others) => false,
            (holds, _) => unsure.takes_over(block, holds),
        };
        let blocks = log.geometry().blocks();
        let age = |block: u64| (placed.block + blocks - block) % blocks;
        let inserted = table.insert(bits, placed.block, same, age);
        Pointed { evicted: inserted.evicted.is_some(), unsure: unsure.count(), beside: inserted.beside > 0 }
    }

    /// Removes all entries of a key, and those that may be its; gives how many of these may be another's.
    pub fn remove_key(&mut self, log: &Log, key: Key<'_>) -> u64 {
        let bits = self.bits(key.hash());
        let (table, collisions) = (&mut self.table, &self.collisions);
        let mut unsure = Unsure::default();
        table.remove_where(bits, |block| unsure.takes_over(block, holds(log, collisions, key, block)));
        unsure.count()
    }

    /// Removes all entries that look like this hash's; gives how many.
    pub fn remove_look_alikes(&mut self, hash: KeyHash) -> u64 {
        let bits = self.bits(hash);
        self.table.remove_where(bits, |_| true) as u64
    }

    /// Whether some version of a key may be on flash.
    pub fn may_have(&self, log: &Log, key: Key<'_>) -> bool {
        let is_its = |block| holds(log, &self.collisions, key, block) != Holds::Another;
        self.table.any(self.bits(key.hash()), is_its)
    }

    /// The entries of other keys that so many keys, looked for in the table, look like in all likelihood; in parts of
    /// one, 2^[`LOOK_ALIKE_BITS`].
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

/// Blocks of entries that are taken over without it being known whose they are.
#[derive(Default)]
struct Unsure(Vec<u64>);

impl Unsure {
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

/// Whether a block holds a key, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    It,
    Another,
    Unknown,
}

fn holds(log: &Log, collisions: &CollisionFilter, key: Key<'_>, block: u64) -> Holds {
    match log.locate(block) {
        Location::Memory(segment) => {
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
