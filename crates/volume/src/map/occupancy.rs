//! The number of mapped logical blocks of each region, which lets a scan skip empty regions.
//!
//! Two levels of counters: of regions, and of groups of [`REGIONS_PER_GROUP`] regions.
//!
//! Invariant: each counter is at least the number of blocks below it that a reader can see mapped. For this, a block is
//! counted before its place is published, and uncounted after the place is removed.

use super::MapError;
use super::zeros::zeros;
use crate::limits::REGIONS_PER_GROUP;
use crate::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::ops::Range;

pub(super) struct Occupancy {
    blocks: u64,
    region_shift: u32,
    regions: Box<[AtomicU16]>,
    groups: Box<[AtomicU32]>,
    total: AtomicU64,
}

impl Occupancy {
    /// Counters for `blocks` blocks in regions of `region_blocks`, a power of two.
    pub fn new(blocks: u64, region_blocks: u64) -> Result<Self, MapError> {
        assert!(region_blocks.is_power_of_two() && region_blocks < u64::from(u16::MAX));
        let regions = blocks.div_ceil(region_blocks);
        Ok(Self {
            blocks,
            region_shift: region_blocks.trailing_zeros(),
            regions: zeros(regions)?,
            groups: zeros(regions.div_ceil(REGIONS_PER_GROUP))?,
            total: AtomicU64::new(0),
        })
    }

    /// The number of mapped blocks.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts a block that is about to be published.
    pub fn add(&self, lba: u64) {
        let region = lba >> self.region_shift;
        self.groups[(region / REGIONS_PER_GROUP) as usize].fetch_add(1, Ordering::Relaxed);
        self.regions[region as usize].fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    /// Uncounts a block that readers no longer see, or that was not published after all.
    pub fn subtract(&self, lba: u64) {
        let region = lba >> self.region_shift;
        self.groups[(region / REGIONS_PER_GROUP) as usize].fetch_sub(1, Ordering::Relaxed);
        self.regions[region as usize].fetch_sub(1, Ordering::Relaxed);
        self.total.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts `count` blocks of the region of `lba`.
    pub fn add_many(&mut self, lba: u64, count: u16) {
        let region = lba >> self.region_shift;
        *self.groups[(region / REGIONS_PER_GROUP) as usize].get_mut() += u32::from(count);
        *self.regions[region as usize].get_mut() += count;
        *self.total.get_mut() += u64::from(count);
    }

    /// Returns the blocks from `from` on, or from the start of the first region behind it that is not empty,
    /// to the end of that region; `None` if no block from `from` on is mapped.
    pub fn next(&self, from: u64) -> Option<Range<u64>> {
        let mut region = from >> self.region_shift;
        while region < self.regions.len() as u64 {
            if self.groups[(region / REGIONS_PER_GROUP) as usize].load(Ordering::Relaxed) == 0 {
                region = (region / REGIONS_PER_GROUP + 1) * REGIONS_PER_GROUP;
            } else if self.regions[region as usize].load(Ordering::Relaxed) == 0 {
                region += 1;
            } else {
                let (start, end) = (region << self.region_shift, (region + 1) << self.region_shift);
                return Some(start.max(from)..end.min(self.blocks)).filter(|range| !range.is_empty());
            }
        }
        None
    }

    /// The bytes of the counters.
    pub fn bytes_allocated(&self) -> u64 {
        (size_of_val(&*self.regions) + size_of_val(&*self.groups)) as u64
    }
}
