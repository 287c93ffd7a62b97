//! DRAM first: entries stay in RAM until they have to leave, and only then, and only if the policy admits them, go to
//! flash.
//!
//! A put writes nothing, unless an older version is on flash: that gets a deletion, so that a kill does not bring it
//! back while the newer one was in RAM only. The index tells whether there is one; entries that it does not know are
//! bounded by [`DramFirst::unindexed_until`](crate::dram_first::DramFirst::unindexed_until).

use crate::batch::KeysByShard;
use crate::dram_first::DramFirst;
use crate::entry::{OnRefusal, Refusal, StoredEntry};
use crate::flash::Flash;
use crate::headroom::Headroom;
use crate::key::Key;
use crate::limits::{OVERWRITE_CHUNK, PUT_CHUNK};
use crate::memory::{EntryState, Eviction};
use crate::partition_state::PartitionState;
use crate::record::HEADER_SIZE_MAX;
use crate::shard::Shard;
use crate::stats::add;
use granary_log::sync::atomic::Ordering;

impl PartitionState {
    /// Keeps entries in RAM; `refused` is called for those that are not kept.
    pub fn put_dram_first(
        &self,
        flash: &Flash,
        dram_first: &DramFirst,
        entries: &[StoredEntry<'_>],
        refused: &mut OnRefusal<'_>,
    ) {
        let mut first = 0;
        while first < entries.len() {
            let is_large =
                |entry: &StoredEntry<'_>| dram_first.writes && entry.bytes() as u64 > self.large_bytes;
            let large = is_large(&entries[first]);
            let same = |entry: &&StoredEntry<'_>| is_large(entry) == large;
            let run = &entries[first..first + entries[first..].iter().take_while(same).count()];
            if large {
                let put = |(i, entry): (usize, &StoredEntry<'_>)| {
                    self.put_large(flash, dram_first, *entry, &mut |_, why| refused(first + i, why));
                };
                run.iter().enumerate().for_each(put);
            } else {
                self.keep(flash, dram_first, run, &mut |i, why| refused(first + i, why));
            }
            first += run.len();
        }
        let mut admitter = dram_first.admitter.lock().expect("no panic under the lock");
        for entry in entries {
            admitter.on_put(entry.key, entry.bytes() as u64);
        }
        dram_first.sample_threshold.store(admitter.sample_threshold(), Ordering::Relaxed);
    }

    /// Writes an entry that is too large to wait in RAM, if the budget and the write buffers have room; else it waits
    /// in RAM after all.
    fn put_large(
        &self,
        flash: &Flash,
        dram_first: &DramFirst,
        entry: StoredEntry<'_>,
        refused: &mut OnRefusal<'_>,
    ) {
        let affordable = {
            let mut admitter = dram_first.admitter.lock().expect("no panic under the lock");
            admitter.affords(entry.bytes() as u64, dram_first.opened.elapsed().as_secs_f64())
        };
        let mut refused_by_flash = None;
        if affordable {
            // Possible older versions are deleted as for any put: the record itself voids none.
            self.delete_dram_first(flash, dram_first, &[entry.key]);
            self.put_through(flash, &[entry], &mut |_, why| refused_by_flash = Some(why));
            if refused_by_flash.is_none() {
                return;
            }
            dram_first.admitter.lock().expect("no panic under the lock").refund(entry.bytes() as u64);
        }
        // If the entry is too long for RAM, too, the refusal by flash counts: a later put may succeed.
        self.keep(flash, dram_first, &[entry], &mut |i, why| refused(i, refused_by_flash.unwrap_or(why)));
    }

    fn keep(
        &self,
        flash: &Flash,
        dram_first: &DramFirst,
        entries: &[StoredEntry<'_>],
        refused: &mut OnRefusal<'_>,
    ) {
        let mut over = Vec::new();
        let mut crowded = None;
        for (i, asked) in KeysByShard::of_batch(entries.iter().map(|entry| entry.key.hash())).shards() {
            let mut shard = self.lock_shard(i);
            let unindexed = flash.has_unindexed(dram_first);
            add(&self.counters.look_alikes_expected, shard.index.look_alikes_expected(asked.len()));
            // All keys of a shard under one lock: if two entries have one key, the later one stays.
            for asked in asked {
                let entry = entries[asked.key as usize];
                if unindexed || shard.index.may_have(&flash.log, entry.key) {
                    over.push(asked.key as usize);
                } else if !put_one_in_memory(flash, dram_first, &mut shard, entry) {
                    refused(asked.key as usize, Refusal::TooLong);
                }
            }
            if Headroom::of(flash, &self.pool) != Headroom::Enough {
                crowded = Some(i);
            }
        }
        for chunk in over.chunks(OVERWRITE_CHUNK) {
            let keys: Vec<Key<'_>> = chunk.iter().map(|i| entries[*i].key).collect();
            self.delete_chunk(flash, &keys, |shard, i| {
                if !put_one_in_memory(flash, dram_first, shard, entries[chunk[i]]) {
                    refused(chunk[i], Refusal::TooLong);
                }
            });
            crowded = keys.last().map(|key| key.hash().shard()).or(crowded);
        }
        if let Some(shard) = crowded {
            self.make_room(flash, dram_first, shard);
        }
    }

    /// Wakes the evictor, or does its work if it is too far behind, in `shard` first.
    fn make_room(&self, flash: &Flash, dram_first: &DramFirst, shard: usize) {
        let found = Headroom::of(flash, &self.pool);
        if found != Headroom::Enough {
            dram_first.wake();
        }
        if found <= Headroom::BelowHalf {
            self.evict_shards(flash, dram_first, shard, Headroom::BelowTarget);
            if Headroom::of(flash, &self.pool) == Headroom::Exceeded {
                // The device is behind, too: entries leave without asking the policy.
                let mut unseen = 0;
                self.relieve(shard, |_| {
                    unseen += 1;
                    Eviction::Drop
                });
                add(&self.counters.left_unseen, unseen);
            }
        }
    }

    /// Removes keys; entries in RAM only leave no trace.
    pub fn delete_dram_first(&self, flash: &Flash, dram_first: &DramFirst, keys: &[Key<'_>]) {
        let mut over = Vec::new();
        for (i, asked) in KeysByShard::of_batch(keys.iter().map(|key| key.hash())).shards() {
            let mut shard = self.lock_shard(i);
            let unindexed = flash.has_unindexed(dram_first);
            add(&self.counters.look_alikes_expected, shard.index.look_alikes_expected(asked.len()));
            for asked in asked {
                let key = keys[asked.key as usize];
                if unindexed || shard.index.may_have(&flash.log, key) {
                    over.push(key);
                } else {
                    shard.memory.remove(key);
                }
            }
        }
        for chunk in over.chunks(PUT_CHUNK) {
            self.delete_chunk(flash, chunk, |_, _| {});
        }
    }
}

/// Keeps an entry; `false`: it is too large, and older versions in RAM are removed. What could never be written is
/// refused now rather than lost when it has to leave RAM.
fn put_one_in_memory(
    flash: &Flash,
    dram_first: &DramFirst,
    shard: &mut Shard,
    entry: StoredEntry<'_>,
) -> bool {
    let StoredEntry { key, value, expires_at } = entry;
    if dram_first.writes && !flash.fits(key.bytes().len(), HEADER_SIZE_MAX + entry.bytes()) {
        shard.memory.remove(key);
        return false;
    }
    shard.memory.insert(key, value, expires_at, EntryState::Dirty, 0)
}
