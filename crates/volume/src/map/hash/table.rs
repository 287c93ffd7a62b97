//! One table of the hash map: open addressing over words of 64 bits.
//!
//! A word, from its low bits on:
//!
//! | bits | what |
//! |---|---|
//! | 1 | frozen: the word does not change any more |
//! | 6 | distance: 1 in the key's own bucket, 2 in the next, and so on; 0: empty |
//! | 25 | remainder: the bits of the key that its bucket does not imply |
//! | 32 | place; 0: a tombstone |
//!
//! Slot, distance and remainder together are the whole key, so a comparison of 31 bits is exact.
//!
//! Invariants:
//! 1. A slot that has a key keeps it. Its place changes, by compare and exchange.
//! 2. A key takes the first empty slot from its bucket on, and no earlier slot has become empty since. So it is in one
//!    slot at most, and a search ends at the first empty slot.
//! 3. A frozen word does not change. A table is replaced once all of its words are frozen.

use crate::limits::{HASH_DISTANCE_MAX, HASH_REMAINDER_BITS};
use crate::map::{Place, raw_of};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const FROZEN: u64 = 1;
const DISTANCE_SHIFT: u32 = 1;
const REMAINDER_SHIFT: u32 = 7;
const PLACE_SHIFT: u32 = 32;
const KEY_MASK: u64 = (1 << PLACE_SHIFT) - 1 - FROZEN;

const _: () = assert!(HASH_DISTANCE_MAX < 1 << (REMAINDER_SHIFT - DISTANCE_SHIFT));
const _: () = assert!(REMAINDER_SHIFT + HASH_REMAINDER_BITS == PLACE_SHIFT);

pub(super) struct Table {
    /// Bits of the keys.
    key_bits: u32,
    /// Bits of the number of slots.
    slot_bits: u32,
    words: Box<[AtomicU64]>,
    /// Slots that have a key.
    used: AtomicU32,
    /// Slots that have a place; in a frozen table the count may be inexact.
    live: AtomicU32,
}

/// The reason why a table cannot take a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many slots have a key.
    Full,
    /// The slots within reach of the key have other keys.
    Crowded,
    /// The table is being replaced.
    Frozen,
}

/// The slot of a key, or the one that it would have.
enum ProbeOutcome {
    Taken(usize, u64),
    Empty(usize, u64),
    Crowded,
}

fn place_of(word: u64) -> Option<Place> {
    Place::from_raw((word >> PLACE_SHIFT) as u32)
}

impl Table {
    pub fn new(key_bits: u32, slot_bits: u32) -> Self {
        assert!(slot_bits <= key_bits && key_bits - slot_bits <= HASH_REMAINDER_BITS && slot_bits < 32);
        assert!(slot_bits >= 2 || slot_bits == key_bits, "three of four slots are some");
        let words = (0..1u64 << slot_bits).map(|_| AtomicU64::new(0)).collect();
        Self { key_bits, slot_bits, words, used: AtomicU32::new(0), live: AtomicU32::new(0) }
    }

    /// The most slots with a key: three of four, or all if each key has a bucket of its own.
    fn used_max(&self) -> u32 {
        let slots = self.words.len() as u32;
        if self.slot_bits == self.key_bits { slots } else { slots / 4 * 3 }
    }

    fn find(&self, key: u64) -> ProbeOutcome {
        let mask = self.words.len() - 1;
        let (bucket, remainder) = (key as usize & mask, key >> self.slot_bits << REMAINDER_SHIFT);
        for distance in 0..HASH_DISTANCE_MAX.min(self.words.len() as u64) {
            let slot = (bucket + distance as usize) & mask;
            let word = self.words[slot].load(Ordering::Acquire);
            if word & KEY_MASK == remainder | (distance + 1) << DISTANCE_SHIFT {
                return ProbeOutcome::Taken(slot, word);
            }
            if word & KEY_MASK == 0 {
                let key = remainder | (distance + 1) << DISTANCE_SHIFT;
                return ProbeOutcome::Empty(slot, word & FROZEN | key);
            }
        }
        ProbeOutcome::Crowded
    }

    pub fn get(&self, key: u64) -> Option<Place> {
        match self.find(key) {
            ProbeOutcome::Taken(_, word) => place_of(word),
            ProbeOutcome::Empty(..) | ProbeOutcome::Crowded => None,
        }
    }

