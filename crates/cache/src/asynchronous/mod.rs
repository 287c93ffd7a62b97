//! Lookups for tasks of any runtime: keys in RAM are answered at once, and a task that waits for the device blocks no
//! thread of the runtime.

mod batch;
mod blocking;
mod driver;
mod single_flight;
mod thread_clones;

use crate::cache::Cache;
use crate::error::Error;
use crate::limits::ASYNC_DRIVERS_MAX;
use crate::lookup::Outcome;
use crate::single::{now, with_io};
use crate::typed::{Decode, Encode, Plain, TypedCache, key_bytes, keys_to_vecs, to_vec};
use batch::Values;
use driver::{Driver, Request};
use granary_log::sync::Arc;
use std::fmt;
use std::time::Duration;
use thread_clones::ThreadClones;

/// A [`TypedCache`] for asynchronous tasks, of any runtime or none. Clones are the same cache.
///
/// A key in RAM is answered without waiting, a key on flash by one of the cache's own threads, at most four. Each of
/// these reads values longer than 128 KiB one after the other. Puts and removals never wait, and are no futures. A
/// future may be dropped: what it began is completed without it. Dropping the last clone stops the cache, which waits
/// for the device: [`close`](Self::close) does so on another thread.
///
/// ```
/// use granary_cache::{AsyncCache, Cache, TypedCache};
///
/// # async fn example() -> Result<(), granary_cache::Error> {
/// let cache = Cache::builder().memory(1 << 20).open()?;
/// let ages: AsyncCache<str, u32> = AsyncCache::new(TypedCache::new(cache))?;
/// ages.insert("Ann", &42)?;
/// assert_eq!(ages.get("Ann").await, Some(42));
/// # Ok(())
/// # }
/// ```
pub struct AsyncCache<K: ?Sized = [u8], V = Vec<u8>, C = Plain>(Arc<AsyncShared<K, V, C>>);

struct AsyncShared<K: ?Sized, V, C> {
    /// Dropped before the cache. Empty: the cache is in RAM only.
    drivers: Vec<Driver>,
    typed: TypedCache<K, V, C>,
    thread_clones: Arc<ThreadClones>,
}

impl<K: ?Sized, V, C> Clone for AsyncCache<K, V, C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: ?Sized, V, C> fmt::Debug for AsyncCache<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncCache").field(&self.0.typed).finish()
    }
}

impl<K: ?Sized, V, C> AsyncCache<K, V, C> {
    /// Serves tasks from `typed`. If that has flash, it starts a thread for each core, at most four.
    ///
    /// # Errors
    /// The operating system has no threads or events left.
    pub fn new(typed: TypedCache<K, V, C>) -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if typed.cache().is_on_flash() { cores.min(ASYNC_DRIVERS_MAX) } else { 0 };
        let driver = |_| Driver::start(Arc::clone(&typed.cache)).map_err(|source| Error::Start { source });
        let drivers = (0..count).map(driver).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(AsyncShared { drivers, typed, thread_clones: Arc::default() })))
    }

    /// The cache, for threads that may block.
    pub fn typed(&self) -> &TypedCache<K, V, C> {
        &self.0.typed
    }

    fn cache(&self) -> &Cache {
        self.0.typed.cache()
    }

    /// The result of `take` for a key's value, if the key is in RAM or nowhere; `None`: it may be on flash.
    fn look_up_in_memory<T>(&self, key: &[u8], take: impl Fn(&[u8]) -> Option<T>) -> Option<Option<T>> {
        let mut found = None;
        with_io(|io| {
            self.cache().get_many_in_memory(io, &[self.cache().key(key)], now(), |_, outcome| {
                found = Some(match outcome {
                    Outcome::Hit { value, .. } => take(value),
                    _ => None,
                });
            });
        });
        found
    }

    /// The result of `take` for a key's value.
    async fn look_up<T>(&self, key: Vec<u8>, take: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        match self.look_up_in_memory(&key, &take) {
            Some(found) => found,
            None => take(&self.read(&[key], vec![None], &[false]).await.pop()??),
        }
    }

    /// The values of keys: those in RAM at once, the others when they have been read.
    async fn values_of(&self, keys: &[Vec<u8>]) -> Values {
        let mut values: Values = keys.iter().map(|_| None).collect();
        let mut is_known = vec![false; keys.len()];
        {
            let asked: Vec<_> = keys.iter().map(|key| self.cache().key(key)).collect();
            with_io(|io| {
                self.cache().get_many_in_memory(io, &asked, now(), |i, outcome| {
                    is_known[i] = true;
                    if let Outcome::Hit { value, .. } = outcome {
                        values[i] = Some(value.to_vec());
                    }
                });
            });
        }
        if is_known.iter().all(|is_known| *is_known) {
            return values;
        }
        self.read(keys, values, &is_known).await
    }

    fn read(&self, keys: &[Vec<u8>], values: Values, is_known: &[bool]) -> batch::PendingValues {
        let places: Vec<usize> = (0..keys.len()).filter(|i| !is_known[*i]).collect();
        let (arriving, answers) = batch::batch(values, &places);
        let drivers = &self.0.drivers;
        let driver_of = |key: &[u8]| self.cache().key(key).hash().to_bits() as usize % drivers.len();
        let mut requests: Vec<(usize, Request)> = places
            .iter()
            .zip(answers)
            .map(|(place, answer)| {
                let key: Box<[u8]> = keys[*place].as_slice().into();
                (driver_of(&key), Request { key, answer })
            })
            .collect();
        for (number, driver) in drivers.iter().enumerate() {
            let mut its =
                requests.extract_if(.., |(of, _)| *of == number).map(|(_, request)| request).peekable();
            if its.peek().is_some() {
                driver.ask(its);
            }
        }
        arriving
    }
}

