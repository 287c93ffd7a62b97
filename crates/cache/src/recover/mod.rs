//! Filling the index from the summaries that the log found.

mod again;
mod memory;
mod parallel;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod power_loss_tests;
mod summaries;

use crate::flash::Flash;
use crate::framing::{Records, Summary};
use crate::key::{RecordKind, parse_summary_entry};
use crate::limits::{OPENING_PASSES_MAX, SHARDS, SIDE_BY_SIDE};
use crate::shared::Shared;
use crate::stats::add;
use granary_log::Recovered;
use parallel::{each_in_parallel, threads};
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
    /// Replays what the log found, oldest first: later entries replace earlier ones, deletions and
    /// lost changes remove them.
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
        let at_once = shards.len().div_ceil(threads(shards.len()));
        let part = |first: usize| first..(first + at_once).min(shards.end);
        let parts = shards.clone().step_by(at_once).map(part).collect();
        each_in_parallel(parts, |shards| self.recover_shards(shards, segments, lost, summaries));
    }

    fn recover_shards(
        &self,
        shards: Range<usize>,
        segments: &[Summary],
        lost: &Lost,
        summaries: &Summaries<'_>,
    ) {
        let blocks = summaries.geometry.blocks();
        // What the index took for a version of the key then is taken for one now, or else an entry that it had lost
        // sight of would come back: a deletion takes out all that look alike, and so does an entry unless it was put
        // beside them. DRAM first, each one was (write/evict.rs).
        let is_hybrid = self.hybrid().is_some();
        let mut tables: Vec<_> = shards.clone().map(|shard| self.lock(shard)).collect();
        let mut entries = vec![0; shards.len()];
        for summary_entry in segments.iter().flat_map(|segment| &segment.entries) {
            if let Some(count) = parse_summary_entry(*summary_entry)
                .0
                .shard()
                .checked_sub(shards.start)
                .and_then(|i| entries.get_mut(i))
            {
                *count += 1;
            }
        }
        for (shard, entries) in tables.iter_mut().zip(&entries) {
            shard.places.table.resize_for(*entries);
        }
        let mut lost = lost.iter().peekable();
        let (mut evicted, mut compared, mut displaced) = (false, 0, 0);
        let mut records = Vec::new();
        for segment in segments.iter().map(Some).chain([None]) {
            let until = segment.map_or(u64::MAX, |segment| segment.sequence);
            while let Some((_, summary_entries)) = lost.next_if(|(sequence, _)| **sequence < until) {
                for summary_entry in summary_entries
                    .iter()
                    .filter(|summary_entry| shards.contains(&parse_summary_entry(**summary_entry).0.shard()))
                {
                    let hash = parse_summary_entry(*summary_entry).0;
                    let table = &mut tables[hash.shard() - shards.start].places.table;
                    let bits = hash.below_shard(table.hash_bits());
                    table.remove_where(bits, |_| true);
                }
            }
            records.clear();
            let summary_entries = segment.iter().flat_map(|segment| segment.iter());
            let of_shards = |(_, summary_entry): &(u64, u64)| {
                shards.contains(&parse_summary_entry(*summary_entry).0.shard())
            };
            records.extend(summary_entries.filter(of_shards));
            for (i, (place, summary_entry)) in records.iter().copied().enumerate() {
                if let Some((_, ahead)) = records.get(i + SIDE_BY_SIDE) {
                    let hash = parse_summary_entry(*ahead).0;
                    tables[hash.shard() - shards.start].places.prefetch(hash);
                }
                let (hash, kind) = parse_summary_entry(summary_entry);
                let table = &mut tables[hash.shard() - shards.start].places.table;
                let bits = hash.below_shard(table.hash_bits());
                match kind {
                    RecordKind::Entry => {
                        let is_beside =
                            is_hybrid || segment.is_some_and(|segment| segment.is_beside(summary_entry));
                        let same = |place| {
                            compared += 1;
                            let is_its = summaries.holds(place, hash);
                            displaced += u64::from(!is_its && !is_beside);
                            is_its || !is_beside
                        };
                        let age = |other| (place + blocks - other) % blocks;
                        evicted |= table.insert(bits, place, same, age).evicted.is_some();
                    }
                    RecordKind::Deletion => {
                        table.remove_where(bits, |_| true);
                    }
                }
            }
        }
        if evicted {
            self.note_unindexed();
        }
        add(&self.counters.compared_at_start, compared);
        add(&self.counters.displaced_at_start, displaced);
        for (shard, entries) in tables.iter_mut().zip(&entries) {
            // Keys that were written several times were counted several times.
            if shard.places.table.len() * 20 < entries * 19 {
                let live = shard.places.table.len();
                shard.places.table.resize_for(live);
            }
        }
    }
}
