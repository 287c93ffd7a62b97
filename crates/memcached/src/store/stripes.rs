//! Locks that order the changes of each key, and of all keys.

use crate::limits::STRIPES;
use granary_cache::KeyHash;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A lock for each of [`STRIPES`] parts of the keys, with a count of how often it was released. Several locks are taken
/// in ascending order.
pub(super) struct Stripes {
    stripes: Box<[Stripe]>,
    hasher: RandomState,
}

#[derive(Default)]
struct Stripe {
    lock: Mutex<()>,
    /// How often the lock was released.
    version: AtomicU64,
}

/// The held lock of a stripe: its holder may change the keys of the stripe.
pub(super) struct StripeGuard<'a> {
    version: &'a AtomicU64,
    _lock: MutexGuard<'a, ()>,
}

impl StripeGuard<'_> {
    /// The version of the locked stripe.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

impl Drop for StripeGuard<'_> {
    fn drop(&mut self) {
        // Incremented after all changes under this lock, and before another thread can take the lock: a thread that saw
        // the version before may not have seen the changes.
        self.version.fetch_add(1, Ordering::Release);
    }
}

impl Stripes {
    pub fn new() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Stripe::default()).collect(), hasher: RandomState::new() }
    }

    fn index(&self, hash: KeyHash) -> usize {
        self.hasher.hash_one(hash) as usize & (STRIPES - 1)
    }

    fn lock_at(&self, index: usize) -> StripeGuard<'_> {
        let Stripe { lock, version } = &self.stripes[index];
        StripeGuard { version, _lock: lock.lock().expect("no panic under the lock") }
    }

    /// The version of a key's stripe: while it stays the same, no key of the stripe has changed since the version was
    /// read.
    pub fn version(&self, hash: KeyHash) -> u64 {
        self.stripes[self.index(hash)].version.load(Ordering::Acquire)
    }

    pub fn lock(&self, hash: KeyHash) -> StripeGuard<'_> {
        self.lock_at(self.index(hash))
    }

    pub fn lock_many(&self, hashes: impl Iterator<Item = KeyHash>) -> Vec<StripeGuard<'_>> {
        let mut indexes: Vec<usize> = hashes.map(|hash| self.index(hash)).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|index| self.lock_at(index)).collect()
    }

    pub fn lock_all(&self) -> Vec<StripeGuard<'_>> {
        (0..STRIPES).map(|index| self.lock_at(index)).collect()
    }
}
