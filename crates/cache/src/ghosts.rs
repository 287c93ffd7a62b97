//! Hashes of entries that left RAM lately: a lookup of one would have been a hit in a larger RAM.

use crate::limits::GHOST_BYTES;
use granary_log::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Ages are counted in these parts of the window. A slot that is no longer written looks young again once an age of 8
/// bits wraps around.
const PARTS: u64 = 1 << 5;

/// Objects that left a part of RAM among the last `window` bytes. A slot is overwritten by any object that hashes to
/// it: ghosts are only counted, and never answer lookups.
pub(crate) struct Ghosts {
    /// Upper half: 8 bits of the hash; lower half: the part of the window in which the object left, never 0.
    slots: Box<[AtomicU16]>,
    window: u64,
    /// Bytes that left.
    left: AtomicU64,
}

impl Ghosts {
    /// Ghosts for a window of `window` bytes and objects of about `object_bytes`.
    pub fn new(window: u64, object_bytes: u64) -> Self {
        let slots = window / object_bytes.max(1);
        Self {
            slots: (0..slots.max(1)).map(|_| AtomicU16::new(0)).collect(),
            window: window.max(PARTS),
            left: AtomicU64::new(0),
        }
    }

    /// Bytes of RAM of ghosts with these parameters.
    pub fn bytes(window: u64, object_bytes: u64) -> u64 {
        (window / object_bytes.max(1)).max(1) * GHOST_BYTES
    }

    /// Notes that an object of `bytes` bytes leaves.
    pub fn note(&self, hash: u64, bytes: u64) {
        let left = self.left.fetch_add(bytes, Ordering::Relaxed);
        let (slot, tag) = self.slot(hash);
        slot.store(u16::from(tag) << 8 | u16::from(self.stamp(left)), Ordering::Relaxed);
    }

    /// Whether an object left within the window. One in 256 of the others is wrongly said to have.
    pub fn contains(&self, hash: u64) -> bool {
        let (slot, tag) = self.slot(hash);
        let found = slot.load(Ordering::Relaxed);
        if found as u8 == 0 || (found >> 8) as u8 != tag {
            return false;
        }
        let now = u64::from(self.stamp(self.left.load(Ordering::Relaxed)));
        (now + STAMPS - u64::from(found as u8)) % STAMPS <= PARTS
    }

    /// Whether a ghost is remembered, which is forgotten then.
    pub fn returns(&self, hash: u64) -> bool {
        let contains = self.contains(hash);
        if contains {
            self.slot(hash).0.store(0, Ordering::Relaxed);
        }
        contains
    }

    fn stamp(&self, left: u64) -> u8 {
        (left / (self.window / PARTS) % STAMPS) as u8 + 1
    }

    fn slot(&self, hash: u64) -> (&AtomicU16, u8) {
        let mixed = mixed(hash);
        let slot = (u128::from(mixed) * self.slots.len() as u128) >> 64;
        (&self.slots[slot as usize], mixed as u8)
    }
}

/// Stamps range from 1 to this.
const STAMPS: u64 = u8::MAX as u64;

fn mixed(hash: u64) -> u64 {
    let product = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product ^ product >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_within_the_window_returns_once() {
        const OBJECTS: usize = (1 << 20) / 64;
        let ghosts = Ghosts::new(1 << 20, 64);
        let left: Vec<u64> = (0..4 * OBJECTS as u64).collect();
        left.iter().for_each(|hash| ghosts.note(*hash, 64));
        let returned = |part: &[u64]| part.iter().filter(|hash| ghosts.returns(**hash)).count();
        let (old, young) = left.split_at(left.len() - OBJECTS / 2);
        let (older, newer) = old.split_at(old.len() - OBJECTS);
        // One in 256 looks like another.
        let strangers: Vec<u64> = (1 << 40..(1 << 40) + 2000).collect();
        assert!(returned(&strangers) < 30, "never left");
        // Some were overwritten by those that left later.
        let found = returned(young);
        assert!(found > young.len() * 7 / 10, "{found} of {}", young.len());
        assert!(returned(young) < young.len() / 50, "told once");
        assert!(returned(older) < older.len() / 50);
        assert!(returned(newer) > newer.len() / 6, "half of them are within the window");
    }
}
