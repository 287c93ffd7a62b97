//! Filling the index from the summaries that the log found.

mod adopt_memory;
mod by_shard;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod power_loss_tests;
mod replay;
#[cfg(test)]
mod replay_tests;
mod reread_summaries;

use crate::flash::Flash;
use crate::framing::{Records, Summary};
use crate::limits::{OPENING_PASSES_MAX, RECORDS_SORTED_TOGETHER, SHARDS, SHARDS_REPLAYED_TOGETHER};
use crate::partition_state::PartitionState;
use crate::shard::Shard;
use crate::stats::add;
use by_shard::{Lost, RecordsByShard, Replayed, SegmentGroup};
use granary_log::Recovered;
use granary_log::parallel::each_in_parallel;
use replay::Dealt;
use std::ops::Range;

/// The passes, each a range of shards whose entries fit in RAM at the same time, for `records` records in all.
fn passes(records: usize, opening_entries: u64) -> impl Iterator<Item = Range<usize>> {
    let at_once = usize::try_from(opening_entries).unwrap_or(usize::MAX).max(records / OPENING_PASSES_MAX);
    let passes = records.div_ceil(at_once.max(1)).clamp(1, OPENING_PASSES_MAX);
    let shards = SHARDS.div_ceil(passes);
    (0..SHARDS).step_by(shards).map(move |first| first..(first + shards).min(SHARDS))
}

impl PartitionState {
    /// Fills the index from the log's recovered content.
    pub fn recover(&self, recovered: &mut Recovered<Records>, opening_entries: u64) {
        let Some(flash) = &self.flash else { return };
        if (recovered.segments.len() as u64) < recovered.expected {
            // Unreadable segments may be readable the next time.
            flash.note_unindexed();
        }
        let records: usize = recovered.segments.iter().map(|segment| segment.records).sum();
        let segment_bytes = flash.log.geometry().segment_bytes();
        self.measure(records as u64, recovered.segments.len() as u64 * segment_bytes);
        if recovered.segments.iter().all(Summary::is_whole) {
            return self.replay(flash, 0..SHARDS, &mut recovered.segments, &recovered.lost);
        }
        recovered.segments.iter_mut().for_each(Summary::clear);
        for shards in passes(records, opening_entries) {
            let mut segments = reread_summaries::read(flash, &recovered.segments, &shards);
            self.replay(flash, shards, &mut segments, &recovered.lost);
        }
    }

    /// Replays the records of `shards` in `segments`, and removes the entries from their summaries.
    fn replay(&self, flash: &Flash, shards: Range<usize>, segments: &mut [Summary], lost: &Lost) {
        let groups = SegmentGroup::group(*flash.log.geometry(), segments, lost, RECORDS_SORTED_TOGETHER);
        let mut sorted: Vec<Vec<RecordsByShard>> = groups.iter().map(|_| Vec::new()).collect();
        each_in_parallel(groups.into_iter().zip(&mut sorted).collect(), |(group, sorted)| {
            *sorted = group.sort();
        });
        let sorted: Vec<RecordsByShard> = sorted.into_iter().flatten().collect();
        // Replaying needs a second copy of a shard's records, so a few shards are replayed at a time.
        let in_turn =
            |first| shards.clone().skip(first).step_by(SHARDS_REPLAYED_TOGETHER).collect::<Vec<_>>();
        each_in_parallel((0..SHARDS_REPLAYED_TOGETHER).map(in_turn).collect(), |shards| {
            shards.into_iter().for_each(|shard| self.replay_shard(flash, shard, &sorted));
        });
    }

    fn replay_shard(&self, flash: &Flash, shard: usize, sorted: &[RecordsByShard]) {
        let mut locked = self.lock_shard(shard);
        let Shard { index, .. } = &mut *locked;
        // Segments are written in the order of the ring.
        let newest = sorted
            .iter()
            .rev()
            .find_map(|sorted| sorted.records_of(shard).next_back())
            .map_or(0, |last| last.block_number);
        let blocks = flash.log.geometry().blocks();
        let age = |block: u64| (newest + blocks - block) % blocks;
        let hash_bits = index.table.hash_bits();
        let mut left = Dealt::of_shard(sorted, shard).replay(hash_bits, self.is_dram_first());
        let entry = |entry: &Replayed| (entry.hash(hash_bits), entry.block_number);
        let evicted = index.table.replace_all(&mut left.entries, entry, age);
        add(&self.counters.compared_at_start, left.compared);
        add(&self.counters.displaced_at_start, left.displaced);
        if left.is_any_evicted || evicted > 0 {
            flash.note_unindexed();
        }
    }
}
