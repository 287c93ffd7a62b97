//! Locks that order the changes of each key, and of all keys.

use super::fetch::Fetches;
use crate::limits::STRIPES;
use granary_cache::KeyHash;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard};

/// A lock for each of [`STRIPES`] parts of the keys, with the fetches of its keys. Several locks are taken in ascending
/// order.
pub(super) struct Stripes {
    stripes: Box<[Mutex<Fetches>]>,
    hasher: RandomState,
}

/// The held locks of some keys' stripes, by their indexes.
pub(super) struct HeldStripes<'a> {
    stripes: &'a Stripes,
    held: Vec<(usize, MutexGuard<'a, Fetches>)>,
}

impl HeldStripes<'_> {
    /// Whether there may be fetches of keys of these stripes.
    pub fn have_fetches(&self) -> bool {
        self.held.iter().any(|(_, fetches)| !fetches.is_empty())
    }

    /// The fetches of the stripe of a key whose stripe is held.
    pub fn fetches(&mut self, hash: KeyHash) -> &mut Fetches {
        let index = self.stripes.index(hash);
        let at = self.held.binary_search_by_key(&index, |(index, _)| *index).expect("the stripe is held");
        &mut self.held[at].1
    }
}

impl Stripes {
    pub fn new() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }

    fn index(&self, hash: KeyHash) -> usize {
        self.hasher.hash_one(hash) as usize & (STRIPES - 1)
    }

    fn lock_at(&self, index: usize) -> MutexGuard<'_, Fetches> {
        self.stripes[index].lock().expect("no panic under the lock")
    }

    pub fn lock(&self, hash: KeyHash) -> MutexGuard<'_, Fetches> {
        self.lock_at(self.index(hash))
    }

    pub fn lock_many(&self, hashes: impl Iterator<Item = KeyHash>) -> HeldStripes<'_> {
        let mut indexes: Vec<usize> = hashes.map(|hash| self.index(hash)).collect();
        indexes.sort_unstable();
        indexes.dedup();
        let held = indexes.into_iter().map(|index| (index, self.lock_at(index))).collect();
        HeldStripes { stripes: self, held }
    }

    pub fn lock_all(&self) -> Vec<MutexGuard<'_, Fetches>> {
        (0..STRIPES).map(|index| self.lock_at(index)).collect()
    }
}
