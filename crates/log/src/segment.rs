//! One segment in RAM: a write buffer that fills block by block, is sealed once, and is read all along.

use crate::block::{self, Header};
use crate::buffer::AlignedBuffer;
use crate::free_spaces::{FreeSpace, FreeSpaces};
use crate::geometry::Geometry;
use crate::limits::{BLOCK_HEADER_SIZE, FREE_SPACE_BLOCKS_BACK_MAX, FREE_SPACE_RECORDS_BACK_MAX, WORD_MAX};
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
        self.ignored_bits == 0
            || !self.may_look_like(word, others)
            || others.iter().all(|o| *o == word || (*o ^ word) >> self.ignored_bits != 0)
    }

    /// Whether a record may lie before others although it came after them: it has nothing to do with them, for
    /// their words differ in their upper bits.
    fn commutes(self, word: u64, others: &[u64]) -> bool {
        self.ignored_bits > 0 && !self.may_look_like(word, others)
    }

    /// `false`: no other has the same upper bits.
    fn may_look_like(self, word: u64, others: &[u64]) -> bool {
        let mark = |word: u64| (word >> self.ignored_bits) as u32;
        // Without an early exit the compiler compares several at a time.
        others.iter().fold(false, |any, other| any | (mark(*other) == mark(word)))
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
    /// Where blocks before the last one have room.
    free_spaces: FreeSpaces,
}

impl Segment {
    pub(crate) fn new(sequence: u64, geometry: Geometry, word_rule: WordRule, memory: AlignedBuffer) -> Self {
        let filling = Filling {
            memory,
            used: 0,
            counts: Vec::new(),
            words: Vec::new(),
            free_spaces: FreeSpaces::default(),
        };
        Self { sequence, geometry, word_rule, filling: RwLock::new(filling) }
    }

    /// Its sequence number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of RAM it takes.
    pub(crate) fn bytes_allocated(&self) -> u64 {
        let filling = self.read_filling();
        let Filling { memory, counts, words, free_spaces, .. } = &*filling;
        (memory.len() + counts.capacity() * 2 + words.capacity() * 8 + free_spaces.bytes_allocated()) as u64
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
        if !joins && let Some(block) = self.append_to_free_space(&mut filling, word, parts, len) {
            return Some(block);
        }
        let new_blocks = if joins { 0 } else { len.div_ceil(payload).max(1) };
        if !self.has_room(&filling, new_blocks) {
            return None;
        }
        if !joins {
            filling.leave_block(payload);
            filling.counts.resize(data_blocks + new_blocks, 0);
            filling.used = 0;
        }
        let first = filling.counts.len() - new_blocks.max(1);
        filling.counts[first] += 1;
        filling.words.push(word);
        let begin = FreeSpace { block: first, used: filling.used };
        let end = filling.copy_in(&self.geometry, begin, parts);
        // A record over several blocks leaves the rest of its last block unused.
        filling.used = if end.block > first { payload } else { end.used };
        Some(self.geometry.first_block(self.sequence) + first as u64)
    }

    /// Whether one more record fits that begins so many blocks.
    fn has_room(&self, filling: &Filling, new_blocks: usize) -> bool {
        let data_blocks = filling.counts.len() + new_blocks;
        let summary_blocks = summary::blocks(&self.geometry, data_blocks, filling.words.len() + 1);
        data_blocks + summary_blocks <= self.geometry.blocks_per_segment() as usize
    }

