//! One segment in RAM: a write buffer that fills block by block, is sealed once, and is read all along.

use crate::block::{self, Header};
use crate::buffer::AlignedBuffer;
use crate::geometry::Geometry;
use crate::limits::{BLOCK_HEADER_SIZE, WORD_MAX};
use crate::summary;
use crate::sync::sync::{RwLock, RwLockReadGuard};

/// A segment that is being filled, or waits for the device.
pub struct Segment {
    sequence: u64,
    geometry: Geometry,
    word_rule: WordRule,
    filling: RwLock<Filling>,
}

/// Which records may share a block: two different words must differ above their lowest
/// `ignored_bits` bits, so that a consumer that knows only those upper bits and the block knows the
/// record. 0: all may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordRule {
    /// Low bits that do not tell two records of a block apart.
    pub ignored_bits: u32,
}

impl WordRule {
    fn allows(self, word: u64, others: &[u64]) -> bool {
        if self.ignored_bits == 0 {
            return true;
        }
        // Without an early exit the compiler compares several at a time.
        let mark = |word: u64| (word >> self.ignored_bits) as u32;
        let suspicious = others.iter().fold(false, |any, other| any | (mark(*other) == mark(word)));
        !suspicious || others.iter().all(|o| *o == word || (*o ^ word) >> self.ignored_bits != 0)
    }
}

/// What of a sealed segment goes to the device: two stretches of it, in blocks.
pub(crate) struct Sealed {
    /// The data blocks, from the start of the segment.
    pub data: std::ops::Range<usize>,
    /// The summary, at its end; empty where segments carry none.
    pub summary: std::ops::Range<usize>,
}

struct Filling {
    memory: AlignedBuffer,
    /// Payload bytes used in the last data block.
    used: usize,
    /// Records that begin in each data block so far.
    counts: Vec<u16>,
    /// One word a record, in order.
    words: Vec<u64>,
}

impl Segment {
    pub(crate) fn new(sequence: u64, geometry: Geometry, word_rule: WordRule, memory: AlignedBuffer) -> Self {
        let filling = Filling { memory, used: 0, counts: Vec::new(), words: Vec::new() };
        Self { sequence, geometry, word_rule, filling: RwLock::new(filling) }
    }

    /// Its sequence number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of RAM it takes.
    pub(crate) fn bytes_allocated(&self) -> u64 {
        let filling = self.read_filling();
        (filling.memory.len() + filling.counts.capacity() * 2 + filling.words.capacity() * 8) as u64
    }

