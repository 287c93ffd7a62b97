//! Reading summaries from the device, or deriving them from the blocks of segments that have none.

use super::summary::{self, Summary, has_summary};
use super::summary_entries::SummaryEntries;
use super::{SummaryEntriesOf, block};
use granary_log::{AlignedBuffer, SummarySource};
use std::ops::Range;

/// The summaries of the segments in `slots`; `None` where there is no whole and valid one.
pub(super) fn read(
    summary_entries_of: SummaryEntriesOf,
    source: &SummarySource<'_>,
    slots: Range<u64>,
) -> Vec<Option<Summary>> {
    let geometry = source.geometry;
    if has_summary(geometry) {
        return slots.map(|slot| read_summary(source, slot)).collect();
    }
    let segment_bytes = geometry.segment_bytes() as usize;
    let count = (slots.end - slots.start) as usize;
    let mut bytes = AlignedBuffer::zeroed(count * segment_bytes);
    let offset = |slot: u64| geometry.offset(geometry.first_block_of_slot(slot));
    if source.device.read_at(offset(slots.start), &mut bytes).is_err() {
        // One bad sector must not cost its neighbours: read them one by one.
        for (slot, part) in slots.clone().zip(bytes.chunks_exact_mut(segment_bytes)) {
            if source.device.read_at(offset(slot), part).is_err() {
                part.fill(0);
            }
        }
    }
    let parts = bytes.chunks_exact(segment_bytes);
    slots.zip(parts).map(|(slot, part)| scan_blocks(summary_entries_of, source, slot, part)).collect()
}

fn read_summary(source: &SummarySource<'_>, slot: u64) -> Option<Summary> {
    let (geometry, size) = (source.geometry, source.geometry.block_size());
    let all = u64::from(geometry.blocks_per_segment());
    let first_block = geometry.first_block_of_slot(slot);
    let mut last = AlignedBuffer::zeroed(size);
    source.device.read_at(geometry.offset(first_block + all - 1), &mut last).ok()?;
    let trailer = summary::parse_trailer(&last, geometry, source.instance, first_block)?;
    let mut bytes = AlignedBuffer::zeroed(trailer.blocks * size);
    let before = bytes.len() - size;
    if before > 0 {
        let offset = geometry.offset(first_block + all - trailer.blocks as u64);
        source.device.read_at(offset, &mut bytes[..before]).ok()?;
    }
    bytes[before..].copy_from_slice(&last);
    summary::parse(&bytes, trailer, geometry, source.instance, first_block)
}

/// A segment without summary is valid if all of its blocks are, with one sequence number.
fn scan_blocks(
    summary_entries_of: SummaryEntriesOf,
    source: &SummarySource<'_>,
    slot: u64,
    bytes: &[u8],
) -> Option<Summary> {
    let first_block = source.geometry.first_block_of_slot(slot);
    let mut summary = Summary {
        sequence: 0,
        first_block,
        counts: Vec::new(),
        entries: SummaryEntries::default(),
        with_look_alikes: Vec::new(),
        records: 0,
    };
    let mut entries = Vec::new();
    for (block, number) in bytes.chunks_exact(source.geometry.block_size()).zip(first_block..) {
        let header = block::check(block, source.instance, number)?;
        if number > first_block && header.sequence != summary.sequence {
            return None;
        }
        summary.sequence = header.sequence;
        summary.counts.push(header.count);
        summary_entries_of(source.salt, block::payload(block), header.count, &mut entries);
    }
    let total: usize = summary.counts.iter().map(|c| usize::from(*c)).sum();
    summary.records = total;
    summary.entries = entries.into_iter().collect();
    (total == summary.entries.len()).then_some(summary)
}