    /// Replaces the place of `key` by what `change` returns for it, and returns the old place. `change` returns `None`
    /// for no change.
    pub fn update(
        &self,
        key: u64,
        change: &impl Fn(Option<Place>) -> Option<Option<Place>>,
    ) -> Result<Option<Place>, Refused> {
        loop {
            let found = self.find(key);
            let old = if let ProbeOutcome::Taken(_, word) = found { place_of(word) } else { None };
            // The table was current when this began. If it no longer is, it was frozen since, and its content was true
            // when it was replaced.
            let Some(new) = change(old) else { return Ok(old) };
            let (slot, word, from) = match found {
                ProbeOutcome::Taken(slot, word) => (slot, word, word),
                ProbeOutcome::Empty(slot, word) => (slot, word, 0),
                ProbeOutcome::Crowded => return Err(Refused::Crowded),
            };
            if word & FROZEN != 0 {
                return Err(Refused::Frozen);
            }
            let takes_a_slot = from == 0;
            if takes_a_slot && self.used.fetch_add(1, Ordering::Relaxed) >= self.used_max() {
                self.used.fetch_sub(1, Ordering::Relaxed);
                return Err(Refused::Full);
            }
            let to = word & KEY_MASK | u64::from(raw_of(new)) << PLACE_SHIFT;
            if self.words[slot].compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                match (old, new) {
                    (None, Some(_)) => drop(self.live.fetch_add(1, Ordering::Relaxed)),
                    (Some(_), None) => drop(self.live.fetch_sub(1, Ordering::Relaxed)),
                    _ => {}
                }
                return Ok(old);
            }
            if takes_a_slot {
                self.used.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Freezes every word. Any number of threads may do so at once.
    pub fn freeze(&self) {
        for word in &self.words {
            word.fetch_or(FROZEN, Ordering::AcqRel);
        }
    }

    /// Returns a copy of this table without tombstones. It has at least `slot_bits_min` bits of slots, and at least two
    /// slots for each place.
    pub fn copy(&self, slot_bits_min: u32) -> Self {
        let words = || self.words.iter().map(|word| word.load(Ordering::Acquire));
        let live = words().filter(|word| place_of(*word).is_some()).count() as u64;
        let fitting = (2 * live).next_power_of_two().trailing_zeros();
        let mut slot_bits = fitting.max(slot_bits_min).min(self.key_bits);
        loop {
            let copy = Self::new(self.key_bits, slot_bits);
            let all = words().enumerate().all(|(slot, word)| {
                let Some(place) = place_of(word) else { return true };
                copy.update(self.key_of(slot, word), &|_| Some(Some(place))).is_ok()
            });
            if all {
                return copy;
            }
            // With a bucket for each key all entries fit.
            slot_bits += 1;
        }
    }

    fn key_of(&self, slot: usize, word: u64) -> u64 {
        let distance =
            ((word & KEY_MASK) >> DISTANCE_SHIFT) & ((1 << (REMAINDER_SHIFT - DISTANCE_SHIFT)) - 1);
        let bucket = (slot as u64).wrapping_sub(distance - 1) & (self.words.len() as u64 - 1);
        (word & KEY_MASK) >> REMAINDER_SHIFT << self.slot_bits | bucket
    }

    /// The bits of the number of slots.
    pub fn slot_bits(&self) -> u32 {
        self.slot_bits
    }

    /// Whether more than an eighth of the keys have no place: a copy has room without being larger.
    pub fn has_tombstones(&self) -> bool {
        let (used, live) = (self.used.load(Ordering::Relaxed), self.live.load(Ordering::Relaxed));
        used.saturating_sub(live) > used / 8
    }

    /// Whether less than an eighth of the slots have places.
    pub fn is_sparse(&self) -> bool {
        u64::from(self.live.load(Ordering::Relaxed)) * 8 < self.words.len() as u64
    }

    /// The bytes of the table.
    pub fn bytes_allocated(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.words)) as u64
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::{Refused, Table};
    use crate::limits::HASH_DISTANCE_MAX;
    use crate::map::Place;

    fn insert(table: &Table, key: u64) -> Result<Option<Place>, Refused> {
        table.update(key, &|_| Some(Place::of_block(key as u32)))
    }

    fn holds(table: &Table, keys: impl Iterator<Item = u64>) -> bool {
        keys.into_iter().all(|key| table.get(key) == Place::of_block(key as u32))
    }

    #[test]
    fn a_crowded_bucket_makes_a_larger_table() {
        let table = Table::new(25, 7);
        let keys = || (0..HASH_DISTANCE_MAX).map(|i| i << 7 | 100);
        assert!(keys().all(|key| insert(&table, key) == Ok(None)));
        assert!(holds(&table, keys()));
        let one_more = HASH_DISTANCE_MAX << 7 | 100;
        assert_eq!(insert(&table, one_more), Err(Refused::Crowded));
        assert_eq!(table.get(one_more), None);
        table.freeze();
        let copy = table.copy(8);
        assert_eq!(insert(&copy, one_more), Ok(None));
        assert!(holds(&copy, keys().chain([one_more])));
    }

    #[test]
    fn the_last_bits_of_a_key_are_not_lost() {
        // The longest remainders, at both ends of the table, where probes wrap.
        let (key_bits, slot_bits) = (31, 6);
        let table = Table::new(key_bits, slot_bits);
        let keys = || (0..40u64).map(|i| (1 << key_bits) - 1 - (i << 20) - i % 2 * 61);
        assert!(keys().all(|key| insert(&table, key) == Ok(None)));
        assert!(holds(&table, keys()));
        table.freeze();
        let copy = table.copy(slot_bits);
        assert!(holds(&copy, keys()) && copy.slot_bits() == 7);
    }

    #[test]
    fn a_frozen_table_does_not_change() {
        let table = Table::new(20, 5);
        assert_eq!(insert(&table, 1), Ok(None));
        table.freeze();
        assert_eq!(insert(&table, 1), Err(Refused::Frozen));
        assert_eq!(insert(&table, 2), Err(Refused::Frozen));
        assert_eq!(table.update(1, &|_| Some(None)), Err(Refused::Frozen));
        assert_eq!(table.update(2, &|_| None), Ok(None), "no change is none");
        assert_eq!((table.get(1), table.get(2)), (Place::of_block(1), None));
    }

    #[test]
    fn tombstones_leave_with_the_table() {
        let table = Table::new(20, 5);
        for key in 0..24 {
            assert_eq!(insert(&table, key), Ok(None));
            table.update(key, &|_| Some(None)).unwrap();
        }
        assert_eq!(insert(&table, 24), Err(Refused::Full));
        assert_eq!(insert(&table, 7), Ok(None), "a key that has a slot keeps it");
        table.freeze();
        let copy = table.copy(5);
        assert_eq!(copy.slot_bits(), 5);
        assert!((30..50).all(|key| insert(&copy, key) == Ok(None)));
        assert!(holds(&copy, (30..50).chain([7])));
    }
}
