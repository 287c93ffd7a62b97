//! Values that are made if they are missing.

use super::TypedCache;
use super::format::{self, Decode, Encode};
use crate::single::end_of;
use std::borrow::Cow;
use std::time::Duration;

impl<K: ?Sized, V, C: Encode<K> + Encode<V> + Decode<V>> TypedCache<K, V, C> {
    /// The value of a key, or the result of `make`, which is stored. If many threads want a key at once, one calls
    /// `make` and the others wait for it. The made value is returned even if it is not kept; it is not kept if the key
    /// was put or removed meanwhile. `make` must not call this for the same key, nor for one whose `make` calls this
    /// for it: that is a deadlock. If the key cannot be encoded, each thread calls its own `make`; if the value cannot,
    /// those that waited call theirs, one after the other.
    ///
    /// # Errors
    /// The errors that `make` returns. Threads that waited for it try for themselves, one after the other.
    pub fn get_or_insert_with<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        self.get_or_insert_until(key, || self.expires_at(), make)
    }

    /// Does what [`get_or_insert_with`](Self::get_or_insert_with) does; the made value expires after `ttl`, to the
    /// second.
    ///
    /// # Errors
    /// The errors that `make` returns.
    pub fn get_or_insert_with_ttl<E>(
        &self,
        key: &K,
        ttl: Duration,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        self.get_or_insert_until(key, || end_of(ttl), make)
    }

    fn get_or_insert_until<E>(
        &self,
        key: &K,
        expires_at: impl FnOnce() -> u32,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        let Ok(key) = format::to_vec::<C, K>(key, "key") else { return make() };
        self.cache.get_or_make(
            &key,
            expires_at,
            |bytes| self.decode(bytes),
            make,
            |value| format::to_vec::<C, V>(value, "value").ok().map(Cow::Owned),
        )
    }
}
