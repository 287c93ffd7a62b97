//! Lets readers find what is in the log: by the index and the RAM tier, shard after shard.

use crate::batch::{Asked, ByShard};
use crate::help::Working;
use crate::hints::Hints;
use crate::index::Table;
use crate::key::Key;
use crate::limits::{SHARDS, SHARED_ENTRIES_MIN, SIDE_BY_SIDE};
use crate::memory::Kept;
use crate::partition::{Flash, Shard, Shared};
use crate::policy::{Promotion, placement};
use crate::put::Entry;
use crate::record;
use crate::stats::add;
use granary_log::{Location, Placed};
use std::ops::Range;

impl Shared {
    /// Lets readers find entries, each at its place. `coming`: entries of each shard, these and what follows them
    /// in the batch; these are taken off. Whoever calls this holds `putting`, so that the index and the log agree
    /// on which version of a key is the last.
    pub fn show_many(
        &self,
        flash: &Flash,
        entries: &[Entry<'_>],
        placed: &[Option<Placed>],
        coming: &mut [usize; SHARDS],
    ) {
        let by_shard = ByShard::of_batch(entries.iter().map(|entry| entry.key.hash()));
        let show = |shards: Range<usize>| {
            for shard in shards {
                let mut locked = self.lock(shard);
                locked.table.expect(coming[shard]);
                for some in by_shard.of(shard).chunks(SIDE_BY_SIDE) {
                    prefetch_buckets(&locked.table, some);
                    for asked in some {
                        let i = asked.key as usize;
                        self.show(flash, &mut locked, entries[i], placed[i]);
                    }
                }
                locked.table.expect(0);
            }
        };
        let working = (entries.len() >= SHARED_ENTRIES_MIN).then(Working::begin);
        match working.as_ref().and_then(Working::help) {
            Some(help) => _ = help.both(|| show(0..SHARDS / 2), |_| show(SHARDS / 2..SHARDS)),
            None => show(0..SHARDS),
        }
        by_shard.shards().for_each(|(shard, asked)| coming[shard] -= asked.len());
    }

    /// Lets readers find an entry at its place; without one, lets them find no older version.
    fn show(&self, flash: &Flash, shard: &mut Shard, entry: Entry<'_>, placed: Option<Placed>) {
        let Shard { table, memory, hints } = shard;
        let indexed = placed.is_some_and(|placed| self.index(flash, table, hints, entry.key, placed));
        if !indexed {
            return forget(flash, shard, entry.key);
        }
        match placement(self.memory_bytes) {
            Promotion::Promote if self.has_room_for_copy(flash, memory, entry.key, entry.value) => {
                memory.insert(entry.key, entry.value, entry.expires_at, Kept::Copy)
            }
            _ => _ = memory.remove(entry.key),
        }
    }

    /// Points a key at its place, and no longer at older ones; `false`: that is to be overwritten already.
    pub fn index(
        &self,
        flash: &Flash,
        table: &mut Table,
        hints: &Hints,
        key: Key<'_>,
        placed: Placed,
    ) -> bool {
        // A chunk longer than a very small file overwrites its own beginning.
        if !flash.log.keeps(placed) {
            flash.note_unindexed();
            return false;
        }
        let bits = key.hash().below_shard(table.hash_bits());
        let same = |place| !is_other_key(flash, hints, key, place);
        let blocks = flash.log.geometry().blocks();
        let age = |place: u64| (placed.block + blocks - place) % blocks;
        if table.insert(bits, placed.block, same, age).evicted.is_some() {
            add(&self.counters.evicted_index, 1);
            flash.note_unindexed();
        }
        true
    }
}

fn prefetch_buckets(table: &Table, asked: &[Asked]) {
    asked.iter().for_each(|asked| table.prefetch(asked.hash.below_shard(table.hash_bits())));
}

/// Lets readers find no version of a key.
pub(crate) fn forget(flash: &Flash, Shard { table, memory, hints }: &mut Shard, key: Key<'_>) {
    memory.remove(key);
    let bits = key.hash().below_shard(table.hash_bits());
    table.remove_where(bits, |place| !is_other_key(flash, hints, key, place));
}

/// Whether the block at `place` is known not to hold `key`. The holder of the shard's lock asks.
pub(crate) fn is_other_key(flash: &Flash, hints: &Hints, key: Key<'_>, place: u64) -> bool {
    match flash.log.locate(place) {
        Location::Memory(segment) => {
            let segment = segment.read();
            let payload = flash.log.geometry().payload_size();
            segment.block(place).is_some_and(|(count, bytes)| {
                let bytes = &granary_log::block::payload(bytes)[..payload];
                record::find_last(bytes, count, key.bytes()).is_none()
            })
        }
        Location::Device { sequence } => hints.contains(key, place, sequence),
    }
}
