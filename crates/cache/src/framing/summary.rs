//! The summary of a segment's records at its end, so that recovery need not read the records.
//!
//! The payloads of the summary blocks, one after the other, hold: for each data block the number of
//! records that begin in it (u16), an entry of 48 bits for each record, and once more the entries of records that were
//! put beside others; the last 16 bytes of the segment hold [`MAGIC`], the number of data blocks (u32) and the number
//! of entries (u32), the repeated ones included. Little endian.

use super::block::{self, BlockHeader, payload_size};
use super::summary_entries::{SummaryEntries, parse_all, to_bytes};
use crate::limits::{BLOCK_HEADER_SIZE, SUMMARY_BLOCKS_PER_SEGMENT_MIN, SUMMARY_ENTRY_BYTES};
use granary_log::Geometry;

const MAGIC: [u8; 8] = *b"GRANSUM1";
const TRAILER_SIZE: usize = 16;

/// The records of a segment, an entry of 48 bits for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Sequence number of the segment.
    pub sequence: u64,
    /// Its first block (of the file).
    pub first_block: u64,
    /// Records that begin in each data block.
    pub counts: Vec<u16>,
    /// The entry of each record, in the order of the blocks and in them.
    pub entries: SummaryEntries,
    /// The entries of records that were put beside others which look alike to the index, in ascending order.
    pub with_look_alikes: Vec<u64>,
    /// The number of records in the segment.
    pub records: usize,
}

impl Summary {
    /// Whether the summary has the entries of all records. Otherwise it has none, and no counts.
    pub fn is_whole(&self) -> bool {
        self.entries.len() == self.records
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        (self.counts, self.entries, self.with_look_alikes) = Default::default();
    }

    /// Keeps only the entries that `is_wanted` selects.
    pub fn retain(&mut self, is_wanted: impl Fn(u64) -> bool) {
        let mut entries = self.entries.iter();
        for count in &mut self.counts {
            let of_block = entries.by_ref().take(usize::from(*count));
            *count = of_block.filter(|entry| is_wanted(*entry)).count() as u16;
        }
        drop(entries);
        self.entries = self.entries.filtered(&is_wanted);
        self.with_look_alikes.retain(|entry| is_wanted(*entry));
    }

    /// Whether records with this entry were put beside look-alikes.
    pub fn has_look_alikes(&self, entry: u64) -> bool {
        self.with_look_alikes.binary_search(&entry).is_ok()
    }

    /// Each record's first block (of the file) and its entry.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let blocks = self.counts.iter().zip(self.first_block..);
        let block_numbers = blocks.flat_map(|(count, block)| std::iter::repeat_n(block, usize::from(*count)));
        block_numbers.zip(self.entries.iter())
    }
}

/// Whether segments end with a summary.
pub fn has_summary(geometry: &Geometry) -> bool {
    geometry.blocks_per_segment() >= SUMMARY_BLOCKS_PER_SEGMENT_MIN
}

/// The number of blocks of a summary of `data_blocks` data blocks and `entries` entries; 0 if segments carry none.
pub(crate) fn blocks(geometry: &Geometry, data_blocks: usize, entries: usize) -> usize {
    if !has_summary(geometry) {
        return 0;
    }
    (2 * data_blocks + SUMMARY_ENTRY_BYTES * entries + TRAILER_SIZE).div_ceil(payload_size(geometry))
}

/// Fills the payloads of `bytes`, the blocks of the summary.
pub(crate) fn write(
    bytes: &mut [u8],
    geometry: &Geometry,
    counts: &[u16],
    entries: &[u64],
    with_look_alikes: &[u64],
) {
    let all = entries.len() + with_look_alikes.len();
    let mut stream = Vec::with_capacity(2 * counts.len() + SUMMARY_ENTRY_BYTES * all);
    stream.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
    for entry in entries.iter().chain(with_look_alikes) {
        stream.extend_from_slice(&to_bytes(*entry));
    }
    let mut rest = &stream[..];
    for block in bytes.chunks_exact_mut(geometry.block_size()) {
        let (now, later) = rest.split_at(rest.len().min(payload_size(geometry)));
        block[BLOCK_HEADER_SIZE..BLOCK_HEADER_SIZE + now.len()].copy_from_slice(now);
        rest = later;
    }
    let trailer = bytes.len() - TRAILER_SIZE;
    bytes[trailer..trailer + 8].copy_from_slice(&MAGIC);
    bytes[trailer + 8..trailer + 12].copy_from_slice(&(counts.len() as u32).to_le_bytes());
    bytes[trailer + 12..].copy_from_slice(&(all as u32).to_le_bytes());
}

/// The content of a segment's last block, which is read before the rest of the summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trailer {
    pub sequence: u64,
    pub data_blocks: usize,
    entries: usize,
    /// Blocks of the summary, this one included.
    pub blocks: usize,
}

/// Reads the last block of the segment whose first block is `first_block`; `None`: no valid summary ends there.
pub(crate) fn parse_trailer(
    last: &[u8],
    geometry: &Geometry,
    instance: u64,
    first_block: u64,
) -> Option<Trailer> {
    let number = first_block + u64::from(geometry.blocks_per_segment()) - 1;
    let BlockHeader { sequence, .. } = block::check(last, instance, number)?;
    let trailer = last.last_chunk::<TRAILER_SIZE>()?;
    let u32_at = |i: usize| u32::from_le_bytes(trailer[i..i + 4].try_into().expect("4 bytes")) as usize;
    let (data_blocks, entries) = (u32_at(8), u32_at(12));
    let blocks = blocks(geometry, data_blocks, entries);
    let fits = data_blocks.checked_add(blocks)? <= geometry.blocks_per_segment() as usize;
    (trailer[..8] == MAGIC && fits).then_some(Trailer { sequence, data_blocks, entries, blocks })
}

/// Reads the whole summary from its blocks; `None`: one of them is invalid.
pub(crate) fn parse(
    bytes: &[u8],
    trailer: Trailer,
    geometry: &Geometry,
    instance: u64,
    first_block: u64,
) -> Option<Summary> {
    let first_summary = first_block + u64::from(geometry.blocks_per_segment()) - trailer.blocks as u64;
    let mut stream = Vec::with_capacity(bytes.len());
    for (block, number) in bytes.chunks_exact(geometry.block_size()).zip(first_summary..) {
        if block::check(block, instance, number)?.sequence != trailer.sequence {
            return None;
        }
        stream.extend_from_slice(block::payload(block));
    }
    let (counts, rest) = stream.split_at_checked(2 * trailer.data_blocks)?;
    let counts: Vec<u16> = counts.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
    let entries = rest.get(..SUMMARY_ENTRY_BYTES * trailer.entries)?;
    let total: usize = counts.iter().map(|c| usize::from(*c)).sum();
    let (entries, with_look_alikes) = entries.split_at_checked(SUMMARY_ENTRY_BYTES * total)?;
    let entries = SummaryEntries::from_bytes(entries);
    let mut with_look_alikes: Vec<u64> = parse_all(with_look_alikes).collect();
    with_look_alikes.sort_unstable();
    Some(Summary {
        sequence: trailer.sequence,
        first_block,
        counts,
        entries,
        with_look_alikes,
        records: total,
    })
}
