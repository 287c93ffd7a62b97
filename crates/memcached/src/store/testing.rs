//! For tests of this crate: no part of the store's interface.

use super::Store;

/// Stops a store like a kill.
pub fn abandon(store: Store) {
    granary_cache::testing::abandon(store.cache);
}

/// Starts over: no items, and numbers from 1 on.
pub fn forget_everything(store: &Store) {
    store.cache.clear().expect("a store in RAM is cleared");
    store.numbers.restart();
}
