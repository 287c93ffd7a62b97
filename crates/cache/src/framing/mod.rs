//! The layout of a cache's segments: records packed into blocks that check themselves, and a summary behind them.

#[cfg(test)]
mod adopt_tests;
pub mod block;
mod free_spaces;
pub mod fuzzing;
mod marks;
mod read_summaries;
mod segment_builder;
mod sharing;
mod summary;
mod summary_entries;
#[cfg(test)]
mod tests;

pub use segment_builder::SegmentBuilder;
pub use sharing::SharingRule;
pub use summary::{Summary, has_summary};

use crate::key::{RecordKind, parse_summary_entry};
use block::BlockHeader;
use granary_log::sync::atomic::{AtomicU64, Ordering};
use granary_log::{Framing, Geometry, SealedBlocks, SegmentId, SegmentReader, SummarySource, Writer};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Makes the summary entries of the records that begin in a block, in order; used where segments carry no summary. It
/// appends them to `entries`; `payload` is the block after its header, `count` its number of records.
pub type SummaryEntriesOf = fn(salt: u64, payload: &[u8], count: u16, entries: &mut Vec<u64>);

/// The framing of records. Each has an entry of 48 bits in the summary of its segment: its key's hash, and whether it
/// deletes the key.
#[derive(Clone)]
pub struct Records {
    /// Makes the summary entries of a block's records.
    pub summary_entries_of: SummaryEntriesOf,
    /// The rule for records that share a block. Part of the content: another rule needs another fingerprint.
    pub sharing_rule: SharingRule,
    /// Entries are written when they leave RAM, and stay beside look-alikes of other keys. A deletion removes these
    /// look-alikes from the index, too, and their later changes may be in RAM only.
    pub is_dram_first: bool,
    /// The number of summary entries that recovery may still keep, in all logs that share this; later summaries come
    /// without entries.
    pub entries_to_recover: Arc<AtomicU64>,
}

/// A log of records.
pub type Log = granary_log::Log<Records>;

/// The place where a record was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Sequence number of the segment.
    pub sequence: u64,
    /// The block (of the file) that the record begins in.
    pub block: u64,
}

/// Appends a record made of `parts`. `None`: the device is behind, or the record is longer than [`record_bytes_max`];
/// nothing was written. It never waits.
pub fn append(writer: &mut Writer<'_, Records>, entry: u64, parts: &[&[u8]]) -> Option<Placed> {
    let rule = writer.framing().sharing_rule;
    writer.fill(|id, builder, blocks| {
        let block = builder.append(id, rule, blocks, entry, parts)?;
        Some(Placed { sequence: id.sequence, block })
    })
}

/// Notes that the record with summary entry `entry`, at `placed`, was put beside others that look alike to the index.
/// If its segment was sealed already, nothing is noted, and recovery lets the record replace those others.
pub fn note_look_alikes(writer: &mut Writer<'_, Records>, entry: u64, placed: Placed) {
    writer.amend(placed.sequence, |id, builder| builder.note_look_alikes(&id.geometry, entry));
}

/// Longest record that fits a segment, in bytes.
pub fn record_bytes_max(geometry: &Geometry) -> usize {
    let all = geometry.blocks_per_segment() as usize;
    let data = (1..=all).rev().find(|data| data + summary::blocks(geometry, *data, 1) <= all);
    data.unwrap_or(0) * block::payload_size(geometry)
}

/// The records that begin in `block` (of the file), and the bytes from there to the segment's end.
/// `None`: nothing was written there.
pub fn records_in<'a>(segment: &'a SegmentReader<'_, Records>, block: u64) -> Option<(u16, &'a [u8])> {
    let count = segment.builder().count(block.checked_sub(segment.first_block())? as usize)?;
    Some((count, segment.bytes_from(block)))
}

/// Whether no more records will begin in `block` (of the file), in a segment that is in RAM.
pub fn is_settled(segment: &SegmentReader<'_, Records>, block: u64) -> bool {
    segment.builder().is_settled((block - segment.first_block()) as usize)
}

