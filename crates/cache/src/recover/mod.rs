//! Filling the index from the summaries that the log found.

mod memory;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod power_loss_tests;

use crate::flash::Flash;
use crate::framing::{Records, Summary};
use crate::key::{KeyHash, RecordKind, parse_summary_entry};
use crate::limits::{SHARDS, SIDE_BY_SIDE};
use crate::shared::Shared;
use crate::stats::add;
use granary_log::{Geometry, Recovered};

/// Summaries with what is needed to ask which summary entries a block holds.
struct Summaries<'a> {
    geometry: Geometry,
    /// Of each slot the summary, and where the summary entries of each of its blocks begin.
    of_slots: Vec<Option<(&'a Summary, Vec<u32>)>>,
}

impl<'a> Summaries<'a> {
    fn new(geometry: Geometry, segments: &'a [Summary]) -> Self {
        let starts = |summary: &Summary| {
            let ends = summary.counts.iter().scan(0, |sum, count| {
                *sum += u32::from(*count);
                Some(*sum)
            });
            std::iter::once(0).chain(ends).collect()
        };
        let mut of_slots = Vec::new();
        of_slots.resize_with(geometry.segments() as usize, || None);
        for summary in segments {
            of_slots[geometry.slot(summary.sequence) as usize] = Some((summary, starts(summary)));
        }
        Self { geometry, of_slots }
    }

    /// Whether an entry with this hash lies in the block.
    fn holds(&self, place: u64, hash: KeyHash) -> bool {
        let Some((summary, starts)) = &self.of_slots[self.geometry.slot_of_block(place) as usize] else {
            return false;
        };
        let i = (place - summary.first_block) as usize;
        summary.entries[starts[i] as usize..starts[i + 1] as usize]
            .contains(&hash.summary_entry(RecordKind::Entry))
    }
}

/// Whether there are segments that could not be read, and might the next time.
fn misses_some(flash: &Flash, recovered: &Recovered<Records>) -> bool {
    let written = flash.log.head().min(flash.log.geometry().segments());
    (recovered.segments.len() as u64) < written
}

impl Shared {
    /// Replays what the log found, oldest first: later entries replace earlier ones, deletions and
    /// lost changes remove them.
    pub fn recover(&self, recovered: &Recovered<Records>) {
        let Some(flash) = &self.flash else { return };
        if misses_some(flash, recovered) {
            flash.note_unindexed();
        }
        let records: usize = recovered.segments.iter().map(|segment| segment.entries.len()).sum();
        let segment_bytes = flash.log.geometry().segment_bytes();
        self.measure(records as u64, recovered.segments.len() as u64 * segment_bytes);
        let summaries = &Summaries::new(*flash.log.geometry(), &recovered.segments);
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(SHARDS);
        let per_thread = SHARDS.div_ceil(threads);
        granary_log::sync::thread::scope(|scope| {
            for first in (0..SHARDS).step_by(per_thread) {
                let shards = first..(first + per_thread).min(SHARDS);
                scope.spawn(move || self.recover_shards(shards, recovered, summaries));
            }
        });
    }

    fn recover_shards(
        &self,
        shards: std::ops::Range<usize>,
        recovered: &Recovered<Records>,
        summaries: &Summaries<'_>,
    ) {
        let blocks = summaries.geometry.blocks();
        // What the index took for a version of the key then is taken for one now, or else an entry that it had lost
        // sight of would come back: a deletion takes out all that look alike, and so does an entry unless it was put
        // beside them. DRAM first, each one was (write/evict.rs).
        let is_hybrid = self.hybrid().is_some();
        let mut tables: Vec<_> = shards.clone().map(|shard| self.lock(shard)).collect();
        let mut entries = vec![0; shards.len()];
        for summary_entry in recovered.segments.iter().flat_map(|segment| &segment.entries) {
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
        let mut lost = recovered.lost.iter().peekable();
        let (mut evicted, mut compared, mut displaced) = (false, 0, 0);
        let mut records = Vec::new();
        for segment in recovered.segments.iter().map(Some).chain([None]) {
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
