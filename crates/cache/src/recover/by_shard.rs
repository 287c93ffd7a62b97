//! The records of neighbouring segments, sorted by their shards: 8 bytes each.

use crate::framing::Summary;
use crate::key::{KeyHash, RecordKind, parse_summary_entry};
use crate::limits::{HASH_BITS, SHARDS};
use granary_log::Geometry;
use std::collections::BTreeMap;
use std::ops::Range;

/// Summary entries of changes that never reached the device, by the sequence number of their segment.
pub(super) type Lost = BTreeMap<u64, Vec<u64>>;

/// Bits of a hash below those that choose the shard.
const HASH_BELOW_SHARD_BITS: u32 = HASH_BITS - SHARDS.ilog2();

/// The lowest bits of a packed record: whether the record deletes, and whether it was put beside look-alikes.
const DELETION: u64 = 1;
const HAS_LOOK_ALIKES: u64 = 1 << 1;
const FLAG_BITS: u32 = 2;

/// Blocks that the packed records of one list can distinguish.
const BLOCKS_MAX: u64 = 1 << (u64::BITS - FLAG_BITS - HASH_BELOW_SHARD_BITS);

/// A record to be replayed, of a known shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Replayed {
    /// The hash below the shard's bits, at the top; then a block number, replaced by `block_number`; then flags.
    packed: u64,
    /// The block (of the file) that it begins in.
    pub block_number: u64,
}

impl Replayed {
    /// The uppermost `bits` bits of the hash below those that choose the shard.
    pub fn hash(self, bits: u32) -> u64 {
        self.packed >> (u64::BITS - bits)
    }

    /// All bits of the hash in summaries, below those that choose the shard.
    pub fn whole_hash(self) -> u64 {
        self.hash(HASH_BELOW_SHARD_BITS)
    }

    pub fn kind(self) -> RecordKind {
        if self.packed & DELETION == 0 { RecordKind::Entry } else { RecordKind::Deletion }
    }

    /// Whether it was put beside others that look alike to the index.
    pub fn has_look_alikes(self) -> bool {
        self.packed & HAS_LOOK_ALIKES != 0
    }
}

/// Neighbouring segments, and the changes that were lost between them.
pub(super) struct SegmentGroup<'a> {
    geometry: Geometry,
    segments: &'a mut [Summary],
    /// (index of the segment before which they come, their summary entries).
    lost: Vec<(usize, &'a [u64])>,
}

impl<'a> SegmentGroup<'a> {
    /// All segments, which are in order, in groups of at most `records_max` records, or of one segment.
    pub fn group(
        geometry: Geometry,
        mut segments: &'a mut [Summary],
        lost: &'a Lost,
        records_max: usize,
    ) -> Vec<Self> {
        let mut groups = Vec::new();
        let mut lost = lost.iter().peekable();
        while !segments.is_empty() {
            let len = group_len(&geometry, segments, records_max);
            let (group, later) = segments.split_at_mut(len);
            let next = later.first().map_or(u64::MAX, |segment| segment.sequence);
            let of_group = std::iter::from_fn(|| lost.next_if(|(sequence, _)| **sequence < next));
            let before = |sequence| group.partition_point(|segment| segment.sequence <= sequence);
            let of_group = of_group.map(|(sequence, entries)| (before(*sequence), &entries[..])).collect();
            groups.push(Self { geometry, segments: group, lost: of_group });
            segments = later;
        }
        groups
    }

    /// Their records by shard. It removes the entries from the summaries.
    pub fn sort(self) -> Vec<RecordsByShard> {
        self.sort_in_parts(BLOCKS_MAX)
    }

    /// Sorts as [`sort`](Self::sort) does, `blocks_max` blocks at a time.
    pub(super) fn sort_in_parts(self, blocks_max: u64) -> Vec<RecordsByShard> {
        let blocks = self.segments.len() as u64 * u64::from(self.geometry.blocks_per_segment());
        let firsts = (0..blocks).step_by(blocks_max as usize);
        let sorted = firsts.map(|first| self.sort_part(first..(first + blocks_max).min(blocks))).collect();
        self.segments.iter_mut().for_each(Summary::clear);
        sorted
    }