    fn read_filling(&self) -> RwLockReadGuard<'_, Filling> {
        self.filling.read().expect("no panic under the lock")
    }

    /// Adds a record made of `parts`; `None`: no room left. Gives the block (of the file) it begins in.
    pub(crate) fn append(&self, word: u64, parts: &[&[u8]]) -> Option<u64> {
        assert!(word <= WORD_MAX, "summary words have 48 bits");
        let payload = self.geometry.payload_size();
        let len: usize = parts.iter().map(|p| p.len()).sum();
        let mut filling = self.filling.write().expect("no panic under the lock");
        let data_blocks = filling.counts.len();
        let last_count = usize::from(filling.counts.last().copied().unwrap_or(0));
        let last_words = &filling.words[filling.words.len() - last_count..];
        let joins = last_count > 0
            && last_count < usize::from(u16::MAX)
            && len <= payload - filling.used
            && self.word_rule.allows(word, last_words);
        let new_blocks = if joins { 0 } else { len.div_ceil(payload).max(1) };
        let summary_blocks =
            summary::blocks(&self.geometry, data_blocks + new_blocks, filling.words.len() + 1);
        if data_blocks + new_blocks + summary_blocks > self.geometry.blocks_per_segment() as usize {
            return None;
        }
        if !joins {
            filling.counts.resize(data_blocks + new_blocks, 0);
            filling.used = 0;
        }
        let first = filling.counts.len() - new_blocks.max(1);
        filling.counts[first] += 1;
        filling.words.push(word);
        filling.copy_in(&self.geometry, first, parts);
        Some(self.geometry.first_block(self.sequence) + first as u64)
    }

    /// Shows `blocks` (of the file) as [`Blocks`], as long as the guard is held.
    pub fn read(&self) -> SegmentReader<'_> {
        SegmentReader {
            first: self.geometry.first_block(self.sequence),
            segment: self,
            filling: self.read_filling(),
        }
    }

    /// The words of its records, each with the block that the record begins in.
    pub(crate) fn summary(&self) -> summary::Summary {
        let filling = self.read_filling();
        summary::Summary {
            sequence: self.sequence,
            first_block: self.geometry.first_block(self.sequence),
            counts: filling.counts.clone(),
            words: filling.words.clone(),
        }
    }

    /// Writes headers, checksums and the summary. Nothing is appended afterwards.
    pub(crate) fn seal(&self, instance: u64) -> Sealed {
        let mut filling = self.filling.write().expect("no panic under the lock");
        let Filling { memory, counts, words, .. } = &mut *filling;
        let size = self.geometry.block_size();
        let first = self.geometry.first_block(self.sequence);
        let all = self.geometry.blocks_per_segment() as usize;
        let data = if self.geometry.has_summary() { 0..counts.len() } else { 0..all };
        for i in data.clone() {
            let count = counts.get(i).copied().unwrap_or(0);
            let header = Header { sequence: self.sequence, count };
            block::seal(&mut memory[i * size..(i + 1) * size], instance, first + i as u64, header);
        }
        let summary = all - summary::blocks(&self.geometry, counts.len(), words.len())..all;
        if !summary.is_empty() {
            let bytes = &mut memory[summary.start * size..];
            summary::write(bytes, &self.geometry, counts, words);
            for i in summary.clone() {
                let header = Header { sequence: self.sequence, count: 0 };
                block::seal(&mut memory[i * size..(i + 1) * size], instance, first + i as u64, header);
            }
        }
        Sealed { data, summary }
    }

    /// Takes the memory back for the next segment, zeroed.
    pub(crate) fn into_memory(self) -> AlignedBuffer {
        let mut filling = self.filling.into_inner().expect("no panic under the lock");
        let size = self.geometry.block_size();
        let all = self.geometry.blocks_per_segment() as usize;
        let summary = summary::blocks(&self.geometry, filling.counts.len(), filling.words.len());
        let data = if self.geometry.has_summary() { filling.counts.len() } else { all };
        filling.memory[..data * size].fill(0);
        filling.memory[(all - summary) * size..].fill(0);
        filling.memory
    }
}

impl Filling {
    fn copy_in(&mut self, geometry: &Geometry, mut block: usize, parts: &[&[u8]]) {
        let (size, payload) = (geometry.block_size(), geometry.payload_size());
        for part in parts {
            let mut part = *part;
            while !part.is_empty() {
                if self.used == payload {
                    block += 1;
                    self.used = 0;
                }
                let n = part.len().min(payload - self.used);
                let at = block * size + BLOCK_HEADER_SIZE + self.used;
                self.memory[at..at + n].copy_from_slice(&part[..n]);
                self.used += n;
                part = &part[n..];
            }
        }
        if block + 1 < self.counts.len() || self.counts[block] == 0 {
            // A record over several blocks leaves the rest of its last block unused.
            self.used = payload;
        }
    }
}

/// Read access to a segment in RAM.
pub struct SegmentReader<'a> {
    first: u64,
    segment: &'a Segment,
    filling: RwLockReadGuard<'a, Filling>,
}

impl SegmentReader<'_> {
    /// Sequence number of the segment.
    pub fn sequence(&self) -> u64 {
        self.segment.sequence
    }

    /// Records that begin in `block` (of the file), and the bytes from `block` to the segment's end.
    /// `None`: nothing was written there.
    pub fn block(&self, block: u64) -> Option<(u16, &[u8])> {
        let i = block.checked_sub(self.first)? as usize;
        let count = *self.filling.counts.get(i)?;
        Some((count, &self.filling.memory[i * self.segment.geometry.block_size()..]))
    }

    /// Whether no more records will begin in `block`: later ones were begun.
    pub fn is_settled(&self, block: u64) -> bool {
        block - self.first + 1 < self.filling.counts.len() as u64
    }

    /// The bytes of a stretch of blocks of the segment.
    pub(crate) fn bytes(&self, blocks: std::ops::Range<usize>) -> &[u8] {
        let size = self.segment.geometry.block_size();
        &self.filling.memory[blocks.start * size..blocks.end * size]
    }
}
