//! The layout of a volume's segments: plain, aligned blocks of content, and beside them entries with their logical
//! blocks and checksums.

mod entry;
mod footer;
pub mod fuzzing;
mod scan;
mod segment_builder;

pub use entry::{Entry, checksum, content_hash};
pub use scan::{Faults, Summary};
pub use segment_builder::SegmentBuilder;

use crate::limits::{BLOCKS_LOCKED_MAX, UTILISATION_PERCENT_MAX};
use footer::entries_per_block;
use granary_log::{Framing, Geometry, SealedBlocks, SegmentId, SummarySource};
use scan::Entries;
use segment_builder::Durable;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The framing of blocks.
#[derive(Clone, Default)]
pub struct Blocks {
    /// The sequence number up to which everything was synced.
    pub synced: Arc<AtomicU64>,
    /// Summaries of earlier segments are read without their entries.
    pub entries_from: Arc<AtomicU64>,
    /// Everything in segments before this one is in the checkpoint.
    pub checkpoint: Arc<AtomicU64>,
    /// The faults that a recovery has found.
    pub faults: Arc<Faults>,
}

/// The least number of logical blocks in a full segment, if nothing is committed in parts.
pub fn blocks_in_segment(geometry: &Geometry) -> u64 {
    let all = u64::from(geometry.blocks_per_segment());
    let per_block = entries_per_block(geometry) as u64;
    // A header, a footer and a summary.
    (1..all).rev().find(|data| data + 1 + 2 * (data + 2).div_ceil(per_block) <= all).unwrap_or(0)
}

/// The number of live blocks from which on cleaning a segment gains nothing: the move ends with a commit, whose footer
/// takes as many blocks as are dead. A full volume has room even if all its segments have as many live blocks.
pub fn live_to_clean_max(geometry: &Geometry) -> u64 {
    let blocks = blocks_in_segment(geometry);
    let footer = footer::blocks_for(geometry, blocks as usize) as u64;
    blocks.saturating_sub(footer).max((blocks * UTILISATION_PERCENT_MAX).div_ceil(100))
}

/// The number of live blocks from which on a segment may not fit into another one, if a commit follows each hold of the
/// writer's lock, under which [`BLOCKS_LOCKED_MAX`] of them are moved.
pub fn live_to_fit_max(geometry: &Geometry) -> u64 {
    let all = u64::from(geometry.blocks_per_segment());
    let blocks_for = |entries: u64| footer::blocks_for(geometry, entries as usize) as u64;
    let fits = |live: u64| {
        let [holds, rest] = [live / BLOCKS_LOCKED_MAX as u64, live % BLOCKS_LOCKED_MAX as u64];
        let last = if rest > 0 { blocks_for(rest) } else { 0 };
        // A header and a summary, see `SegmentBuilder::has_room`.
        1 + live + holds * blocks_for(BLOCKS_LOCKED_MAX as u64) + last + blocks_for(all) <= all
    };
    (1..all).find(|live| !fits(*live)).unwrap_or(all)
}

impl Blocks {
    /// The present state of durability.
    fn durable(&self) -> Durable {
        let [synced, checkpoint] =
            [&self.synced, &self.checkpoint].map(|number| number.load(Ordering::Acquire));
        Durable { synced, checkpoint }
    }

    fn read_with(
        &self,
        entries: Entries,
        source: &SummarySource<'_>,
        slots: Range<u64>,
    ) -> Vec<Option<Summary>> {
        let from = self.entries_from.load(Ordering::Acquire);
        scan::read(source, slots, from, entries, &self.faults)
    }
}

impl Framing for Blocks {
    type Builder = SegmentBuilder;
    type Summary = Summary;

    fn begin(&self, _: &SegmentId) -> SegmentBuilder {
        SegmentBuilder::default()
    }

    fn bytes_allocated(builder: &SegmentBuilder) -> usize {
        builder.entries.capacity() * size_of::<Entry>()
    }

    fn seal(&self, id: &SegmentId, builder: &mut SegmentBuilder, blocks: &mut [u8]) -> SealedBlocks {
        let summary = builder.seal(id, blocks, self.durable());
        SealedBlocks { data: 0..builder.position, summary }
    }

    fn commit(&self, id: &SegmentId, builder: &mut SegmentBuilder, blocks: &mut [u8]) -> Option<usize> {
        Some(builder.commit(id, blocks, self.durable()))
    }

    fn note_synced(&self, builder: &mut SegmentBuilder, position: usize) {
        builder.synced_position = builder.synced_position.max(position);
    }

    /// Nothing has to be cleared: blocks between the content and the summary are not written.
    fn used(&self, _: &Geometry, _: &SegmentBuilder) -> [Range<usize>; 2] {
        [0..0, 0..0]
    }

    fn summarize(&self, id: &SegmentId, builder: &SegmentBuilder) -> Summary {
        let mut position = 1;
        let with_position = |entry: &Entry| {
            let at = position;
            position += entry.blocks();
            (at, *entry)
        };
        Summary {
            sequence: id.sequence,
            first_block: id.first_block,
            entries: builder.entries.iter().map(with_position).collect(),
            synced: self.synced.load(Ordering::Acquire),
            checkpoint: builder.of_header.map_or(0, |durable| durable.checkpoint),
            reuse_after_checkpoint: true,
            synced_position: 0,
            is_sealed: true,
            is_read: true,
        }
    }

    fn position(summary: &Summary) -> (u64, u64) {
        (summary.sequence, summary.first_block)
    }

    fn read(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<Summary>> {
        self.read_with(Entries::Included, source, slots)
    }

    fn read_to_recover(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<Summary>> {
        self.read_with(Entries::CheckedOnly, source, slots)
    }

    fn sequence_of_block(&self, source: &SummarySource<'_>, block: u64, bytes: &[u8]) -> Option<u64> {
        Some(footer::check(bytes, source.instance, block)?.sequence)
    }
}

const _: () = assert!(blocks_are_plain());

/// Footers and entries leave no part of a block of 4 KiB unused.
const fn blocks_are_plain() -> bool {
    (4096 - footer::FOOTER_HEADER_BYTES).is_multiple_of(entry::ENTRY_BYTES)
}