    /// The records of `blocks`, which are counted over all segments.
    fn sort_part(&self, blocks: Range<u64>) -> RecordsByShard {
        let mut begins = [0; SHARDS + 1];
        self.for_each(&blocks, |entry, _, _| begins[parse_summary_entry(entry).0.shard() + 1] += 1);
        for shard in 1..=SHARDS {
            begins[shard] += begins[shard - 1];
        }
        let mut packed = vec![0; begins[SHARDS]];
        let mut ends = begins;
        self.for_each(&blocks, |entry, block, flags| {
            let (hash, kind) = parse_summary_entry(entry);
            let end = &mut ends[hash.shard()];
            packed[*end] = pack(hash, block, flags | kind as u64);
            *end += 1;
        });
        let blocks_per_segment = u64::from(self.geometry.blocks_per_segment());
        let first_blocks = self.segments.iter().map(|segment| segment.first_block).collect();
        RecordsByShard { first_blocks, blocks_per_segment, first: blocks.start, begins, packed }
    }

    /// Calls `visit(entry, block, flags)` for each record of `blocks`, in order; `block` counts from the first of
    /// these.
    fn for_each(&self, blocks: &Range<u64>, mut visit: impl FnMut(u64, u64, u64)) {
        let mut lost = self.lost.iter().peekable();
        let blocks_per_segment = u64::from(self.geometry.blocks_per_segment());
        for i in 0..=self.segments.len() {
            let first = i as u64 * blocks_per_segment;
            while let Some((_, entries)) = lost.next_if(|(before, _)| *before == i) {
                // Lost changes count as part of the last block before them.
                if blocks.contains(&first.saturating_sub(1)) {
                    let at = first.saturating_sub(1) - blocks.start;
                    entries.iter().for_each(|entry| visit(entry & !1 | RecordKind::Deletion as u64, at, 0));
                }
            }
            let Some(segment) = self.segments.get(i) else { break };
            let has_any = !segment.with_look_alikes.is_empty();
            for (block_number, entry) in segment.iter() {
                let block = first + block_number - segment.first_block;
                if blocks.contains(&block) {
                    let has_look_alikes = has_any && segment.has_look_alikes(entry);
                    visit(entry, block - blocks.start, if has_look_alikes { HAS_LOOK_ALIKES } else { 0 });
                }
            }
        }
    }
}

/// A record in 8 bytes, as [`Replayed`] has it; `block` counts from the first of its list.
fn pack(hash: KeyHash, block: u64, flags: u64) -> u64 {
    hash.below_shard(HASH_BELOW_SHARD_BITS) << (u64::BITS - HASH_BELOW_SHARD_BITS)
        | block << FLAG_BITS
        | flags
}

/// The number of leading segments that are sorted together: at least one.
fn group_len(geometry: &Geometry, segments: &[Summary], records_max: usize) -> usize {
    let mut records = 0;
    let blocks_per_segment = u64::from(geometry.blocks_per_segment());
    let fits = |(before, segment): (usize, &Summary)| {
        records += segment.records;
        records <= records_max && (before as u64 + 1) * blocks_per_segment <= BLOCKS_MAX
    };
    segments.iter().enumerate().map(fits).take_while(|fits| *fits).count().max(1)
}

/// Records of neighbouring segments, grouped by shard, in their order.
pub(super) struct RecordsByShard {
    /// The first block (of the file) of each of the segments.
    first_blocks: Vec<u64>,
    blocks_per_segment: u64,
    /// The block, counted over all segments, that the packed records' block numbers start from.
    first: u64,
    /// The beginnings of each shard's records, and the end of all.
    begins: [usize; SHARDS + 1],
    packed: Vec<u64>,
}

impl RecordsByShard {
    /// The number of a shard's records.
    pub fn len_of(&self, shard: usize) -> usize {
        self.begins[shard + 1] - self.begins[shard]
    }

    /// The records of a shard.
    pub fn records_of(&self, shard: usize) -> impl DoubleEndedIterator<Item = Replayed> + '_ {
        self.packed[self.begins[shard]..self.begins[shard + 1]].iter().map(|packed| {
            let block = self.first + ((packed >> FLAG_BITS) & (BLOCKS_MAX - 1));
            let segment = self.first_blocks[(block / self.blocks_per_segment) as usize];
            Replayed { packed: *packed, block_number: segment + block % self.blocks_per_segment }
        })
    }
}
