//! Replaying the records of a shard: later entries replace earlier ones, deletions and lost changes remove them.
//!
//! Whatever the index treated as a version of the key then is treated so now; otherwise an entry that it had lost would
//! come back: a deletion removes all look-alikes, and so does an entry unless it was put beside them. DRAM first, every
//! entry was (write/evict.rs).

use super::by_shard::{RecordsByShard, Replayed};
use crate::key::RecordKind;
use crate::limits::{SAME_HASH_MAX, TAG_BITS_MIN};

/// Records that are sorted at once, on average.
const RECORDS_SORTED_AT_ONCE: usize = 64;

/// A shard's records are divided into at most 2^`DEALT_BITS_MAX` parts.
const DEALT_BITS_MAX: u32 = 11;
const _: () = assert!(DEALT_BITS_MAX < TAG_BITS_MIN, "what looks alike is in one part");

/// The entries of a shard that are left after the replay, with counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReplayedShard {
    /// In the order of the hash bits that the index knows.
    pub entries: Vec<Replayed>,
    /// Entries that others were compared with.
    pub compared: u64,
    /// Replaced entries of other keys.
    pub displaced: u64,
    /// An entry had to leave because too many looked alike.
    pub is_any_evicted: bool,
}

/// The records of a shard, divided by the upper bits of their hashes; records of one hash are oldest first.
pub(super) struct Dealt {
    records: Vec<Replayed>,
    /// The number of these upper bits.
    bits: u32,
    /// The start of each part, and the end of the last one.
    begins: Vec<usize>,
}

impl Dealt {
    /// All records of a shard.
    pub fn of_shard(sorted: &[RecordsByShard], shard: usize) -> Self {
        let len: usize = sorted.iter().map(|sorted| sorted.len_of(shard)).sum();
        let bits = (len / RECORDS_SORTED_AT_ONCE).next_power_of_two().ilog2().clamp(1, DEALT_BITS_MAX);
        let records = || sorted.iter().flat_map(|sorted| sorted.records_of(shard));
        let mut begins = vec![0; (1 << bits) + 1];
        records().for_each(|record| begins[record.hash(bits) as usize + 1] += 1);
        for part in 1..begins.len() {
            begins[part] += begins[part - 1];
        }
        let mut ends = begins.clone();
        let mut dealt = vec![Replayed::default(); len];
        for record in records() {
            let end = &mut ends[record.hash(bits) as usize];
            dealt[*end] = record;
            *end += 1;
        }
        Self { records: dealt, bits, begins }
    }

    /// Replays the records. `hash_bits`: the bits of a hash that the index knows.
    pub fn replay(mut self, hash_bits: u32, is_dram_first: bool) -> ReplayedShard {
        let (mut left, mut entries) = (ReplayedShard::default(), 0);
        // A sort key for each record, which is sorted faster than the record: the bits of the hash that differ within a
        // part, then the record's number in it. That number has at least 23 bits, and 34 in a shard of that many
        // records.
        let number_bits = u64::BITS - (hash_bits - self.bits);
        let number = |sort_key: u64| (sort_key & ((1 << number_bits) - 1)) as usize;
        let (mut records, mut sort_keys, mut alike) =
            (Vec::new(), Vec::new(), Vec::with_capacity(SAME_HASH_MAX));
        for part in self.begins.windows(2) {
            records.clear();
            records.extend_from_slice(&self.records[part[0]..part[1]]);
            let sort_key = |(i, record): (usize, &Replayed)| record.hash(hash_bits) << number_bits | i as u64;
            sort_keys.clear();
            sort_keys.extend(records.iter().enumerate().map(sort_key));
            sort_keys.sort_unstable();
            for same in sort_keys.chunk_by(|a, b| a >> number_bits == b >> number_bits) {
                same.iter().for_each(|sort_key| {
                    left.replay_one(records[number(*sort_key)], is_dram_first, &mut alike)
                });
                // They overwrite records that are already copied to `records`.
                for entry in alike.drain(..) {
                    self.records[entries] = entry;
                    entries += 1;
                }
            }
        }
        self.records.truncate(entries);
        ReplayedShard { entries: self.records, ..left }
    }
}

impl ReplayedShard {
    /// Replays a record over `alike`, its look-alikes, oldest first.
    fn replay_one(&mut self, record: Replayed, is_dram_first: bool, alike: &mut Vec<Replayed>) {
        if record.kind() == RecordKind::Deletion {
            alike.clear();
            return;
        }
        self.compared += alike.len() as u64;
        let is_its = |other: &Replayed| other.whole_hash() == record.whole_hash();
        if is_dram_first || record.has_look_alikes() {
            alike.retain(|other| !is_its(other));
            if alike.len() == SAME_HASH_MAX {
                alike.remove(0);
                self.is_any_evicted = true;
            }
        } else {
            self.displaced += alike.drain(..).filter(|other| !is_its(other)).count() as u64;
        }
        alike.push(record);
    }
}
