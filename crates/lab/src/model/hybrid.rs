//! Flashield's cache: every object enters DRAM; it leaves for flash if a filter says so. CLOCK orders all
//! objects, in DRAM and on flash.
//!
//! DRAM is a ring. At its tail an object is offered to the filter; if that declines, it has another round for
//! each of its two CLOCK bits' worth, and is dropped after that. Flash is segments, freed in the order of their
//! writing. The CLOCK hand over flash turns objects that were not read lately into *ghosts*, as many as the
//! hot data threshold demands; a ghost can be read, which makes it hot again. When a segment is freed, its
//! ghosts leave, and what is hot goes back to DRAM, where it has to earn flash anew.

use super::lru::DRAM_INDEX_BYTES;
use super::segments::{Segments, Spot};
use super::{Budget, Clock, Model, NEVER, Object, Place};
use std::collections::VecDeque;

/// An object that leaves DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Which one.
    pub key: u32,
    /// Bytes of key and value.
    pub bytes: u32,
    /// Reads since it came to DRAM.
    pub reads: u8,
    /// Times that it was stored over.
    pub updates: u8,
}

/// What decides over flash.
pub trait Filter {
    /// A client read a key, and found it or not.
    fn on_read(&mut self, key: u32, found: bool);
    /// A client stored an object.
    fn on_put(&mut self, key: u32, bytes: u32);
    /// Whether an object that leaves DRAM is written to flash.
    fn admits(&mut self, offer: &Offer, seconds: u32) -> bool;
    /// DRAM that it takes.
    fn bytes_allocated(&self) -> u64;
}

/// What the paper leaves to the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridOptions {
    /// Part of flash that is hot at most; the rest are ghosts.
    pub hot: f64,
    /// Part of a freed segment that returns to DRAM at most.
    pub returning: f64,
    /// CLOCK bits of an object that was read: all of them set is near LRU, one more each time near LFU.
    pub clock: ClockBits,
}

/// What a read does to the CLOCK bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockBits {
    /// Sets both.
    Set,
    /// Adds one.
    Add,
}

impl Default for HybridOptions {
    fn default() -> Self {
        Self { hot: 0.7, returning: 1.0, clock: ClockBits::Set }
    }
}

/// Two bits.
const CLOCK_MAX: u8 = 3;
const COUNT_MAX: u8 = 15;

/// DRAM for each object on flash.
const FLASH_INDEX_BYTES: u64 = 4;

#[derive(Clone, Copy)]
struct Entry {
    bytes: u32,
    expires: u32,
    /// Which of the key's places in the ring counts.
    stamp: u32,
    place: Place,
    reads: u8,
    updates: u8,
    clock: u8,
    ghost: bool,
}

const ABSENT: Entry = Entry {
    bytes: 0,
    expires: NEVER,
    stamp: 0,
    place: Place::Absent,
    reads: 0,
    updates: 0,
    clock: 0,
    ghost: false,
};

/// The cache.
pub struct Hybrid<F> {
    filter: F,
    options: HybridOptions,
    dram_capacity: u64,
    hot_capacity: u64,
    segment_bytes: u64,
    entries: Vec<Entry>,
    /// The newest at the back.
    ring: VecDeque<(u32, u32)>,
    dram_used: u64,
    dram_objects: u64,
    flash: Segments,
    hot_on_flash: u64,
    hand: Spot,
}

impl<F: Filter> Hybrid<F> {
    /// For keys `0..keys`.
    pub fn new(budget: &Budget, keys: u32, options: HybridOptions, filter: F) -> Self {
        let dram_capacity = budget.dram_beside(1);
        let hot_flash = (budget.flash_bytes as f64 * options.hot) as u64;
        Self {
            filter,
            options,
            dram_capacity,
            hot_capacity: dram_capacity + hot_flash,
            segment_bytes: budget.segment_bytes,
            entries: vec![ABSENT; keys as usize],
            ring: VecDeque::new(),
            dram_used: 0,
            dram_objects: 0,
            flash: Segments::new(budget.flash_bytes, budget.segment_bytes, keys),
            hot_on_flash: 0,
            hand: (0, 0),
        }
    }

    fn enter_dram(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        entry.stamp = entry.stamp.wrapping_add(1);
        entry.place = Place::Dram;
        entry.ghost = false;
        self.ring.push_back((key, entry.stamp));
        self.dram_used += u64::from(entry.bytes);
        self.dram_objects += 1;
    }

    /// Takes an object from where it is.
    fn leave(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        match std::mem::replace(&mut entry.place, Place::Absent) {
            Place::Absent => {}
            Place::Dram => {
                self.dram_used -= u64::from(entry.bytes);
                self.dram_objects -= 1;
            }
            Place::Flash => {
                if !entry.ghost {
                    self.hot_on_flash -= u64::from(entry.bytes);
                }
                self.flash.remove(key);
            }
        }
    }

