//! Belady's MIN: knows the future, and evicts the object whose next read is last.
//!
//! That is optimal for objects of one size. For several sizes the optimum cannot be computed in reasonable time; this
//! evicts the object with the greatest product of bytes and requests until its next read (Belady-Size), with sizes in
//! classes of a quarter of a power of two. That is near the bound for the hit ratio, but no proof: another policy may
//! be slightly better.

use super::lru::DRAM_INDEX_BYTES;
use super::{Clock, Model, NEVER, Object, Place};
use std::collections::BTreeSet;

/// Classes of sizes: four for each power of two.
const CLASSES: usize = 32 * 4;

/// The cache, in DRAM.
pub struct Belady {
    capacity: u64,
    used: u64,
    /// (bytes, next read) by key; 0 bytes is absent.
    held: Vec<(u32, u32)>,
    /// (next read, key) by class of size.
    classes: Vec<BTreeSet<(u32, u32)>>,
    objects: u64,
}

fn class(bytes: u32) -> usize {
    let power = bytes.max(1).ilog2();
    let quarter = if power >= 2 { bytes >> (power - 2) & 3 } else { 0 };
    (power * 4 + quarter) as usize
}

impl Belady {
    /// A cache for keys `0..keys`.
    pub fn new(capacity: u64, keys: u32) -> Self {
        Self {
            capacity,
            used: 0,
            held: vec![(0, NEVER); keys as usize],
            classes: vec![BTreeSet::new(); CLASSES],
            objects: 0,
        }
    }

    fn take(&mut self, key: u32) {
        let (bytes, next) = std::mem::replace(&mut self.held[key as usize], (0, NEVER));
        if bytes > 0 {
            self.classes[class(bytes)].remove(&(next, key));
            self.used -= u64::from(bytes);
            self.objects -= 1;
        }
    }

    fn put(&mut self, object: &Object) {
        self.held[object.key as usize] = (object.bytes, object.next_read);
        self.classes[class(object.bytes)].insert((object.next_read, object.key));
        self.used += u64::from(object.bytes);
        self.objects += 1;
    }

    /// The object that costs most to keep.
    fn worst(&self, position: u32) -> u32 {
        let candidates = self.classes.iter().filter_map(|class| class.last());
        let cost = |(next, key): &(u32, u32)| {
            let wait = if *next == NEVER { NEVER } else { next.saturating_sub(position) };
            // Among objects never read again, any will do.
            (*next == NEVER, u64::from(wait) * u64::from(self.held[*key as usize].0))
        };
        candidates.max_by_key(|candidate| cost(candidate)).expect("bytes are used").1
    }
}

impl Model for Belady {
    fn place(&self, key: u32) -> Place {
        if self.held[key as usize].0 > 0 { Place::Dram } else { Place::Absent }
    }

    fn read(&mut self, object: &Object, _: Clock) -> Place {
        let place = self.place(object.key);
        if place == Place::Dram {
            self.take(object.key);
            self.put(object);
        }
        place
    }

    fn store(&mut self, object: &Object, clock: Clock) {
        self.take(object.key);
        if object.next_read == NEVER || u64::from(object.bytes) > self.capacity {
            return;
        }
        self.put(object);
        while self.used > self.capacity {
            self.take(self.worst(clock.position));
        }
    }

    fn remove(&mut self, key: u32) {
        self.take(key);
    }

    fn flash_bytes_written(&self) -> u64 {
        0
    }

    fn dram_bytes(&self) -> u64 {
        self.used
    }

    fn index_bytes(&self) -> u64 {
        self.objects * DRAM_INDEX_BYTES
    }

    fn validate(&self) {
        let held = || self.held.iter().filter(|(bytes, _)| *bytes > 0);
        assert_eq!(held().map(|(bytes, _)| u64::from(*bytes)).sum::<u64>(), self.used);
        assert_eq!(held().count() as u64, self.objects);
        assert_eq!(self.classes.iter().map(BTreeSet::len).sum::<usize>() as u64, self.objects);
        assert!(self.used <= self.capacity);
    }
}
