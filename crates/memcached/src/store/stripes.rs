//! Locks that order the changes of one key, and of all keys.

use crate::limits::STRIPES;
use granary_cache::KeyHash;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard};

/// One lock for each of [`STRIPES`] parts of the keys. Several are taken in ascending order.
pub(super) struct Stripes {
    locks: Box<[Mutex<()>]>,
    hasher: RandomState,
}

impl Stripes {
    pub fn new() -> Self {
        Self { locks: (0..STRIPES).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }

    fn index(&self, hash: KeyHash) -> usize {
        self.hasher.hash_one(hash) as usize & (STRIPES - 1)
    }

    fn lock_at(&self, index: usize) -> MutexGuard<'_, ()> {
        self.locks[index].lock().expect("no panic under the lock")
    }

    pub fn lock(&self, hash: KeyHash) -> MutexGuard<'_, ()> {
        self.lock_at(self.index(hash))
    }

    pub fn lock_many(&self, hashes: impl Iterator<Item = KeyHash>) -> Vec<MutexGuard<'_, ()>> {
        let mut indexes: Vec<usize> = hashes.map(|hash| self.index(hash)).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|index| self.lock_at(index)).collect()
    }

    pub fn lock_all(&self) -> Vec<MutexGuard<'_, ()>> {
        (0..STRIPES).map(|index| self.lock_at(index)).collect()
    }
}
