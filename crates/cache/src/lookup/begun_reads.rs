//! Reads that began while the keys of a large batch were being planned.

use crate::flash::Flash;
use granary_log::{Extent, Location};

/// Reads that were begun before all keys were planned: whole ranges of the device.
#[derive(Default)]
pub(crate) struct BegunReads {
    /// The ranges, ascending, and all of one length.
    pub extents: Vec<Extent>,
    /// The segment that each of their blocks was read as.
    pub sequences: Vec<u64>,
    pub block_size: usize,
}

impl BegunReads {
    /// Forgets all, for blocks of `block_size` bytes.
    pub fn clear(&mut self, block_size: usize) {
        self.extents.clear();
        self.sequences.clear();
        self.block_size = block_size;
    }

    /// Adds a range of blocks, unless some of it is in a write buffer.
    pub fn add(&mut self, flash: &Flash, blocks: std::ops::Range<u64>) {
        let geometry = flash.log.geometry();
        let before = self.sequences.len();
        let mut last = None;
        for block in blocks.clone() {
            let slot = geometry.slot_of_block(block);
            let sequence = match last {
                Some((of, sequence)) if of == slot => sequence,
                _ => match flash.log.locate(block) {
                    Location::Device { sequence } => sequence,
                    Location::WriteBuffer(_) => return self.sequences.truncate(before),
                },
            };
            last = Some((slot, sequence));
            self.sequences.push(sequence);
        }
        let len = (blocks.end - blocks.start) as usize * self.block_size;
        self.extents.push(Extent { offset: geometry.offset(blocks.start), len });
    }

    /// Keeps only the first `begun` reads.
    pub fn truncate(&mut self, begun: usize) {
        self.extents.truncate(begun);
        let blocks = self.extents.iter().map(|extent| extent.len / self.block_size).sum();
        self.sequences.truncate(blocks);
    }

    /// The number of blocks that are read.
    pub fn blocks(&self) -> usize {
        self.sequences.len()
    }

    /// Whether a block is read as one of segment `sequence`. A segment is written once, so a block that was read of the
    /// current segment is current.
    pub fn covers(&self, offset: u64, sequence: u64) -> bool {
        let after = self.extents.partition_point(|extent| extent.offset <= offset);
        let Some(i) = after.checked_sub(1) else { return false };
        let at = (offset - self.extents[i].offset) as usize;
        let first = i * (self.extents[i].len / self.block_size);
        at < self.extents[i].len && self.sequences[first + at / self.block_size] == sequence
    }
}
