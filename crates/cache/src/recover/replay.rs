//! Replaying what segments have of some shards, oldest first: later entries replace earlier ones, deletions and lost
//! changes remove them.
//!
//! What the index took for a version of the key then is taken for one now, or else an entry that it had lost sight of
//! would come back: a deletion takes out all that look alike, and so does an entry unless it was put beside them.
//! DRAM first, each one was (write/evict.rs).

use super::by_shard::{ByShard, Replayed};
use super::summaries::Summaries;
use crate::framing::Summary;
use crate::index::Table;
use crate::key::{KeyHash, RecordKind, parse_summary_entry};
use crate::limits::{SHARDS, SIDE_BY_SIDE};
use crate::shard::Shard;
use crate::shared::Shared;
use crate::stats::{Counters, add};
use granary_log::sync::sync::MutexGuard;
use std::ops::Range;

/// A table that was made for more entries than it has, in percent of them, is dealt out again.
const ENTRIES_EXPECTED_PERCENT_MAX: usize = 105;

/// How many places are looked at side by side.
const LOOKED_AT_TOGETHER: usize = 256;

/// How many records of each shard there are.
pub(super) fn records_of_shards(segments: &[Summary]) -> [usize; SHARDS] {
    let mut records = [0; SHARDS];
    for entry in segments.iter().flat_map(|segment| segment.entries.iter()) {
        records[parse_summary_entry(entry).0.shard()] += 1;
    }
    records
}

/// The tables of some shards while they are filled.
pub(super) struct Replay<'a> {
    shards: Range<usize>,
    tables: Vec<MutexGuard<'a, Shard>>,
    /// Records of each of these shards, all versions counted.
    records: &'a [usize],
    by_shard: ByShard,
    is_hybrid: bool,
    compared: Compared<'a>,
    is_any_evicted: bool,
}

impl<'a> Replay<'a> {
    /// Locks the shards, whose tables are made for as many entries as there are records of each.
    pub fn begin(
        shared: &'a Shared,
        shards: Range<usize>,
        records: &'a [usize; SHARDS],
        summaries: &'a Summaries<'a>,
    ) -> Self {
        let mut tables: Vec<_> = shards.clone().map(|shard| shared.lock(shard)).collect();
        let records = &records[shards.clone()];
        for (shard, records) in tables.iter_mut().zip(records) {
            shard.places.table.resize_for(*records);
        }
        Self {
            tables,
            records,
            by_shard: ByShard::new(shards.clone()),
            shards,
            is_hybrid: shared.hybrid().is_some(),
            compared: Compared { summaries, taken_over: Vec::new(), count: 0, displaced: 0 },
            is_any_evicted: false,
        }
    }

    /// Takes out what looks like these changes' keys.
    pub fn void(&mut self, summary_entries: &[u64]) {
        for entry in summary_entries {
            let hash = parse_summary_entry(*entry).0;
            if self.shards.contains(&hash.shard()) {
                let table = &mut self.tables[hash.shard() - self.shards.start].places.table;
                table.remove_where(hash.below_shard(table.hash_bits()), |_| true);
            }
        }
    }

    /// Takes in what these segments have of these shards: shard by shard, so that its table is in the processor's cache.
    pub fn segments(&mut self, segments: &[Summary]) {
        self.by_shard.sort(segments);
        let (is_hybrid, compared) = (self.is_hybrid, &mut self.compared);
        for (shard, records) in self.tables.iter_mut().zip(self.by_shard.shards()) {
            let table = &mut shard.places.table;
            for (i, record) in records.iter().enumerate() {
                if let Some(ahead) = records.get(i + SIDE_BY_SIDE) {
                    table.prefetch(ahead.hash().below_shard(table.hash_bits()));
                }
                self.is_any_evicted |= replay_record(table, *record, is_hybrid, compared);
            }
        }
    }

    /// Gives back the RAM of entries that were counted several times, for keys that were written several times. Whether
    /// an entry had to leave.
    pub fn end(mut self, counters: &Counters) -> bool {
        self.compared.look();
        add(&counters.compared_at_start, self.compared.count);
        add(&counters.displaced_at_start, self.compared.displaced);
        for (shard, records) in self.tables.iter_mut().zip(self.records) {
            let entries = shard.places.table.len();
            if entries * ENTRIES_EXPECTED_PERCENT_MAX < records * 100 {
                shard.places.table.resize_for(entries);
            }
        }
        self.is_any_evicted
    }
}

/// Whether another entry had to leave.
fn replay_record(table: &mut Table, record: Replayed, is_hybrid: bool, compared: &mut Compared<'_>) -> bool {
    let (hash, place) = (record.hash(), record.place);
    let bits = hash.below_shard(table.hash_bits());
    match record.kind() {
        RecordKind::Entry => {
            let blocks = compared.summaries.geometry.blocks();
            let age = |other| (place + blocks - other) % blocks;
            let same = |other| match is_hybrid || record.is_beside() {
                true => compared.is_its(other, hash),
                false => compared.take_over(other, hash),
            };
            table.insert(bits, place, same, age).evicted.is_some()
        }
        RecordKind::Deletion => {
            table.remove_where(bits, |_| true);
            false
        }
    }
}

/// Entries that were compared with others which look like them.
struct Compared<'a> {
    summaries: &'a Summaries<'a>,
    /// Places that were taken over, by which hash: whose they were is looked at for many at once.
    taken_over: Vec<(u64, KeyHash)>,
    count: u64,
    /// Places of other keys that were taken over.
    displaced: u64,
}

impl Compared<'_> {
    /// Whether the entry at `place` has this very hash.
    fn is_its(&mut self, place: u64, hash: KeyHash) -> bool {
        self.count += 1;
        self.summaries.holds(place, hash)
    }

    /// Takes over the entry at `place`, whosever it is.
    fn take_over(&mut self, place: u64, hash: KeyHash) -> bool {
        self.count += 1;
        self.taken_over.push((place, hash));
        if self.taken_over.len() == LOOKED_AT_TOGETHER {
            self.look();
        }
        true
    }

    /// Counts which of the places that were taken over were other keys'.
    fn look(&mut self) {
        for (i, (place, hash)) in self.taken_over.iter().enumerate() {
            if let Some((ahead, _)) = self.taken_over.get(i + SIDE_BY_SIDE) {
                self.summaries.prefetch(*ahead);
            }
            self.displaced += u64::from(!self.summaries.holds(*place, *hash));
        }
        self.taken_over.clear();
    }
}
