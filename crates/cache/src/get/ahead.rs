//! Reads that are begun when the first keys of a large batch have been planned, and go on while the others are.

use super::{Io, Want};
use crate::cache::Flash;
use granary_log::limits::{READ_DEPTH, READ_PLACES_MAX};
use granary_log::{Extent, Location};

/// Where a thread begins with its part of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Low,
    High,
}

/// Windows of the file, each as long as the longest read: those of which the first keys of a batch want so many
/// blocks that the others will want the rest.
#[derive(Default)]
pub(super) struct Ahead {
    /// Ascending.
    extents: Vec<Extent>,
    /// Of each of their blocks, the segment that it was read as.
    sequences: Vec<u64>,
    block_size: usize,
}

/// As many reads as one thread has in flight, if they are long.
const WINDOWS_MAX: u64 = (READ_DEPTH / READ_PLACES_MAX) as u64;

/// One block in so many of a window has to be wanted by the first keys. If these are an eighth of a batch, then of
/// the others each is left out with probability 2^-8.
const WANTED_DIVISOR: usize = 2;

impl Ahead {
    /// Of what the first keys want, the windows at one end of the file that are worth it, none beyond the place
    /// `middle`.
    pub fn choose(flash: &Flash, wants: &[Want], end: End, middle: u64) -> Ahead {
        let geometry = flash.log.geometry();
        let block_size = geometry.block_size();
        let blocks = (Io::extent_bytes_max(block_size) / block_size) as u64;
        let mut this = Ahead { block_size, ..Ahead::default() };
        let windows = wants.iter().map(|want| want.place / blocks);
        let (Some(lowest), Some(highest)) = (windows.clone().min(), windows.max()) else { return this };
        let windows = match end {
            End::Low => lowest..(lowest + WINDOWS_MAX).min(middle / blocks),
            End::High => (highest + 1).saturating_sub(WINDOWS_MAX).max(middle / blocks + 1)..highest + 1,
        };
        if windows.is_empty() {
            return this;
        }
        let places = windows.start * blocks..(windows.end * blocks).min(geometry.blocks());
        let mut wanted = vec![false; (places.end - places.start) as usize];
        for want in wants.iter().filter(|want| places.contains(&want.place)) {
            wanted[(want.place - places.start) as usize] = true;
        }
        for (window, wanted) in windows.zip(wanted.chunks_exact(blocks as usize)) {
            if wanted.iter().filter(|wanted| **wanted).count() >= wanted.len().div_ceil(WANTED_DIVISOR) {
                this.add(flash, window * blocks..(window + 1) * blocks);
            }
        }
        this
    }

    /// Adds a window, unless some of it is in RAM.
    fn add(&mut self, flash: &Flash, places: std::ops::Range<u64>) {
        let geometry = flash.log.geometry();
        let before = self.sequences.len();
        let mut last = None;
        for place in places.clone() {
            let slot = geometry.slot_of_block(place);
            let sequence = match last {
                Some((of, sequence)) if of == slot => sequence,
                _ => match flash.log.locate(place) {
                    Location::Device { sequence } => sequence,
                    Location::Memory(_) => return self.sequences.truncate(before),
                },
            };
            last = Some((slot, sequence));
            self.sequences.push(sequence);
        }
        let len = (places.end - places.start) as usize * self.block_size;
        self.extents.push(Extent { offset: geometry.offset(places.start), len });
    }

    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Only the first ones were begun.
    pub fn truncate(&mut self, begun: usize) {
        self.extents.truncate(begun);
        let blocks = self.extents.iter().map(|extent| extent.len / self.block_size).sum();
        self.sequences.truncate(blocks);
    }

    /// Blocks that are read.
    pub fn blocks(&self) -> usize {
        self.sequences.len()
    }

    /// Whether a block is read as the one of this segment. Segments go to the device once: what was read of the
    /// segment that is there now is what is there now.
    pub fn brings(&self, offset: u64, sequence: u64) -> bool {
        let after = self.extents.partition_point(|extent| extent.offset <= offset);
        let Some(i) = after.checked_sub(1) else { return false };
        let at = (offset - self.extents[i].offset) as usize;
        let first = i * (self.extents[i].len / self.block_size);
        at < self.extents[i].len && self.sequences[first + at / self.block_size] == sequence
    }
}
