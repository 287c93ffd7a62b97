//! Keys and values of the caller's types, over a cache of bytes.

mod format;
mod plain;
#[cfg(feature = "serde")]
mod postcard;
mod single_flight;

#[cfg(feature = "serde")]
pub use self::postcard::Postcard;
pub use format::{Decode, Encode};
#[cfg(feature = "async")]
pub(crate) use format::{key_bytes, keys_to_vecs, to_vec};
pub use plain::Plain;

use crate::cache::Cache;
use crate::entry::{Entry, Refusal};
use crate::error::Error;
use crate::single::{end_of, with_io};
use crate::{Outcome, Stats, now};
use granary_log::sync::Arc;
use granary_log::sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A cache of keys `K` and values `V`, encoded by the format `C`: [`Plain`] for bytes, text and numbers,
/// `Postcard` (feature `serde`) for whatever implements serde's traits.
///
/// Keys are only ever borrowed: for keys of text `K` is best `str`, for bytes `[u8]`. A value that does not decode,
/// as one of an older type may not, is a miss and is [counted](Self::undecodable). A value of an older type may decode
/// to something else: a cache whose types change is opened with another
/// [`fingerprint`](crate::Builder::fingerprint), and starts empty.
///
/// ```
/// use granary_cache::{Cache, TypedCache};
///
/// let ages: TypedCache<str, u32> = TypedCache::new(Cache::builder().memory(1 << 20).open()?);
/// ages.insert("Ann", &42)?;
/// assert_eq!(ages.get("Ann"), Some(42));
/// # Ok::<_, granary_cache::Error>(())
/// ```
pub struct TypedCache<K: ?Sized, V, C = Plain> {
    /// Shared with the drivers of an asynchronous cache.
    pub(crate) cache: Arc<Cache>,
    ttl: Option<Duration>,
    undecodable: AtomicU64,
    /// Keys are encoded and not kept: a cache of keys that borrow is asked with keys of any lifetime.
    _key: PhantomData<fn() -> *const K>,
    _value: PhantomData<fn(C) -> V>,
}

impl<K: ?Sized, V, C> TypedCache<K, V, C> {
    /// Keeps keys and values in this cache, which has no entries of other types.
    pub fn new(cache: Cache) -> Self {
        Self {
            cache: Arc::new(cache),
            ttl: None,
            undecodable: AtomicU64::new(0),
            _key: PhantomData,
            _value: PhantomData,
        }
    }

    /// Values expire so long after they were put, to the second, unless another time is given with them.
    #[must_use]
    pub fn time_to_live(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The cache of bytes.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The number of entries, expired ones that were not found out among them; see [`Cache::len`].
    pub fn len(&self) -> u64 {
        self.cache.len()
    }

    /// Whether there is no entry: no key is found.
    pub fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        self.cache.stats()
    }

    /// The number of values found that do not decode.
    pub fn undecodable(&self) -> u64 {
        self.undecodable.load(Ordering::Relaxed)
    }

    /// Waits until what was put is written to the device; see [`Cache::flush`].
    ///
    /// # Errors
    /// The device refused entries: see [`Cache::flush`](crate::Cache::flush).
    pub fn flush(&self) -> Result<(), Error> {
        self.cache.flush()
    }

    /// Forgets everything, for good.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn clear(&self) -> Result<(), Error> {
        self.cache.clear()
    }

    /// Stops cleanly: the cache is warm when it is opened again.
    ///
    /// # Errors
    /// The cache could not be stopped cleanly: see [`Cache::close`].
    pub fn close(self) -> Result<(), Error> {
        self.into_inner().close()
    }

    /// The cache of bytes, for itself.
    pub fn into_inner(self) -> Cache {
        Arc::into_inner(self.cache).expect("whoever shared it has ended")
    }

    /// The time at which a value expires that is put now.
    pub(crate) fn expires_at(&self) -> u32 {
        self.ttl.map_or(0, end_of)
    }
}

