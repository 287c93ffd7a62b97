//! Granary's cache: every object enters DRAM, and moves on to flash if a filter admits it.
//!
//! DRAM is a ring. An object read since the hand passed goes round once more; another is offered to the filter, and
//! dropped if that declines. Flash is segments, freed in the order of their writing. An object found on flash is hot; a
//! second hand cools objects when too many are. When a segment is freed, its hot objects return to DRAM and have to
//! earn flash anew; the rest, the paper's ghosts, leave. An object found on flash while it is hot gets a copy in DRAM.
//! An object that is too large a part of DRAM is written at once.

use super::lru::DRAM_INDEX_BYTES;
use super::segments::{Segments, Spot};
use super::{Budget, Clock, Costs, Model, NEVER, Object, Place};
use granary_cache::admission::COUNT_MAX;
use granary_cache::limits::FOUND_PERCENT_MAX;
use std::collections::VecDeque;

/// An object that leaves DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its key.
    pub key: u32,
    /// Bytes of key and value.
    pub bytes: u32,
    /// Reads since it entered DRAM.
    pub reads: u8,
    /// Times that it was overwritten.
    pub updates: u8,
}

/// Decides which objects are written to flash.
pub trait Filter {
    /// A client read a key; `found` says whether it was a hit.
    fn on_read(&mut self, key: u32, found: bool);
    /// A client stored an object.
    fn on_put(&mut self, key: u32, bytes: u32);
    /// Whether an object that leaves DRAM is written to flash.
    fn admits(&mut self, offer: &Offer, seconds: u32) -> bool;
    /// DRAM that the filter takes.
    fn bytes_allocated(&self) -> u64;
    /// Whether the filter ever admits an object.
    fn writes(&self) -> bool {
        true
    }
}

/// Options apart from the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridOptions {
    /// Maximum part of the objects on flash that are hot.
    pub hot: f64,
    /// Whether hot objects get copies in DRAM.
    pub copies: bool,
}

impl Default for HybridOptions {
    fn default() -> Self {
        Self { hot: f64::from(FOUND_PERCENT_MAX as u32) / 100.0, copies: true }
    }
}

/// DRAM for each object on flash.
const FLASH_INDEX_BYTES: u64 = 4;

#[derive(Clone, Copy)]
struct HybridEntry {
    bytes: u32,
    expires: u32,
    /// Tells the key's current place in the ring from stale ones.
    stamp: u32,
    place: Place,
    /// For an object on flash: whether it is in the ring, too.
    copy: bool,
    /// Read since the hand passed.
    read: bool,
    /// Found on flash since the other hand passed.
    hot: bool,
    reads: u8,
    updates: u8,
}

const ABSENT: HybridEntry = HybridEntry {
    bytes: 0,
    expires: NEVER,
    stamp: 0,
    place: Place::Absent,
    copy: false,
    read: false,
    hot: false,
    reads: 0,
    updates: 0,
};

impl HybridEntry {
    fn in_ring(&self) -> bool {
        self.place == Place::Dram || self.copy
    }
}

/// The cache.
pub struct Hybrid<F> {
    filter: F,
    options: HybridOptions,
    costs: Costs,
    dram_capacity: u64,
    entries: Vec<HybridEntry>,
    /// (key, stamp), the newest at the back.
    ring: VecDeque<(u32, u32)>,
    dram_used: u64,
    dram_objects: u64,
    flash: Segments,
    hot: u64,
    hand: Spot,
}

impl<F: Filter> Hybrid<F> {
    /// A cache for keys `0..keys`.
    pub fn new(budget: &Budget, keys: u32, options: HybridOptions, filter: F) -> Self {
        Self::with_costs(budget, keys, options, Costs::none(budget), filter)
    }

    /// A cache with the overheads in `costs`.
    pub fn with_costs(budget: &Budget, keys: u32, options: HybridOptions, costs: Costs, filter: F) -> Self {
        let flash_bytes = budget.flash_bytes.saturating_sub(costs.flash_bytes_free);
        Self {
            filter,
            options,
            costs,
            dram_capacity: budget.dram_bytes.saturating_sub(costs.dram_bytes_free),
            entries: vec![ABSENT; keys as usize],
            ring: VecDeque::new(),
            dram_used: 0,
            dram_objects: 0,
            flash: Segments::packed(flash_bytes, budget.segment_bytes, costs.packing, keys),
            hot: 0,
            hand: (0, 0),
        }
    }

    /// Bytes of an object in the ring.
    fn dram_cost(&self, bytes: u32) -> u64 {
        u64::from(bytes) + u64::from(self.costs.dram_bytes_per_object)
    }

    /// Puts an object that is not in the ring at its head.
    fn enter_ring(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        entry.stamp = entry.stamp.wrapping_add(1);
        entry.read = false;
        self.ring.push_back((key, entry.stamp));
        let bytes = entry.bytes;
        self.dram_used += self.dram_cost(bytes);
        self.dram_objects += 1;
    }

    fn leave_ring(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        entry.stamp = entry.stamp.wrapping_add(1);
        let bytes = entry.bytes;
        self.dram_used -= self.dram_cost(bytes);
        self.dram_objects -= 1;
    }

    fn cool(&mut self, key: u32) {
        self.hot -= u64::from(std::mem::take(&mut self.entries[key as usize].hot));
    }

    /// Removes an object, wherever it is.
    fn leave(&mut self, key: u32) {
        let entry = self.entries[key as usize];
        if entry.in_ring() {
            self.leave_ring(key);
        }
        if entry.place == Place::Flash {
            self.cool(key);
            self.flash.remove(key);
        }
        let entry = &mut self.entries[key as usize];
        (entry.place, entry.copy) = (Place::Absent, false);
    }

