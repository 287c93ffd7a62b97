//! Makes appended entries visible to readers, in the index and the RAM tier, shard after shard.

use crate::batch::{KeyInBatch, KeysByShard};
use crate::drive::Working;
use crate::entry::StoredEntry;
use crate::flash::Flash;
use crate::framing::Placed;
use crate::limits::{SHARDS, SHARED_ENTRIES_MIN, SIDE_BY_SIDE};
use crate::partition_state::PartitionState;
use crate::policy::{Promotion, placement};
use crate::shard::{Shard, point};
use crate::shard_index::LookAlikes;
use crate::stats::add;
use granary_log::sync::Mutex;
use std::ops::Range;

impl PartitionState {
    /// Makes entries visible to readers, each in its block. `coming`: the entries of each shard still to come in the
    /// batch, from which these are subtracted. The caller holds `tombstones`, so that the index and the log agree on
    /// the last version of a key. Returns the numbers of the entries beside which all look-alikes stay in the index.
    pub fn publish_many(
        &self,
        flash: &Flash,
        entries: &[StoredEntry<'_>],
        placed: &[Option<Placed>],
        coming: &mut [usize; SHARDS],
    ) -> Vec<usize> {
        let with_look_alikes = Mutex::default();
        let by_shard = KeysByShard::of_batch(entries.iter().map(|entry| entry.key.hash()));
        let publish = |shards: Range<usize>| {
            for shard in shards {
                let mut locked = self.lock_shard(shard);
                locked.index.table.announce(coming[shard]);
                let asked = by_shard.keys_of(shard);
                asked.iter().take(SIDE_BY_SIDE).for_each(|asked| locked.index.prefetch(asked.hash));
                for (n, KeyInBatch { key, .. }) in asked.iter().enumerate() {
                    asked.get(n + SIDE_BY_SIDE).iter().for_each(|ahead| locked.index.prefetch(ahead.hash));
                    if n % SIDE_BY_SIDE == 0 {
                        let ahead = asked[n..].iter().take(SIDE_BY_SIDE);
                        ahead.for_each(|ahead| locked.memory.prefetch_for_put(ahead.hash));
                    }
                    let i = *key as usize;
                    if self.publish(flash, &mut locked, entries[i], placed[i]) {
                        let mut with_look_alikes = with_look_alikes.lock().expect("no panic under the lock");
                        Vec::push(&mut with_look_alikes, i);
                    }
                }
                let expected = locked.index.look_alikes_expected(asked.len());
                add(&self.counters.look_alikes_expected, expected);
                locked.index.table.announce(0);
            }
        };
        let working = (entries.len() >= SHARED_ENTRIES_MIN).then(|| self.helpers.begin());
        match working.as_ref().and_then(Working::help) {
            Some(help) => _ = help.both(|| publish(0..SHARDS / 2), |_| publish(SHARDS / 2..SHARDS)),
            None => publish(0..SHARDS),
        }
        by_shard.shards().for_each(|(shard, asked)| coming[shard] -= asked.len());
        with_look_alikes.into_inner().expect("no panic under the lock")
    }

    /// Makes an entry visible in its block; without a block, makes older versions unreachable.
    /// Returns whether look-alikes of it are in the index, none of which it replaced.
    fn publish(
        &self,
        flash: &Flash,
        shard: &mut Shard,
        entry: StoredEntry<'_>,
        placed: Option<Placed>,
    ) -> bool {
        let StoredEntry { key, value, expires_at } = entry;
        let (index, counters) = (&mut shard.index, &self.counters);
        let look_alikes = LookAlikes::MayBeIts;
        let inserted = placed.and_then(|placed| {
            point(index, flash, key, placed, look_alikes, counters, &counters.taken_over_unsure)
        });
        let Some(inserted) = inserted else {
            shard.unpublish(flash, key, counters);
            return false;
        };
        match placement(self.memory_bytes) {
            Promotion::Promote if self.has_room_for_copy(flash, entry.bytes() as u64) => {
                self.copy_to_memory(&mut shard.memory, key, value, expires_at);
            }
            _ => _ = shard.memory.remove(key),
        }
        // Recovery cannot tell which of the look-alikes have left the index: it must remove all of them.
        inserted.has_look_alikes && inserted.unsure == 0
    }
}
