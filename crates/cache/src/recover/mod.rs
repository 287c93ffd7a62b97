//! Filling the index from the summaries that the log found.

mod again;
mod by_shard;
mod memory;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod power_loss_tests;
mod replay;
mod summaries;

use crate::flash::Flash;
use crate::framing::{Records, Summary};
use crate::limits::{OPENING_PASSES_MAX, RECORDS_REPLAYED_TOGETHER_MAX, REPLAYED_IN_PARTS, SHARDS};
use crate::shared::Shared;
use granary_log::Recovered;
use granary_log::parallel::{each_in_parallel, threads};
use replay::{Replay, records_of_shards};
use std::collections::BTreeMap;
use std::ops::Range;
use summaries::Summaries;

/// Changes that never reached the device: the number of the segment that they were for, and their summary entries.
type Lost = BTreeMap<u64, Vec<u64>>;

/// Whether there are segments that could not be read, and might the next time.
fn misses_some(flash: &Flash, recovered: &Recovered<Records>) -> bool {
    let written = flash.log.head().min(flash.log.geometry().segments());
    (recovered.segments.len() as u64) < written
}

/// Shards whose entries are kept in RAM at the same time, of so many records in all.
fn passes(records: usize, opening_entries: u64) -> impl Iterator<Item = Range<usize>> {
    let at_once = usize::try_from(opening_entries).unwrap_or(usize::MAX).max(records / OPENING_PASSES_MAX);
    let passes = records.div_ceil(at_once.max(1)).clamp(1, OPENING_PASSES_MAX);
    let shards = SHARDS.div_ceil(passes);
    (0..SHARDS).step_by(shards).map(move |first| first..(first + shards).min(SHARDS))
}

impl Shared {
    /// Fills the index from what the log found.
    pub fn recover(&self, recovered: &mut Recovered<Records>, opening_entries: u64) {
        let Some(flash) = &self.flash else { return };
        if misses_some(flash, recovered) {
            flash.note_unindexed();
        }
        let records: usize = recovered.segments.iter().map(|segment| segment.records).sum();
        let segment_bytes = flash.log.geometry().segment_bytes();
        self.measure(records as u64, recovered.segments.len() as u64 * segment_bytes);
        if recovered.segments.iter().all(Summary::is_whole) {
            return self.replay(flash, 0..SHARDS, &recovered.segments, &recovered.lost);
        }
        recovered.segments.iter_mut().for_each(Summary::clear);
        for shards in passes(records, opening_entries) {
            let segments = again::read(flash, &recovered.segments, &shards);
            self.replay(flash, shards, &segments, &recovered.lost);
        }
    }

    /// Replays what these segments have of these shards.
    fn replay(&self, flash: &Flash, shards: Range<usize>, segments: &[Summary], lost: &Lost) {
        let summaries = &Summaries::new(*flash.log.geometry(), segments);
        let records = &records_of_shards(segments);
        let records_max =
            RECORDS_REPLAYED_TOGETHER_MAX.min(records.iter().sum::<usize>() / REPLAYED_IN_PARTS);
        let at_once = shards.len().div_ceil(threads(shards.len()));
        let part = |first: usize| first..(first + at_once).min(shards.end);
        let parts = shards.clone().step_by(at_once).map(part).collect();
        each_in_parallel(parts, |shards| {
            let mut replay = Replay::begin(self, shards, records, summaries);
            let mut rest = segments;
            for (sequence, changes) in lost {
                let (before, later) =
                    rest.split_at(rest.partition_point(|segment| segment.sequence <= *sequence));
                replay_together(&mut replay, before, records_max);
                replay.void(changes);
                rest = later;
            }
            replay_together(&mut replay, rest, records_max);
            if replay.end(&self.counters) {
                self.note_unindexed();
            }
        });
    }
}

/// Replays segments, with so many records at once, or one segment's.
fn replay_together(replay: &mut Replay<'_>, segments: &[Summary], records_max: usize) {
    let mut records = segments.first().map_or(0, |first| first.records);
    let has_room = |_: &Summary, next: &Summary| {
        let sum = records + next.records;
        records = if sum <= records_max { sum } else { next.records };
        sum <= records_max
    };
    segments.chunk_by(has_room).for_each(|together| replay.segments(together));
}
