//! Lets readers find what is in the log: by the index and the RAM tier, shard after shard.

use crate::batch::{Asked, ByShard};
use crate::collisions::CollisionFilter;
use crate::framing::block::{payload, payload_size};
use crate::framing::{Placed, records_in};
use crate::help::Working;
use crate::index::Table;
use crate::key::Key;
use crate::limits::{LOOK_ALIKE_BITS, SHARDS, SHARED_ENTRIES_MIN, SIDE_BY_SIDE};
use crate::memory::EntryState;
use crate::partition::{Flash, Shard, Shared};
use crate::policy::{Promotion, placement};
use crate::put::Entry;
use crate::record;
use crate::stats::add;
use granary_log::Location;
use granary_log::sync::sync::atomic::AtomicU64;
use std::ops::Range;

impl Shared {
    /// Lets readers find entries, each at its place. `coming`: entries of each shard, these and what follows them
    /// in the batch; these are taken off. Whoever calls this holds `putting`, so that the index and the log agree
    /// on which version of a key is the last.
    pub fn publish_many(
        &self,
        flash: &Flash,
        entries: &[Entry<'_>],
        placed: &[Option<Placed>],
        coming: &mut [usize; SHARDS],
    ) {
        let by_shard = ByShard::of_batch(entries.iter().map(|entry| entry.key.hash()));
        let publish = |shards: Range<usize>| {
            for shard in shards {
                let mut locked = self.lock(shard);
                locked.table.expect(coming[shard]);
                for some in by_shard.of(shard).chunks(SIDE_BY_SIDE) {
                    prefetch_buckets(&locked.table, some);
                    for asked in some {
                        let i = asked.key as usize;
                        self.publish(flash, &mut locked, entries[i], placed[i]);
                    }
                }
                self.expect_look_alikes(&locked.table, by_shard.of(shard).len());
                locked.table.expect(0);
            }
        };
        let working = (entries.len() >= SHARED_ENTRIES_MIN).then(Working::begin);
        match working.as_ref().and_then(Working::help) {
            Some(help) => _ = help.both(|| publish(0..SHARDS / 2), |_| publish(SHARDS / 2..SHARDS)),
            None => publish(0..SHARDS),
        }
        by_shard.shards().for_each(|(shard, asked)| coming[shard] -= asked.len());
    }

    /// Lets readers find an entry at its place; without one, lets them find no older version.
    fn publish(&self, flash: &Flash, shard: &mut Shard, entry: Entry<'_>, placed: Option<Placed>) {
        let Shard { table, memory, collisions } = shard;
        let unsure = &self.counters.taken_over_unsure;
        let indexed =
            placed.is_some_and(|placed| self.index(flash, table, collisions, entry.key, placed, unsure));
        if !indexed {
            return self.unpublish(flash, shard, entry.key);
        }
        match placement(self.memory_bytes) {
            Promotion::Promote if self.has_room_for_copy(flash, entry.key, entry.value) => {
                memory.insert(entry.key, entry.value, entry.expires_at, EntryState::Clean, self.time());
            }
            _ => _ = memory.remove(entry.key),
        }
    }

    /// Points a key at its place, and no longer at older ones; `false`: that is to be overwritten already. Places that
    /// are taken over and not known to hold this key are counted by `taken_over`.
    pub fn index(
        &self,
        flash: &Flash,
        table: &mut Table,
        collisions: &CollisionFilter,
        key: Key<'_>,
        placed: Placed,
        taken_over: &AtomicU64,
    ) -> bool {
        // A chunk longer than a very small file overwrites its own beginning.
        if !flash.log.keeps(placed.sequence) {
            flash.note_unindexed();
            return false;
        }
        let bits = key.hash().below_shard(table.hash_bits());
        let mut unsure = Unsure::default();
        let same = |place| unsure.takes_over(place, holds(flash, collisions, key, place));
        let blocks = flash.log.geometry().blocks();
        let age = |place: u64| (placed.block + blocks - place) % blocks;
        if table.insert(bits, placed.block, same, age).evicted.is_some() {
            add(&self.counters.evicted_index, 1);
            flash.note_unindexed();
        }
        add(taken_over, unsure.0.len() as u64);
        true
    }

    /// Lets readers find no version of a key.
    pub fn unpublish(&self, flash: &Flash, Shard { table, memory, collisions }: &mut Shard, key: Key<'_>) {
        memory.remove(key);
        let bits = key.hash().below_shard(table.hash_bits());
        let mut unsure = Unsure::default();
        table.remove_where(bits, |place| unsure.takes_over(place, holds(flash, collisions, key, place)));
        add(&self.counters.taken_over_unsure, unsure.0.len() as u64);
    }

    /// So many keys are looked for in the table, each of which may find another one's place: some do, in all likelihood.
    pub fn expect_look_alikes(&self, table: &Table, keys: usize) {
        let each = ((table.len() as u64) << LOOK_ALIKE_BITS) >> table.hash_bits();
        add(&self.counters.look_alikes_expected, each * keys as u64);
    }
}

/// Places that are taken over without it being known whose they are.
#[derive(Default)]
struct Unsure(Vec<u64>);

impl Unsure {
    fn takes_over(&mut self, place: u64, holds: Holds) -> bool {
        if holds == Holds::Unknown && !self.0.contains(&place) {
            self.0.push(place);
        }
        holds != Holds::Another
    }
}

fn prefetch_buckets(table: &Table, asked: &[Asked]) {
    asked.iter().for_each(|asked| table.prefetch(asked.hash.below_shard(table.hash_bits())));
}

/// Whether a block holds a key, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    It,
    Another,
    Unknown,
}

/// Whether the block at `place` is known not to hold `key`. The holder of the shard's lock asks.
pub(crate) fn is_other_key(flash: &Flash, collisions: &CollisionFilter, key: Key<'_>, place: u64) -> bool {
    holds(flash, collisions, key, place) == Holds::Another
}

fn holds(flash: &Flash, collisions: &CollisionFilter, key: Key<'_>, place: u64) -> Holds {
    match flash.log.locate(place) {
        Location::Memory(segment) => {
            let segment = segment.read();
            let size = payload_size(flash.log.geometry());
            let Some((count, bytes)) = records_in(&segment, place) else { return Holds::Unknown };
            match record::find_last(&payload(bytes)[..size], count, key.bytes()) {
                Some(_) => Holds::It,
                None => Holds::Another,
            }
        }
        Location::Device { sequence } if collisions.contains(key, place, sequence) => Holds::Another,
        Location::Device { .. } => Holds::Unknown,
    }
}
