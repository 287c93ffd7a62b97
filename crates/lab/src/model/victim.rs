//! Flash as a victim cache: each object that leaves DRAM is written, even if it was on flash before. An object that is
//! found on flash moves to DRAM.

use super::lru::{DRAM_INDEX_BYTES, Lru};
use super::segments::Segments;
use super::{Budget, Clock, Model, Object, Place};

/// DRAM for each object on flash, as in Fatcache's index.
const FLASH_INDEX_BYTES: u64 = 32;

/// The cache.
pub struct Victim {
    dram: Lru,
    flash: Segments,
}

impl Victim {
    /// A cache for keys `0..keys`.
    pub fn new(budget: &Budget, keys: u32) -> Self {
        Self {
            dram: Lru::new(budget.dram_beside(1), keys),
            flash: Segments::new(budget.flash_bytes, budget.segment_bytes, keys),
        }
    }

    fn put(&mut self, object: &Object) {
        self.flash.remove(object.key);
        let flash = &mut self.flash;
        self.dram.put(object.key, object.bytes, |key, bytes| {
            flash.append(key, bytes, |_, _| ());
        });
    }
}

impl Model for Victim {
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
            self.put(object);
        }
        place
    }

    fn store(&mut self, object: &Object, _: Clock) {
        self.put(object);
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