impl<K: ?Sized, V, C> fmt::Debug for TypedCache<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedCache")
            .field("cache", &self.cache)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl<K: ?Sized, V, C: Encode<K> + Encode<V> + Decode<V>> TypedCache<K, V, C> {
    /// The value of a key; `None` if it is not there or has expired. May read from flash.
    pub fn get(&self, key: &K) -> Option<V> {
        format::key_bytes::<C, K, _>(key, |bytes| self.cache.look_up(bytes, |value| self.decode(value)))
            .ok()?
    }

    /// Whether there is an entry of this key that has not expired; its value is not decoded.
    pub fn contains(&self, key: &K) -> bool {
        format::key_bytes::<C, K, _>(key, |bytes| self.cache.contains(bytes)).unwrap_or(false)
    }

    /// The values of many keys, in their order: each block of the device is read once, many at a time.
    pub fn get_many(&self, keys: &[&K]) -> Vec<Option<V>> {
        let mut values: Vec<Option<V>> = keys.iter().map(|_| None).collect();
        let encoded = format::keys_to_vecs::<C, K>(keys);
        let asked: Vec<_> = encoded.iter().map(|(_, bytes)| self.cache.key(bytes)).collect();
        with_io(|io| {
            self.cache.get_many(io, &asked, now(), |i, outcome| {
                if let Outcome::Hit { value, .. } = outcome {
                    values[encoded[i].0] = self.decode(value);
                }
            });
        });
        values
    }

    /// Stores a value, which expires after the [time to live](Self::time_to_live), if there is one.
    ///
    /// # Errors
    /// The value is not kept, and the key has no value any more; or key or value cannot be encoded.
    pub fn insert(&self, key: &K, value: &V) -> Result<(), Error> {
        self.insert_until(key, value, self.expires_at())
    }

    /// Stores a value that expires after `ttl`, to the second.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_with_ttl(&self, key: &K, value: &V, ttl: Duration) -> Result<(), Error> {
        self.insert_until(key, value, end_of(ttl))
    }

    /// Stores many values; those that are not kept are returned by their places in the batch, with the reason, and
    /// their keys have no value any more.
    pub fn insert_many(&self, entries: &[(&K, &V)]) -> Vec<(usize, Error)> {
        let (mut encoded, mut refused) = (Vec::new(), Vec::new());
        for (i, (key, value)) in entries.iter().enumerate() {
            let key = format::to_vec::<C, K>(key, "key");
            let value = format::to_vec::<C, V>(value, "value");
            match (key, value) {
                (Ok(key), Ok(value)) => encoded.push((i, key, value)),
                (Ok(key), Err(error)) => {
                    // In their order: the batch may have an older value of this key.
                    self.put_encoded(&mut encoded, &mut refused);
                    self.cache.remove(&key);
                    refused.push((i, error));
                }
                (Err(error), _) => refused.push((i, error)),
            }
        }
        self.put_encoded(&mut encoded, &mut refused);
        refused
    }

    /// Stores what there is of a batch, each entry with its place in that.
    fn put_encoded(&self, encoded: &mut Vec<(usize, Vec<u8>, Vec<u8>)>, refused: &mut Vec<(usize, Error)>) {
        let expires_at = self.expires_at();
        let entries: Vec<Entry<'_>> = encoded
            .iter()
            .map(|(_, key, value)| Entry { key: self.cache.key(key), value: Some(value), expires_at })
            .collect();
        self.cache.put_many_with(&entries, |i, why| refused.push((encoded[i].0, why.into())));
        encoded.clear();
    }

    /// Removes a key, for good: no kill brings it back. After a loss of power see [`Cache::sync_changes`].
    pub fn remove(&self, key: &K) {
        // What cannot be encoded was never put.
        let _ = format::key_bytes::<C, K, _>(key, |bytes| self.cache.remove(bytes));
    }

    /// Removes many keys, for good: no kill brings them back. After a loss of power see [`Cache::sync_changes`].
    pub fn remove_many(&self, keys: &[&K]) {
        let encoded = format::keys_to_vecs::<C, K>(keys);
        let keys: Vec<_> = encoded.iter().map(|(_, bytes)| self.cache.key(bytes)).collect();
        self.cache.delete_many(&keys);
    }

    fn insert_until(&self, key: &K, value: &V, expires_at: u32) -> Result<(), Error> {
        format::key_bytes::<C, K, _>(key, |key| {
            let put = |value: &[u8]| self.cache.insert_until(key, value, expires_at);
            match format::with_bytes::<C, V, _>(value, put) {
                Ok(put) => put.map_err(Refusal::into),
                Err(source) => {
                    self.cache.remove(key);
                    Err(Error::Encode { what: "value", source })
                }
            }
        })?
    }

    /// A value from its bytes; what does not decode is counted.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Option<V> {
        let decoded = C::decode(bytes);
        if decoded.is_err() {
            self.undecodable.fetch_add(1, Ordering::Relaxed);
        }
        decoded.ok()
    }
}
