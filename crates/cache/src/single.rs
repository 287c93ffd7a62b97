//! One key at a time, as in a map. Batches ([`Cache::get_many`] and the like) are faster for many keys at once.

use crate::cache::Cache;
use crate::drive::Io;
use crate::entry::{Entry, Refusal};
use crate::lookup::Outcome;
use crate::single_flight::{Flight, FlightRole};
use std::borrow::Cow;
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

thread_local! {
    /// Rings and buffers belong to the calling thread.
    static IO: RefCell<Option<Io>> = const { RefCell::new(None) };
}

/// Lends the thread's `Io`. A lookup while it is lent, or after the thread's end, uses a new one.
pub(crate) fn with_io<T>(then: impl FnOnce(&mut Io) -> T) -> T {
    let mut io = IO.try_with(RefCell::take).ok().flatten().unwrap_or_default();
    let result = then(&mut io);
    let _ = IO.try_with(|own| own.replace(Some(io)));
    result
}

/// The system's Unix time.
fn time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The Unix second after which an entry is expired that lives for `ttl` from now on.
pub(crate) fn end_of(ttl: Duration) -> u32 {
    // At least 1, for 0 means never, and a clock before 1970 gives 0.
    u32::try_from(time().saturating_add(ttl).as_secs()).unwrap_or(u32::MAX).max(1)
}

/// The Unix time in seconds, as lookups and entries have it, by the system's clock.
pub fn now() -> u32 {
    u32::try_from(time().as_secs()).unwrap_or(u32::MAX)
}

impl Cache {
    /// The value of a key; `None` if it is not there, has expired, or is stored as absent from the source.
    ///
    /// May read from flash; expiry is told by the system's clock.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.look_up(key, |value| Some(value.to_vec()))
    }

    /// Whether [`get`](Self::get) would find a value.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.look_up(key, |_| Some(())).is_some()
    }

    /// The result of `take` for a key's value.
    pub(crate) fn look_up<T>(&self, key: &[u8], take: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let mut found = None;
        with_io(|io| {
            self.get_many(io, &[self.key(key)], now(), |_, outcome| {
                if let Outcome::Hit { value, .. } = outcome {
                    found = take(value);
                }
            });
        });
        found
    }

    /// Stores a value, which stays until it is replaced, removed or evicted. It is written when its write buffer is
    /// full, or with [`flush`](Self::flush) or [`close`](Self::close): a kill before that loses it, unless there is a
    /// [`memory_folder`](crate::FlashOptions::memory_folder). With another admission than
    /// [`Admission::All`](crate::admission::Admission::All) it is in RAM only, until it has to leave or the cache is closed.
    ///
    /// # Errors
    /// The value is not kept, and the key no longer has one.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.insert_until(key, value, 0)
    }

    /// Stores a value that expires after `ttl`, to the second: it may be there for a second longer.
    ///
    /// # Errors
    /// The value is not kept, and the key no longer has one.
    pub fn insert_with_ttl(&self, key: &[u8], value: &[u8], ttl: Duration) -> Result<(), Refusal> {
        self.insert_until(key, value, end_of(ttl))
    }

    pub(crate) fn insert_until(&self, key: &[u8], value: &[u8], expires_at: u32) -> Result<(), Refusal> {
        let mut outcome = Ok(());
        self.put_many_with(&[Entry { key: self.key(key), value: Some(value), expires_at }], |_, why| {
            outcome = Err(why);
        });
        outcome
    }

    /// Removes a key, for good: no kill brings it back. After a loss of power see
    /// [`sync_changes`](Self::sync_changes).
    pub fn remove(&self, key: &[u8]) {
        self.delete_many(&[self.key(key)]);
    }

    /// The number of entries, including expired ones whose places were not reused. Copies in RAM of entries whose place
    /// on flash was reused are found, but not counted. Locks each shard in turn.
    pub fn len(&self) -> u64 {
        self.stats().entries
    }

    /// Whether there is no entry, not even one that [`len`](Self::len) does not count: no key is found.
    pub fn is_empty(&self) -> bool {
        let stats = self.stats();
        stats.entries == 0 && stats.memory_entries == 0
    }

    /// The value of a key, or the result of `make`, which is stored. If many threads want a key at once, one calls
    /// `make` and the others wait for it. The made value is returned even if it is not kept; it is not kept if the key
    /// was put or removed meanwhile. `make` must not call this for the same key, nor for one whose `make` calls this
    /// for it: that is a deadlock. A value that is made counts as two misses, one for each lookup.
    ///
    /// # Errors
    /// The errors that `make` returns. Threads that waited for it try for themselves, one after the other.
    pub fn get_or_insert_with<E>(
        &self,
        key: &[u8],
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        self.get_or_make_bytes(key, || 0, make)
    }

    /// Does what [`get_or_insert_with`](Self::get_or_insert_with) does; the made value expires after `ttl`, to the
    /// second.
    ///
    /// # Errors
    /// The errors that `make` returns.
    pub fn get_or_insert_with_ttl<E>(
        &self,
        key: &[u8],
        ttl: Duration,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        self.get_or_make_bytes(key, || end_of(ttl), make)
    }

    fn get_or_make_bytes<E>(
        &self,
        key: &[u8],
        expires_at: impl FnOnce() -> u32,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        self.get_or_make(
            key,
            expires_at,
            |bytes| Some(bytes.to_vec()),
            make,
            |value| Some(Cow::Borrowed(value)),
        )
    }

    /// The value of a key, or the result of `make`. `decode` returns the value of valid bytes, `encode` the bytes of a
    /// value that can be stored.
    pub(crate) fn get_or_make<T, E>(
        &self,
        key: &[u8],
        expires_at: impl FnOnce() -> u32,
        decode: impl Fn(&[u8]) -> Option<T>,
        make: impl FnOnce() -> Result<T, E>,
        encode: impl FnOnce(&T) -> Option<Cow<'_, [u8]>>,
    ) -> Result<T, E> {
        loop {
            if let Some(value) = self.look_up(key, &decode) {
                return Ok(value);
            }
            let flight = match self.single_flight.join(key) {
                FlightRole::Leader(flight) => flight,
                FlightRole::Waiter(flight) => match flight.wait().and_then(|value| decode(&value)) {
                    Some(value) => return Ok(value),
                    None => continue,
                },
            };
            let _end = flight.finish_on_drop(&self.single_flight, key);
            // The value may have been stored before this thread became its maker.
            if let Some(value) = self.look_up(key, &decode) {
                if let Some(bytes) = encode(&value) {
                    flight.arrive(&bytes);
                }
                return Ok(value);
            }
            let value = make()?;
            if let Some(bytes) = encode(&value) {
                self.keep_made(&flight, key, &bytes, expires_at());
            }
            return Ok(value);
        }
    }

    /// Stores a made value, unless its key was changed meanwhile, and passes it to the waiting threads.
    pub(crate) fn keep_made(&self, flight: &Flight, key: &[u8], value: &[u8], expires_at: u32) {
        flight.unless_cancelled(|| {
            self.put_made(Entry { key: self.key(key), value: Some(value), expires_at });
        });
        flight.arrive(value);
    }
}
