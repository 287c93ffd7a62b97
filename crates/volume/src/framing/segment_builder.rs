//! A segment that is being filled: a header, blocks of content, a footer after each commit's content, a summary.

use super::entry::{Entry, checksum};
use super::footer::{self, FooterHeader, Kind, blocks_for};
use granary_log::{Geometry, SegmentId};
use std::ops::Range;

/// Builds a segment: adds content to its blocks, and collects the entries of its footers and its summary.
pub struct SegmentBuilder {
    /// In the order of the changes.
    pub(super) entries: Vec<Entry>,
    /// The block that the next content goes to, counted from the segment's first.
    pub(super) position: usize,
    /// The number of entries in footers so far.
    committed: usize,
    /// The block that follows the last footer.
    committed_position: usize,
    /// The blocks before this one are durable.
    pub(super) synced_position: usize,
    /// The durability noted in the header. Commit and sealing may write the header at the same time, so both must write
    /// the same bytes: a mixture of both is valid then.
    pub(super) of_header: Option<Durable>,
}

/// The part of the log that was durable when a part of a segment was written.
#[derive(Clone, Copy)]
pub(super) struct Durable {
    /// The sequence number up to which everything was synced.
    pub synced: u64,
    /// Everything in segments before this one is in the checkpoint.
    pub checkpoint: u64,
}

impl Default for SegmentBuilder {
    fn default() -> Self {
        // The first block is the header.
        Self {
            entries: Vec::new(),
            position: 1,
            committed: 0,
            committed_position: 1,
            synced_position: 0,
            of_header: None,
        }
    }
}

impl SegmentBuilder {
    /// Whether `blocks` more blocks and an entry fit, with the footer and the summary that they will need.
    ///
    /// At least as many blocks stay free for the summary as an entry for each block takes. So of this segment only the
    /// summary is written over the summary of the slot's former segment (if that had no more entries), and its blocks
    /// carry their sequence number: a half overwritten summary is recognised.
    fn has_room(&self, geometry: &Geometry, blocks: usize) -> bool {
        let footer = blocks_for(geometry, self.entries.len() + 1 - self.committed);
        let all = geometry.blocks_per_segment() as usize;
        let summary = blocks_for(geometry, self.entries.len() + 2).max(blocks_for(geometry, all));
        self.position + blocks + footer + summary <= all
    }

    /// Adds the content of a logical block, and returns the block of the log that it lies in; `None`: no room is left.
    pub fn push(
        &mut self,
        id: &SegmentId,
        blocks: &mut [u8],
        lba: u64,
        content_hash: u64,
        data: &[u8],
    ) -> Option<u64> {
        if !self.has_room(&id.geometry, 1) {
            return None;
        }
        let size = id.geometry.block_size();
        blocks[self.position * size..(self.position + 1) * size].copy_from_slice(data);
        let checksum = checksum(id.instance, id.sequence, lba, content_hash);
        self.entries.push(Entry::Block { lba, checksum });
        self.position += 1;
        Some(id.first_block + self.position as u64 - 1)
    }

    /// Notes that logical blocks are zero; `None`: no room is left.
    pub fn push_zeroes(&mut self, id: &SegmentId, lba: u64, count: u64) -> Option<()> {
        if !self.has_room(&id.geometry, 0) {
            return None;
        }
        self.entries.push(Entry::Zeroes { lba, count });
        Some(())
    }

    /// Writes a footer for the entries since the last one, and returns the end of the blocks that a recovery needs.
    pub(super) fn commit(&mut self, id: &SegmentId, blocks: &mut [u8], durable: Durable) -> usize {
        if self.committed == self.entries.len() {
            return if self.entries.is_empty() { 0 } else { self.committed_position };
        }
        self.write_header(id, blocks, durable);
        let new = &self.entries[self.committed..];
        let len = blocks_for(&id.geometry, new.len());
        let footer = self.position..self.position + len;
        let header = FooterHeader {
            position: self.committed_position as u32,
            synced: durable.synced,
            follows_synced: self.synced_position >= self.committed_position,
            ..header(id, Kind::Commit)
        };
        write(id, blocks, footer, header, new);
        self.position += len;
        self.entries.push(Entry::Footer { blocks: len as u32 });
        (self.committed, self.committed_position) = (self.entries.len(), self.position);
        self.position
    }

    /// Writes the summary, and returns its blocks.
    pub(super) fn seal(&mut self, id: &SegmentId, blocks: &mut [u8], durable: Durable) -> Range<usize> {
        self.write_header(id, blocks, durable);
        let summary = self.summary_blocks(&id.geometry);
        let header = FooterHeader { position: 1, synced: durable.synced, ..header(id, Kind::Summary) };
        write(id, blocks, summary.clone(), header, &self.entries);
        summary
    }

    fn write_header(&mut self, id: &SegmentId, blocks: &mut [u8], durable: Durable) {
        let Durable { synced, checkpoint } = *self.of_header.get_or_insert(durable);
        let position = FooterHeader::position_of(id.sequence, checkpoint);
        write(id, blocks, 0..1, FooterHeader { position, synced, ..header(id, Kind::Header) }, &[]);
    }

    /// The blocks that the summary takes, at the segment's end.
    pub(super) fn summary_blocks(&self, geometry: &Geometry) -> Range<usize> {
        let all = geometry.blocks_per_segment() as usize;
        all - blocks_for(geometry, self.entries.len())..all
    }
}

/// The common part of the headers of a segment's header, footers and summary.
fn header(id: &SegmentId, kind: Kind) -> FooterHeader {
    FooterHeader {
        sequence: id.sequence,
        kind,
        index: 0,
        blocks: 0,
        entries: 0,
        position: 0,
        synced: 0,
        reuse_after_checkpoint: true,
        follows_synced: false,
    }
}

fn write(id: &SegmentId, blocks: &mut [u8], range: Range<usize>, header: FooterHeader, entries: &[Entry]) {
    let size = id.geometry.block_size();
    let first = id.first_block + range.start as u64;
    footer::write(
        &mut blocks[range.start * size..range.end * size],
        &id.geometry,
        id.instance,
        first,
        header,
        entries,
    );
}
