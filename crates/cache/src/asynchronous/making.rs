//! Values that one task makes for all that want them.

use super::AsyncCache;
use crate::making::Joined;
use crate::single::end_of;
use crate::typed::{Decode, Encode, to_vec};
use std::time::Duration;

impl<K: ?Sized, V, C: Encode<K> + Encode<V> + Decode<V>> AsyncCache<K, V, C> {
    /// The value of a key, or what the future of `make` gives for it, which is stored. Of many tasks and threads that want
    /// the same key at once one makes it, and the others wait; if it is dropped before it has made it, one of them does.
    /// What was made is returned even if it is not kept, and is not kept if the key was put or removed meanwhile. `make`
    /// must not ask in this way for the same key, nor for one whose `make` asks for this one: they would wait for each
    /// other. Nor does anybody else get the value while the future that makes it is not polled.
    ///
    /// # Errors
    /// What `make` gives. Tasks that waited for it try for themselves, one after the other.
    pub async fn get_or_insert_with<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: &K,
        make: impl FnOnce() -> F,
    ) -> Result<V, E> {
        self.get_or_insert_until(key, || self.typed().expires_at(), make).await
    }

    /// As [`get_or_insert_with`](Self::get_or_insert_with); what is made expires after `ttl`, to the second.
    ///
    /// # Errors
    /// What `make` gives.
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
            let flight = match cache.flights.join(&key) {
                Joined::Mine(flight) => flight,
                Joined::Others(flight) => match flight.ended().await.and_then(|value| typed.decode(&value)) {
                    Some(value) => return Ok(value),
                    None => continue,
                },
            };
            let _end = flight.end_at_drop(&cache.flights, &key);
            // It may have come before this task was the one to make it.
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
