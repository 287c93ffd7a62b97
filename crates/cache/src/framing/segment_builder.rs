//! Packing records into the blocks of a segment that is being filled.

use super::block::{self, payload_size};
use super::free_spaces::{FreeSpace, FreeSpaces};
use super::marks::Marks;
use super::sharing::SharingRule;
use super::{SummaryEntriesOf, summary};
use crate::limits::{
    BLOCK_HEADER_SIZE, FREE_SPACE_BLOCKS_BACK_MAX, FREE_SPACE_RECORDS_BACK_MAX, SUMMARY_ENTRY_MAX,
};
use granary_log::{Geometry, SegmentId};

/// Builds a segment: adds records to its blocks, and collects its summary.
#[derive(Default)]
pub struct SegmentBuilder {
    /// Payload bytes used in the last data block.
    used: usize,
    /// Records that begin in each data block so far.
    pub(super) counts: Vec<u16>,
    /// The summary entry of each record, in order.
    pub(super) entries: Vec<u64>,
    /// The entries of records that were put beside others which look alike to the index, in ascending order.
    pub(super) with_look_alikes: Vec<u64>,
    /// Free space in blocks before the last one.
    free_spaces: FreeSpaces,
    /// Marks of the last block.
    marks: Marks,
}

impl SegmentBuilder {
    /// Rebuilds the builder of `blocks`, a segment that another process was filling or had sealed. `None`: the blocks
    /// are not of this segment, or hold something else.
    pub(super) fn taken_over(
        id: &SegmentId,
        summary_entries_of: SummaryEntriesOf,
        salt: u64,
        blocks: &mut [u8],
    ) -> Option<Self> {
        let geometry = &id.geometry;
        let size = geometry.block_size();
        let is_begun = |bytes: &&[u8]| block::noted(bytes).sequence == id.sequence;
        // The last block belongs to the summary, and may be half sealed.
        let data_max = geometry.blocks_per_segment() as usize - usize::from(summary::has_summary(geometry));
        let begun = blocks.chunks_exact(size).take(data_max).take_while(is_begun).count();
        // The last block of a summary is sealed first: if it is not, no block belongs to a summary.
        let last = blocks.chunks_exact(size).last()?;
        let trailer = summary::parse_trailer(last, geometry, id.instance, id.first_block)
            .filter(|trailer| summary::has_summary(geometry) && trailer.sequence == id.sequence);
        let data_blocks = trailer.map_or(begun, |trailer| trailer.data_blocks);
        if data_blocks > begun {
            return None;
        }
        let mut this = Self { used: payload_size(geometry), ..Self::default() };
        for bytes in blocks.chunks_exact(size).take(data_blocks) {
            let count = block::noted(bytes).count;
            let before = this.entries.len();
            summary_entries_of(salt, block::payload(bytes), count, &mut this.entries);
            if this.entries.len() - before != usize::from(count) {
                return None;
            }
            this.counts.push(count);
        }
        blocks[data_blocks * size..].fill(0);
        let summary = summary::blocks(geometry, data_blocks, this.entries.len());
        (data_blocks + summary <= geometry.blocks_per_segment() as usize).then_some(this)
    }

    /// The bytes of RAM of the bookkeeping.
    pub(super) fn bytes_allocated(&self) -> usize {
        self.counts.capacity() * 2
            + (self.entries.capacity() + self.with_look_alikes.capacity()) * 8
            + self.free_spaces.bytes_allocated()
            + self.marks.bytes_allocated()
    }

    /// Records that begin in a block, counted from the segment's first; `None`: nothing was written there.
    pub fn count(&self, block: usize) -> Option<u16> {
        self.counts.get(block).copied()
    }

    /// Whether no more records will begin in a block: later ones were begun, and it is full.
    pub fn is_settled(&self, block: usize) -> bool {
        block + 1 < self.counts.len() && !self.free_spaces.has(block)
    }

    /// Adds a record made of `parts`, and returns the block (of the file) that it begins in; `None`: no room left.
    pub fn append(
        &mut self,
        id: &SegmentId,
        rule: SharingRule,
        blocks: &mut [u8],
        entry: u64,
        parts: &[&[u8]],
    ) -> Option<u64> {
        assert!(entry <= SUMMARY_ENTRY_MAX, "summary entries have 48 bits");
        self.remove_look_alikes_note(entry);
        let payload = payload_size(&id.geometry);
        let len: usize = parts.iter().map(|p| p.len()).sum();
        let data_blocks = self.counts.len();
        let last_count = usize::from(self.counts.last().copied().unwrap_or(0));
        let last_entries = &self.entries[self.entries.len() - last_count..];
        let joins = last_count > 0
            && last_count < usize::from(u16::MAX)
            && len <= payload - self.used
            && (self.marks.exclude(rule, entry) || rule.allows(entry, last_entries));
        if !joins && let Some(block) = self.append_to_free_space(id, rule, blocks, entry, parts, len) {
            return Some(block);
        }
        let new_blocks = if joins { 0 } else { len.div_ceil(payload).max(1) };
        if !self.has_room(&id.geometry, new_blocks) {
            return None;
        }
        if !joins {
            self.leave_block(payload);
            self.counts.resize(data_blocks + new_blocks, 0);
            self.used = 0;
            self.marks.clear();
        }
        let first = self.counts.len() - new_blocks.max(1);
        self.counts[first] += 1;
        self.entries.push(entry);
        if joins {
            self.marks.note(rule, &self.entries[self.entries.len() - last_count - 1..]);
        }
        let begin = FreeSpace { block: first, used: self.used };
        let size = id.geometry.block_size();
        for begun in 0..new_blocks {
            block::note_sequence(&mut blocks[(first + begun) * size..], id.sequence);
        }
        let end = copy_in(&id.geometry, blocks, begin, parts);
        block::note_count(&mut blocks[first * size..], self.counts[first]);
        // A record over several blocks leaves the rest of its last block unused.
        self.used = if end.block > first { payload } else { end.used };
        Some(id.first_block + first as u64)
    }

