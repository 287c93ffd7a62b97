//! Values that one task makes for all that wait for them.

use super::AsyncCache;
use crate::single::end_of;
use crate::single_flight::FlightRole;
use crate::typed::{Decode, Encode, to_vec};
use std::time::Duration;

impl<K: ?Sized, V, C: Encode<K> + Encode<V> + Decode<V>> AsyncCache<K, V, C> {
    /// The value of a key, or the result of `make`'s future, which is stored. If many tasks and threads want a key at
    /// once, one makes it and the others wait; if that one is dropped before it is done, another takes over. The made
    /// value is returned even if it is not kept; it is not kept if the key was put or removed meanwhile. `make` must
    /// not call this for the same key, nor for one whose `make` calls this for it: that is a deadlock. Waiters make no
    /// progress while the making future is not polled. If the key cannot be encoded, each task makes the value itself;
    /// if the value cannot, those that waited make it, one after the other.
    ///
    /// # Errors
    /// The errors that `make` returns. Tasks that waited for it try for themselves, one after the other.
    pub async fn get_or_insert_with<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: &K,
        make: impl FnOnce() -> F,
    ) -> Result<V, E> {
        self.get_or_insert_until(key, || self.typed().expires_at(), make).await
    }

    /// Does what [`get_or_insert_with`](Self::get_or_insert_with) does; the made value expires after `ttl`, to the
    /// second.
    ///
    /// # Errors
    /// The errors that `make` returns.
    pub async fn get_or_insert_with_ttl<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: &K,
        ttl: Duration,
        make: impl FnOnce() -> F,
    ) -> Result<V, E> {
        self.get_or_insert_until(key, || end_of(ttl), make).await
    }

    async fn get_or_insert_until<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: &K,
        expires_at: impl FnOnce() -> u32,
        make: impl FnOnce() -> F,
    ) -> Result<V, E> {
        let Ok(key) = to_vec::<C, K>(key, "key") else { return make().await };
        let (typed, cache) = (self.typed(), self.cache());
        loop {
            if let Some(value) = self.look_up(key.clone(), |value| typed.decode(value)).await {
                return Ok(value);
            }
            let flight = match cache.single_flight.join(&key) {
                FlightRole::Leader(flight) => flight,
                FlightRole::Waiter(flight) => {
                    match flight.wait_async().await.and_then(|value| typed.decode(&value)) {
                        Some(value) => return Ok(value),
                        None => continue,
                    }
                }
            };
            let _end = flight.finish_on_drop(&cache.single_flight, &key);
            // The value may have been stored before this task became its maker.
            if let Some(bytes) = self.look_up(key.clone(), |value| Some(value.to_vec())).await
                && let Some(value) = typed.decode(&bytes)
            {
                flight.arrive(&bytes);
                return Ok(value);
            }
            let value = make().await?;
            if let Ok(bytes) = to_vec::<C, V>(&value, "value") {
                cache.keep_made(&flight, &key, &bytes, expires_at());
            }
            return Ok(value);
        }
    }
}