    /// The cleaner: objects leave the tail of the ring until DRAM holds no more than it may.
    fn clean(&mut self, seconds: u32) {
        while self.dram_used > self.dram_capacity {
            let (key, stamp) = self.ring.pop_front().expect("what is used is in the ring");
            let entry = self.entries[key as usize];
            if entry.stamp != stamp || entry.place != Place::Dram {
                continue;
            }
            self.leave(key);
            if entry.expires <= seconds {
                continue;
            }
            let offer = Offer { key, bytes: entry.bytes, reads: entry.reads, updates: entry.updates };
            if self.filter.admits(&offer, seconds) {
                self.write(key, seconds);
            } else if entry.clock > 0 {
                self.entries[key as usize].clock -= 1;
                self.enter_dram(key);
            }
        }
    }

    fn write(&mut self, key: u32, seconds: u32) {
        let bytes = self.entries[key as usize].bytes;
        let mut freed = Vec::new();
        if self.flash.append(key, bytes, |key, bytes| freed.push((key, bytes))) {
            self.entries[key as usize].place = Place::Flash;
            self.entries[key as usize].ghost = false;
            self.hot_on_flash += u64::from(bytes);
        }
        let mut room = (self.segment_bytes as f64 * self.options.returning) as u64;
        for (key, bytes) in freed {
            let entry = &mut self.entries[key as usize];
            entry.place = Place::Absent;
            if entry.ghost {
                continue;
            }
            self.hot_on_flash -= u64::from(bytes);
            if entry.expires > seconds && u64::from(bytes) <= room {
                room -= u64::from(bytes);
                entry.reads = 0;
                entry.updates = 0;
                self.enter_dram(key);
            }
        }
    }

    /// The CLOCK hand over flash: makes ghosts until no more is hot than may be.
    fn make_ghosts(&mut self) {
        while self.dram_used + self.hot_on_flash > self.hot_capacity && self.hot_on_flash > 0 {
            let (object, next) = self.flash.walk(self.hand);
            // The open segment is in DRAM yet; if only that is hot, there is nothing to choose from.
            if self.flash.on_flash() == 0 {
                return;
            }
            self.hand = next;
            let Some((key, bytes)) = object else { continue };
            let entry = &mut self.entries[key as usize];
            if entry.ghost {
                continue;
            }
            if entry.clock > 0 {
                entry.clock -= 1;
            } else {
                entry.ghost = true;
                self.hot_on_flash -= u64::from(bytes);
            }
        }
    }
}

impl<F: Filter> Model for Hybrid<F> {
    fn place(&self, key: u32) -> Place {
        match self.entries[key as usize].place {
            Place::Flash if self.flash.in_open(key) => Place::Dram,
            place => place,
        }
    }

    fn read(&mut self, object: &Object, _: Clock) -> Place {
        let place = self.place(object.key);
        self.filter.on_read(object.key, place != Place::Absent);
        if place == Place::Absent {
            return place;
        }
        let entry = &mut self.entries[object.key as usize];
        entry.clock = match self.options.clock {
            ClockBits::Set => CLOCK_MAX,
            ClockBits::Add => (entry.clock + 1).min(CLOCK_MAX),
        };
        match entry.place {
            Place::Flash if entry.ghost => {
                entry.ghost = false;
                self.hot_on_flash += u64::from(entry.bytes);
                self.make_ghosts();
            }
            Place::Dram => entry.reads = (entry.reads + 1).min(COUNT_MAX),
            _ => {}
        }
        place
    }

    fn store(&mut self, object: &Object, clock: Clock) {
        self.filter.on_put(object.key, object.bytes);
        let before = self.entries[object.key as usize];
        self.leave(object.key);
        if u64::from(object.bytes) > self.dram_capacity {
            return;
        }
        let (reads, updates) = match before.place {
            Place::Absent => (0, 0),
            Place::Dram => (before.reads, (before.updates + 1).min(COUNT_MAX)),
            Place::Flash => (0, 1),
        };
        let entry = &mut self.entries[object.key as usize];
        let bits = if before.place == Place::Absent { 0 } else { before.clock };
        (entry.bytes, entry.expires, entry.clock) = (object.bytes, object.expires, bits);
        (entry.reads, entry.updates) = (reads, updates);
        self.enter_dram(object.key);
        self.clean(clock.seconds);
        self.make_ghosts();
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
        let bytes = |entry: &Entry| u64::from(entry.bytes);
        assert_eq!(of(Place::Dram).map(bytes).sum::<u64>(), self.dram_used);
        assert_eq!(of(Place::Dram).count() as u64, self.dram_objects);
        assert_eq!(of(Place::Flash).count() as u64, self.flash.objects());
        let hot: u64 = of(Place::Flash).filter(|entry| !entry.ghost).map(bytes).sum();
        assert_eq!(hot, self.hot_on_flash);
        assert!(self.dram_used <= self.dram_capacity);
        for (key, entry) in self.entries.iter().enumerate() {
            assert_eq!(entry.place == Place::Flash, self.flash.contains(key as u32));
        }
    }
}