    /// Adds a record to a block before the last one that has room for it. Segments with a summary are recovered as
    /// a whole or not at all; in others a record must not be found without those before it.
    fn append_to_free_space(
        &self,
        filling: &mut Filling,
        word: u64,
        parts: &[&[u8]],
        len: usize,
    ) -> Option<u64> {
        if !self.geometry.has_summary() || !self.has_room(filling, 0) {
            return None;
        }
        let Filling { free_spaces, counts, words, .. } = filling;
        let payload = self.geometry.payload_size();
        let free_space = free_spaces.take(len, payload)?;
        let behind: usize = counts[free_space.block + 1..].iter().map(|count| usize::from(*count)).sum();
        let at = words.len() - behind;
        let of_block = &words[at - usize::from(counts[free_space.block])..at];
        let suits = self.word_rule.commutes(word, &words[at..]) && self.word_rule.allows(word, of_block);
        if !suits || counts[free_space.block] == u16::MAX {
            free_spaces.add(free_space, payload);
            return None;
        }
        words.insert(at, word);
        counts[free_space.block] += 1;
        let rest = filling.copy_in(&self.geometry, free_space, parts);
        filling.free_spaces.add(rest, payload);
        Some(self.geometry.first_block(self.sequence) + free_space.block as u64)
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
    /// Another block begins: what is left of the last one is free space.
    fn leave_block(&mut self, payload: usize) {
        let Some(last) = self.counts.len().checked_sub(1) else { return };
        let records = FREE_SPACE_RECORDS_BACK_MAX * self.counts.len() / self.words.len();
        self.free_spaces
            .leave_behind(self.counts.len().saturating_sub(records.min(FREE_SPACE_BLOCKS_BACK_MAX)));
        self.free_spaces.add(FreeSpace { block: last, used: self.used }, payload);
    }

    /// Writes a record to where free space begins, and on into the blocks that follow; gives where it ends.
    fn copy_in(&mut self, geometry: &Geometry, begin: FreeSpace, parts: &[&[u8]]) -> FreeSpace {
        let (size, payload) = (geometry.block_size(), geometry.payload_size());
        let FreeSpace { mut block, mut used } = begin;
        for part in parts {
            let mut part = *part;
            while !part.is_empty() {
                if used == payload {
                    (block, used) = (block + 1, 0);
                }
                let n = part.len().min(payload - used);
                let at = block * size + BLOCK_HEADER_SIZE + used;
                self.memory[at..at + n].copy_from_slice(&part[..n]);
                used += n;
                part = &part[n..];
            }
        }
        FreeSpace { block, used }
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

    /// Whether no more records will begin in `block`: later ones were begun, and it is full.
    pub fn is_settled(&self, block: u64) -> bool {
        let block = (block - self.first) as usize;
        block + 1 < self.filling.counts.len() && !self.filling.free_spaces.has(block)
    }

    /// The bytes of a stretch of blocks of the segment.
    pub(crate) fn bytes(&self, blocks: std::ops::Range<usize>) -> &[u8] {
        let size = self.segment.geometry.block_size();
        &self.filling.memory[blocks.start * size..blocks.end * size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 20 blocks of 512 bytes; words of which the lowest 8 bits do not count.
    fn segment() -> Segment {
        let geometry = Geometry::new(20 * 512 * 4, 20 * 512, 512).unwrap();
        let memory = AlignedBuffer::zeroed(20 * 512);
        Segment::new(1, geometry, WordRule { ignored_bits: 8 }, memory)
    }

    #[test]
    fn short_records_fill_gaps_and_never_pass_what_looks_like_them() {
        let segment = segment();
        let first = segment.geometry.first_block(1);
        let append =
            |word: u64, len: usize| segment.append(word << 8, &[&vec![word as u8; len]]).unwrap() - first;
        assert_eq!([append(1, 300), append(2, 400), append(3, 350)], [0, 1, 2]);
        assert!((0..3).all(|block| !segment.read().is_settled(first + block)), "all have room");
        // The last block, if it has room; then the smallest gap that has.
        assert_eq!([append(4, 140), append(5, 90), append(6, 100), append(7, 40)], [2, 1, 0, 0]);
        // A record that looks like a later one, or like another of the block, begins a new block.
        let (free_space, like_a_later_one, like_another) = (append(8, 200), append(5, 50), append(1, 50));
        assert_eq!([free_space, like_a_later_one, like_another], [3, 3, 3]);
        assert_eq!([append(9, 400), append(8, 60), append(10, 60)], [4, 4, 3]);
        let summary = segment.summary();
        assert_eq!(summary.counts, [3, 2, 2, 4, 2]);
        assert_eq!(
            summary.words.iter().map(|word| word >> 8).collect::<Vec<_>>(),
            [1, 6, 7, 2, 5, 3, 4, 8, 5, 1, 10, 9, 8]
        );
        let (reader, payload) = (segment.read(), segment.geometry.payload_size());
        let lens = [[300, 100, 40, 0], [400, 90, 0, 0], [350, 140, 0, 0], [200, 50, 50, 60], [400, 60, 0, 0]];
        let mut words = summary.words.iter().map(|word| (word >> 8) as u8);
        for (block, lens) in lens.into_iter().enumerate() {
            let (_, bytes) = reader.block(first + block as u64).unwrap();
            let mut bytes = &block::payload(&bytes[..512])[..payload];
            for len in lens.into_iter().filter(|len| *len > 0) {
                let word = words.next().unwrap();
                assert!(bytes[..len].iter().all(|byte| *byte == word), "block {block}");
                bytes = &bytes[len..];
            }
            assert!(bytes.iter().all(|byte| *byte == 0), "the rest of block {block} is empty");
        }
        assert!(reader.is_settled(first + 2) && !reader.is_settled(first + 4));
    }
}
