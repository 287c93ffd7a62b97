//! Everything that is stored is written to flash, in that order: a plain log-structured cache with the recently used
//! objects in DRAM beside it.

use super::lru::{DRAM_INDEX_BYTES, Lru};
use super::segments::Segments;
use super::{Budget, Clock, Model, Object, Place};

/// DRAM for each object on flash: a hash and a location.
const FLASH_INDEX_BYTES: u64 = 4;

/// The cache.
pub struct Fifo {
    dram: Lru,
    flash: Segments,
}

impl Fifo {
    /// A cache for keys `0..keys`.
    pub fn new(budget: &Budget, keys: u32) -> Self {
        Self {
            dram: Lru::new(budget.dram_beside(1), keys),
            flash: Segments::new(budget.flash_bytes, budget.segment_bytes, keys),
        }
    }
}

impl Model for Fifo {
    fn place(&self, key: u32) -> Place {
        if self.dram.contains(key) || self.flash.in_open(key) {
            Place::Dram
        } else if self.flash.contains(key) {
            Place::Flash
        } else {
            Place::Absent
        }
    }

    fn read(&mut self, object: &Object, _: Clock) -> Place {
        let place = self.place(object.key);
        if self.dram.contains(object.key) {
            self.dram.touch(object.key);
        } else if place != Place::Absent {
            self.dram.put(object.key, object.bytes, |_, _| ());
        }
        place
    }

    fn store(&mut self, object: &Object, _: Clock) {
        self.dram.put(object.key, object.bytes, |_, _| ());
        self.flash.append(object.key, object.bytes, |_, _| ());
    }

    fn remove(&mut self, key: u32) {
        self.dram.take(key);
        self.flash.remove(key);
    }

    fn flash_bytes_written(&self) -> u64 {
        self.flash.bytes_written()
    }

    fn dram_bytes(&self) -> u64 {
        self.dram.used() + self.flash.open_bytes()
    }

    fn index_bytes(&self) -> u64 {
        self.dram.objects() * DRAM_INDEX_BYTES + self.flash.objects() * FLASH_INDEX_BYTES
    }

    fn validate(&self) {
        self.dram.check();
        self.flash.check();
    }
}
