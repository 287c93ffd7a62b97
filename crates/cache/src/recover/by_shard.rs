//! The records of several segments, sorted by their shards.

use crate::framing::Summary;
use crate::key::{KeyHash, RecordKind, parse_summary_entry};
use std::ops::Range;

/// A bit that no summary entry has: the record was put beside others that look alike to the index.
const BESIDE: u64 = 1 << 63;

/// A record to be replayed.
#[derive(Clone, Copy, Default)]
pub(super) struct Replayed {
    /// The block (of the file) that it begins in.
    pub place: u64,
    /// Its summary entry, perhaps with [`BESIDE`].
    entry: u64,
}

impl Replayed {
    pub fn hash(self) -> KeyHash {
        parse_summary_entry(self.entry & !BESIDE).0
    }

    pub fn kind(self) -> RecordKind {
        parse_summary_entry(self.entry).1
    }

    pub fn is_beside(self) -> bool {
        self.entry & BESIDE != 0
    }
}

/// Records of some shards, each shard's one after the other and in their order.
pub(super) struct ByShard {
    shards: Range<usize>,
    /// One more than there are records.
    records: Vec<Replayed>,
    /// Where the records of each shard begin, and where all of them end.
    begins: Vec<usize>,
}

impl ByShard {
    pub fn new(shards: Range<usize>) -> Self {
        let begins = vec![0; shards.len() + 1];
        Self { shards, records: Vec::new(), begins }
    }

    /// Replaces what was there by what these segments have of the shards.
    pub fn sort(&mut self, segments: &[Summary]) {
        // No branch depends on a hash, which no processor could foresee: records of other shards are counted, and
        // written, where nobody looks.
        let (first, others) = (self.shards.start, self.shards.len());
        let index = |entry: u64| parse_summary_entry(entry).0.shard().wrapping_sub(first).min(others);
        let mut counts = vec![0; others + 1];
        for entry in segments.iter().flat_map(|segment| segment.entries.iter()) {
            counts[index(entry)] += 1;
        }
        let mut sum = 0;
        for (begin, count) in self.begins.iter_mut().zip(counts) {
            *begin = sum;
            sum += count;
        }
        let end = self.begins[others];
        self.records.resize(self.records.len().max(end + 1), Replayed::default());
        let mut ends = self.begins.clone();
        for segment in segments {
            let has_beside = !segment.beside.is_empty();
            for (place, entry) in segment.iter() {
                let i = index(entry);
                let beside = if has_beside && segment.is_beside(entry) { BESIDE } else { 0 };
                self.records[ends[i]] = Replayed { place, entry: entry | beside };
                ends[i] += usize::from(i < others);
            }
        }
    }

    /// The records of each shard.
    pub fn shards(&self) -> impl Iterator<Item = &[Replayed]> {
        self.begins.windows(2).map(|range| &self.records[range[0]..range[1]])
    }
}