impl<K: ?Sized, V, C: Encode<K> + Encode<V> + Decode<V>> AsyncCache<K, V, C> {
    /// The value of a key; `None` if it is not there or has expired.
    pub async fn get(&self, key: &K) -> Option<V> {
        let decode = |value: &[u8]| self.0.typed.decode(value);
        let found =
            key_bytes::<C, K, _>(key, |key| self.look_up_in_memory(key, decode).ok_or_else(|| key.to_vec()));
        match found.ok()? {
            Ok(found) => found,
            Err(key) => decode(&self.read(&[key], vec![None], &[false]).await.pop()??),
        }
    }

    /// Whether there is an entry of this key that has not expired; its value is not decoded.
    pub async fn contains(&self, key: &K) -> bool {
        let Ok(key) = to_vec::<C, K>(key, "key") else { return false };
        self.look_up(key, |_| Some(())).await.is_some()
    }

    /// The values of many keys, in their order: each block of the device is read once, many at a time.
    pub async fn get_many(&self, keys: &[&K]) -> Vec<Option<V>> {
        let (places, encoded): (Vec<usize>, Vec<Vec<u8>>) = keys_to_vecs::<C, K>(keys).into_iter().unzip();
        let mut values: Vec<Option<V>> = keys.iter().map(|_| None).collect();
        for (place, value) in places.into_iter().zip(self.values_of(&encoded).await) {
            values[place] = value.and_then(|value| self.0.typed.decode(&value));
        }
        values
    }

    /// Stores a value; see [`TypedCache::insert`].
    ///
    /// # Errors
    /// The value is not kept, and the key no longer has one; or key or value cannot be encoded.
    pub fn insert(&self, key: &K, value: &V) -> Result<(), Error> {
        self.0.typed.insert(key, value)
    }

    /// Stores a value that expires after `ttl`, to the second.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_with_ttl(&self, key: &K, value: &V, ttl: Duration) -> Result<(), Error> {
        self.0.typed.insert_with_ttl(key, value, ttl)
    }

    /// Stores many values; see [`TypedCache::insert_many`].
    pub fn insert_many(&self, entries: &[(&K, &V)]) -> Vec<(usize, Error)> {
        self.0.typed.insert_many(entries)
    }

    /// Removes a key, for good: no kill brings it back. After a loss of power see [`Cache::sync_changes`].
    pub fn remove(&self, key: &K) {
        self.0.typed.remove(key);
    }

    /// Removes many keys, for good: no kill brings them back. After a loss of power see [`Cache::sync_changes`].
    pub fn remove_many(&self, keys: &[&K]) {
        self.0.typed.remove_many(keys);
    }
}
