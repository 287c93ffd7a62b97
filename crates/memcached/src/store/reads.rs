//! The times at which keys were last read, as far as they are remembered: for the flags `h` and `l` and for `me`.
//!
//! Plain reads change nothing in the cache, so this is a separate table: one word for each of the keys read last,
//! written without a lock.

use crate::limits::READS_REMEMBERED;
use granary_cache::Key;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A word holds the hash's upper half and the second of the read; 0: empty.
pub(super) struct Reads {
    words: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Reads {
    pub fn new() -> Self {
        let words = (0..READS_REMEMBERED).map(|_| AtomicU64::new(0)).collect();
        Self { words, hasher: RandomState::new() }
    }

    fn place(&self, key: Key<'_>) -> (&AtomicU64, u64) {
        let hash = self.hasher.hash_one(key.hash());
        (&self.words[hash as usize & (READS_REMEMBERED - 1)], hash & !u64::from(u32::MAX))
    }

    pub fn note(&self, key: Key<'_>, now: u32) {
        let (word, half) = self.place(key);
        // Most reads are noted already in this second: then the cache line stays clean.
        if word.load(Ordering::Relaxed) != half | u64::from(now) {
            word.store(half | u64::from(now), Ordering::Relaxed);
        }
    }

    /// Forgets the last read of a key that is written anew.
    pub fn forget(&self, key: Key<'_>) {
        let (word, half) = self.place(key);
        let noted = word.load(Ordering::Relaxed);
        if noted != 0 && noted & !u64::from(u32::MAX) == half {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// The second of the last read of a key, if it is remembered.
    pub fn last(&self, key: Key<'_>) -> Option<u32> {
        let (word, half) = self.place(key);
        let noted = word.load(Ordering::Relaxed);
        (noted != 0 && noted & !u64::from(u32::MAX) == half).then_some(noted as u32)
    }
}
