//! Filling the index from the summaries that the log found.

mod memory;

use crate::flash::Flash;
use crate::framing::{Records, Summary};
use crate::key::{KeyHash, WordKind, parse_word};
use crate::limits::SHARDS;
use crate::shared::Shared;
use granary_log::{Geometry, Recovered};
use std::collections::HashMap;

/// Summaries with what is needed to ask which words a block holds.
struct Summaries<'a> {
    geometry: Geometry,
    by_slot: HashMap<u64, (&'a Summary, Vec<u32>)>,
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
        let slot = |summary: &Summary| geometry.slot(summary.sequence);
        let by_slot = segments.iter().map(|summary| (slot(summary), (summary, starts(summary)))).collect();
        Self { geometry, by_slot }
    }

    /// Whether an entry with this hash lies in the block.
    fn holds(&self, place: u64, hash: KeyHash) -> bool {
        let Some((summary, starts)) = self.by_slot.get(&self.geometry.slot_of_block(place)) else {
            return false;
        };
        let i = (place - summary.first_block) as usize;
        summary.words[starts[i] as usize..starts[i + 1] as usize].contains(&hash.word(WordKind::Entry))
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
        let records: usize = recovered.segments.iter().map(|segment| segment.words.len()).sum();
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
        // DRAM first: the index itself said what was on flash, and it knows some bits of a hash only.
        // What it took for another version of a key then is taken for one now, or else a version that it
        // had lost sight of would come back.
        let all = self.hybrid().is_some();
        let mut tables: Vec<_> = shards.clone().map(|shard| self.lock(shard)).collect();
        let mut entries = vec![0; shards.len()];
        for word in recovered.segments.iter().flat_map(|segment| &segment.words) {
            if let Some(count) =
                parse_word(*word).0.shard().checked_sub(shards.start).and_then(|i| entries.get_mut(i))
            {
                *count += 1;
            }
        }
        for (shard, entries) in tables.iter_mut().zip(&entries) {
            shard.places.table.resize_for(*entries);
        }
        let mut lost = recovered.lost.iter().peekable();
        let mut evicted = false;
        for segment in recovered.segments.iter().map(Some).chain([None]) {
            let until = segment.map_or(u64::MAX, |segment| segment.sequence);
            while let Some((_, words)) = lost.next_if(|(sequence, _)| **sequence < until) {
                for word in words.iter().filter(|word| shards.contains(&parse_word(**word).0.shard())) {
                    let hash = parse_word(*word).0;
                    let table = &mut tables[hash.shard() - shards.start].places.table;
                    let bits = hash.below_shard(table.hash_bits());
                    table.remove_where(bits, |place| all || summaries.holds(place, hash));
                }
            }
            for (place, word) in segment.iter().flat_map(|segment| segment.iter()) {
                let (hash, kind) = parse_word(word);
                if !shards.contains(&hash.shard()) {
                    continue;
                }
                let table = &mut tables[hash.shard() - shards.start].places.table;
                let bits = hash.below_shard(table.hash_bits());
                let same = |place| all || summaries.holds(place, hash);
                match kind {
                    WordKind::Entry => {
                        let age = |other| (place + blocks - other) % blocks;
                        evicted |= table.insert(bits, place, same, age).evicted.is_some();
                    }
                    WordKind::Deletion => {
                        table.remove_where(bits, same);
                    }
                }
            }
        }
        if evicted {
            self.note_unindexed();
        }
        for (shard, entries) in tables.iter_mut().zip(&entries) {
            // Keys that were written several times were counted several times.
            if shard.places.table.len() * 20 < entries * 19 {
                let live = shard.places.table.len();
                shard.places.table.resize_for(live);
            }
        }
    }
}
