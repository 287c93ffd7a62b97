//! Values that are made when they are not there.

use super::TypedCache;
use super::format::{self, Decode, Encode};
use std::borrow::Cow;

impl<K: ?Sized, V, C: Encode<K> + Encode<V> + Decode<V>> TypedCache<K, V, C> {
    /// The value of a key, or what `make` gives for it, which is stored. Of many threads that want the same key at once
    /// one calls `make`, and the others wait for it. What was made is returned even if it is not kept, and is not kept
    /// if the key was put or removed meanwhile. `make` must not ask for the same key in this way: it would wait for itself.
    ///
    /// # Errors
    /// What `make` returns. Threads that waited for it try for themselves.
    pub fn get_or_insert_with<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let Ok(key) = format::to_vec::<C, K>(key, "key") else { return make() };
        self.cache.get_or_make(
            &key,
            || self.expires_at(),
            |bytes| self.decode(bytes),
            make,
            |value| format::to_vec::<C, V>(value, "value").ok().map(Cow::Owned),
        )
    }
}