impl Framing for Records {
    type Builder = SegmentBuilder;
    type Summary = Summary;

    fn begin(&self, _: &SegmentId) -> SegmentBuilder {
        SegmentBuilder::default()
    }

    fn bytes_allocated(builder: &SegmentBuilder) -> usize {
        builder.bytes_allocated()
    }

    /// Writes headers, checksums and the summary.
    fn seal(&self, id: &SegmentId, builder: &mut SegmentBuilder, blocks: &mut [u8]) -> SealedBlocks {
        let SegmentId { geometry, instance, sequence, first_block } = id;
        let size = geometry.block_size();
        let [data, summary] = self.used(geometry, builder);
        let SegmentBuilder { counts, entries, with_look_alikes, .. } = builder;
        for i in data.clone() {
            let count = counts.get(i).copied().unwrap_or(0);
            let header = BlockHeader { sequence: *sequence, count };
            block::seal(&mut blocks[i * size..(i + 1) * size], *instance, first_block + i as u64, header);
        }
        if !summary.is_empty() {
            summary::write(&mut blocks[summary.start * size..], geometry, counts, entries, with_look_alikes);
            // The last block first: `SegmentBuilder::taken_over` relies on it.
            for i in summary.clone().rev() {
                let header = BlockHeader { sequence: *sequence, count: 0 };
                block::seal(&mut blocks[i * size..(i + 1) * size], *instance, first_block + i as u64, header);
            }
        }
        SealedBlocks { data, summary }
    }

    fn used(&self, geometry: &Geometry, builder: &SegmentBuilder) -> [Range<usize>; 2] {
        let all = geometry.blocks_per_segment() as usize;
        let summary = summary::blocks(
            geometry,
            builder.counts.len(),
            builder.entries.len() + builder.with_look_alikes.len(),
        );
        let data = if has_summary(geometry) { builder.counts.len() } else { all };
        [0..data, all - summary..all]
    }

    fn summarize(&self, id: &SegmentId, builder: &SegmentBuilder) -> Summary {
        Summary {
            sequence: id.sequence,
            first_block: id.first_block,
            counts: builder.counts.clone(),
            entries: builder.entries.iter().copied().collect(),
            with_look_alikes: builder.with_look_alikes.clone(),
            records: builder.entries.len(),
        }
    }

    fn position(summary: &Summary) -> (u64, u64) {
        (summary.sequence, summary.first_block)
    }

    fn remove_replaced(&self, entries: &mut Vec<u64>, later: &Summary) {
        let hash_of = |entry: u64| parse_summary_entry(entry).0.to_bits();
        let lost: HashSet<u64> = entries.iter().copied().map(hash_of).collect();
        let voids_as_much =
            |entry: &u64| !self.is_dram_first || parse_summary_entry(*entry).1 == RecordKind::Deletion;
        let replaced: HashSet<u64> = later
            .entries
            .iter()
            .filter(voids_as_much)
            .map(hash_of)
            .filter(|hash| lost.contains(hash))
            .collect();
        entries.retain(|entry| !replaced.contains(&hash_of(*entry)));
    }

    fn read(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<Summary>> {
        read_summaries::read(self.summary_entries_of, source, slots)
    }

    fn read_to_recover(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<Summary>> {
        let mut summaries = self.read(source, slots);
        for summary in summaries.iter_mut().flatten() {
            let records = summary.records as u64;
            let left = |left: u64| left.checked_sub(records);
            if self.entries_to_recover.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
                summary.clear();
            }
        }
        summaries
    }

    fn take_over(&self, id: &SegmentId, salt: u64, blocks: &mut [u8]) -> Option<SegmentBuilder> {
        SegmentBuilder::taken_over(id, self.summary_entries_of, salt, blocks)
    }

    fn sequence_of_block(&self, source: &SummarySource<'_>, block: u64, bytes: &[u8]) -> Option<u64> {
        Some(block::check(bytes, source.instance, block)?.sequence)
    }
}