    /// Notes that the record with this summary entry was put beside look-alikes, if there is room for the note:
    /// recovery then keeps those in the index, too.
    pub fn note_look_alikes(&mut self, geometry: &Geometry, entry: u64) {
        if summary::has_summary(geometry)
            && self.has_room(geometry, 0)
            && let Err(at) = self.with_look_alikes.binary_search(&entry)
        {
            self.with_look_alikes.insert(at, entry);
        }
    }

    /// Removes that note: a record with this summary entry is put again, perhaps in place of its look-alikes.
    fn remove_look_alikes_note(&mut self, entry: u64) {
        if let Ok(at) = self.with_look_alikes.binary_search(&entry) {
            self.with_look_alikes.remove(at);
        }
    }

    /// Whether another record fits that begins `new_blocks` blocks; 0: another summary entry.
    fn has_room(&self, geometry: &Geometry, new_blocks: usize) -> bool {
        let data_blocks = self.counts.len() + new_blocks;
        let summary_blocks =
            summary::blocks(geometry, data_blocks, self.entries.len() + self.with_look_alikes.len() + 1);
        data_blocks + summary_blocks <= geometry.blocks_per_segment() as usize
    }

    /// Adds a record to a block before the last one that has room for it. Only in segments with a summary, which are
    /// recovered completely or not at all; in others a record must not be found without those before it.
    fn append_to_free_space(
        &mut self,
        id: &SegmentId,
        rule: SharingRule,
        blocks: &mut [u8],
        entry: u64,
        parts: &[&[u8]],
        len: usize,
    ) -> Option<u64> {
        if !summary::has_summary(&id.geometry) || !self.has_room(&id.geometry, 0) {
            return None;
        }
        let Self { free_spaces, counts, entries, .. } = self;
        let payload = payload_size(&id.geometry);
        let free_space = free_spaces.take(len, payload)?;
        let behind: usize = counts[free_space.block + 1..].iter().map(|count| usize::from(*count)).sum();
        let at = entries.len() - behind;
        let of_block = &entries[at - usize::from(counts[free_space.block])..at];
        let suits = rule.commutes(entry, &entries[at..]) && rule.allows(entry, of_block);
        if !suits || counts[free_space.block] == u16::MAX {
            free_spaces.add(free_space, payload);
            return None;
        }
        entries.insert(at, entry);
        counts[free_space.block] += 1;
        let count = counts[free_space.block];
        let rest = copy_in(&id.geometry, blocks, free_space, parts);
        block::note_count(&mut blocks[free_space.block * id.geometry.block_size()..], count);
        self.free_spaces.add(rest, payload);
        Some(id.first_block + free_space.block as u64)
    }

    /// Notes the rest of the last block as free space, for another block begins.
    fn leave_block(&mut self, payload: usize) {
        let Some(last) = self.counts.len().checked_sub(1) else { return };
        let records = FREE_SPACE_RECORDS_BACK_MAX * self.counts.len() / self.entries.len();
        self.free_spaces
            .leave_behind(self.counts.len().saturating_sub(records.min(FREE_SPACE_BLOCKS_BACK_MAX)));
        self.free_spaces.add(FreeSpace { block: last, used: self.used }, payload);
    }
}

/// Writes a record from `begin` on, and on into the following blocks; returns where it ends.
fn copy_in(geometry: &Geometry, blocks: &mut [u8], begin: FreeSpace, parts: &[&[u8]]) -> FreeSpace {
    let (size, payload) = (geometry.block_size(), payload_size(geometry));
    let FreeSpace { mut block, mut used } = begin;
    for part in parts {
        let mut part = *part;
        while !part.is_empty() {
            if used == payload {
                (block, used) = (block + 1, 0);
            }
            let n = part.len().min(payload - used);
            let at = block * size + BLOCK_HEADER_SIZE + used;
            blocks[at..at + n].copy_from_slice(&part[..n]);
            used += n;
            part = &part[n..];
        }
    }
    FreeSpace { block, used }
}