    /// The cleaner: evicts objects from the tail of the ring until DRAM is within its capacity.
    fn clean(&mut self, seconds: u32) {
        while self.dram_used > self.dram_capacity {
            let (key, stamp) = self.ring.pop_front().expect("what is used is in the ring");
            let entry = self.entries[key as usize];
            if entry.stamp != stamp || !entry.in_ring() {
                continue;
            }
            self.leave_ring(key);
            if entry.read {
                self.enter_ring(key);
            } else if entry.copy {
                self.entries[key as usize].copy = false;
            } else {
                self.entries[key as usize].place = Place::Absent;
                let offer = Offer { key, bytes: entry.bytes, reads: entry.reads, updates: entry.updates };
                if entry.expires > seconds && self.filter.admits(&offer, seconds) {
                    self.write(key, seconds);
                }
            }
        }
        let most = (self.flash.objects() as f64 * self.options.hot) as u64;
        while self.hot > most {
            let (object, next) = self.flash.walk(self.hand);
            self.hand = next;
            if let Some((key, _)) = object {
                self.cool(key);
            }
        }
    }

    /// Gives an object on flash a copy in DRAM, if it fits.
    fn copy(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        let bytes = entry.bytes;
        (entry.reads, entry.updates) = (0, 0);
        if self.dram_cost(bytes) <= self.costs.copy_bytes {
            self.entries[key as usize].copy = true;
            self.enter_ring(key);
        }
    }

    /// Writes an object that skips DRAM, and keeps a copy there.
    fn write_through(&mut self, key: u32, seconds: u32) {
        self.write(key, seconds);
        if self.entries[key as usize].place == Place::Flash && self.options.copies {
            self.copy(key);
        }
    }

    fn write(&mut self, key: u32, seconds: u32) {
        let bytes = self.entries[key as usize].bytes.saturating_add(self.costs.flash_bytes_per_object);
        let mut freed = Vec::new();
        if self.flash.append(key, bytes, |key, _| freed.push(key)) {
            self.entries[key as usize].place = Place::Flash;
        }
        for key in freed {
            let entry = self.entries[key as usize];
            self.cool(key);
            let place = &mut self.entries[key as usize].place;
            *place = Place::Absent;
            if entry.copy {
                *place = Place::Dram;
                self.entries[key as usize].copy = false;
            } else if entry.hot && entry.expires > seconds {
                *place = Place::Dram;
                (self.entries[key as usize].reads, self.entries[key as usize].updates) = (0, 0);
                self.enter_ring(key);
            }
        }
    }
}

impl<F: Filter> Model for Hybrid<F> {
    fn place(&self, key: u32) -> Place {
        let entry = &self.entries[key as usize];
        match entry.place {
            Place::Flash if entry.copy || self.flash.in_open(key) => Place::Dram,
            place => place,
        }
    }

    fn read(&mut self, object: &Object, clock: Clock) -> Place {
        let key = object.key;
        let place = self.place(key);
        self.filter.on_read(key, place != Place::Absent);
        let entry = &mut self.entries[key as usize];
        if entry.in_ring() {
            entry.read = true;
            entry.reads = (entry.reads + 1).min(COUNT_MAX);
        } else if entry.place == Place::Flash {
            let was_hot = std::mem::replace(&mut entry.hot, true);
            self.hot += u64::from(!was_hot);
            if was_hot && self.options.copies {
                self.copy(key);
                self.clean(clock.seconds);
            }
        }
        place
    }

    fn store(&mut self, object: &Object, clock: Clock) {
        self.filter.on_put(object.key, object.bytes);
        let before = self.entries[object.key as usize];
        self.leave(object.key);
        let large = self.filter.writes() && u64::from(object.bytes) > self.costs.large_bytes;
        if !large && self.dram_cost(object.bytes) > self.dram_capacity {
            return;
        }
        let entry = &mut self.entries[object.key as usize];
        (entry.bytes, entry.expires) = (object.bytes, object.expires);
        if large {
            self.write_through(object.key, clock.seconds);
            return self.clean(clock.seconds);
        }
        entry.place = Place::Dram;
        (entry.reads, entry.updates) = match before.in_ring() {
            true => (before.reads, (before.updates + 1).min(COUNT_MAX)),
            false => (0, 0),
        };
        self.enter_ring(object.key);
        self.clean(clock.seconds);
    }

    fn remove(&mut self, key: u32) {
        self.leave(key);
    }

    fn flash_bytes_written(&self) -> u64 {
        self.flash.bytes_written()
    }

    fn dram_bytes(&self) -> u64 {
        self.dram_used + self.flash.open_bytes()
    }

    fn index_bytes(&self) -> u64 {
        let index = self.dram_objects * DRAM_INDEX_BYTES + self.flash.objects() * FLASH_INDEX_BYTES;
        index + self.filter.bytes_allocated()
    }

    fn validate(&self) {
        self.flash.check();
        let of = |place: Place| self.entries.iter().filter(move |entry| entry.place == place);
        let ring = || self.entries.iter().filter(|entry| entry.in_ring());
        assert_eq!(ring().map(|entry| self.dram_cost(entry.bytes)).sum::<u64>(), self.dram_used);
        assert_eq!(ring().count() as u64, self.dram_objects);
        assert_eq!(of(Place::Flash).count() as u64, self.flash.objects());
        assert_eq!(self.entries.iter().filter(|entry| entry.hot).count() as u64, self.hot);
        assert_eq!(of(Place::Flash).filter(|entry| entry.hot).count() as u64, self.hot);
        assert!(self.dram_used <= self.dram_capacity);
        for (key, entry) in self.entries.iter().enumerate() {
            assert_eq!(entry.place == Place::Flash, self.flash.contains(key as u32));
        }
    }
}
