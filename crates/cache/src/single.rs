//! One key at a time, as maps and other caches have it. Batches ([`Cache::get_many`] and its like) are what is fast
//! where many keys are wanted at once.

use crate::cache::Cache;
use crate::drive::Io;
use crate::entry::{Entry, Refusal};
use crate::lookup::Outcome;
use crate::making::Joined;
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

thread_local! {
    /// Rings and buffers belong to the calling thread.
    static IO: RefCell<Io> = RefCell::new(Io::new());
}

/// The system's time, in seconds of Unix time and what is beyond them.
fn time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The Unix second after which an entry is expired that lives for `ttl` from now on.
fn end_of(ttl: Duration) -> u32 {
    u32::try_from(time().saturating_add(ttl).as_secs()).unwrap_or(u32::MAX)
}

impl Cache {
    /// The value of a key; `None` if it is not there, has expired, or is stored as absent from the source.
    ///
    /// May read from flash; expiry is told by the system's clock.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.look_up(key, <[u8]>::to_vec)
    }

    /// Whether [`get`](Self::get) would find a value.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.look_up(key, |_| ()).is_some()
    }

    fn look_up<T>(&self, key: &[u8], take: impl Fn(&[u8]) -> T) -> Option<T> {
        let now = u32::try_from(time().as_secs()).unwrap_or(u32::MAX);
        let mut found = None;
        IO.with_borrow_mut(|io| {
            self.get_many(io, &[self.key(key)], now, |_, outcome| {
                if let Outcome::Hit { value, .. } = outcome {
                    found = Some(take(value));
                }
            });
        });
        found
    }

    /// Stores a value, which stays until it is replaced, removed or evicted.
    ///
    /// # Errors
    /// The value is not kept, and the key has no value any more.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.insert_until(key, value, 0)
    }

    /// Stores a value that expires after `ttl`, to the second: it may be there for a second longer.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_with_ttl(&self, key: &[u8], value: &[u8], ttl: Duration) -> Result<(), Refusal> {
        self.insert_until(key, value, end_of(ttl))
    }

    fn insert_until(&self, key: &[u8], value: &[u8], expires_at: u32) -> Result<(), Refusal> {
        let mut outcome = Ok(());
        self.try_put_many(&[Entry { key: self.key(key), value: Some(value), expires_at }], |_, why| {
            outcome = Err(why);
        });
        outcome
    }

    /// Removes a key, for good: no crash brings it back.
    pub fn remove(&self, key: &[u8]) {
        self.delete_many(&[self.key(key)]);
    }

    /// How many entries there are, expired ones that were not found out among them. Asks each shard in turn.
    pub fn len(&self) -> u64 {
        self.stats().entries
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key, or what `make` gives for it, which is stored. Of many threads that want the same key at once
    /// one calls `make`, and the others wait for it. What was made is returned even if it is not kept, and is not kept
    /// if the key was put or removed meanwhile. `make` must not ask for the same key in this way: it would wait for itself.
    ///
    /// # Errors
    /// What `make` returns. Threads that waited for it try for themselves.
    pub fn get_or_insert_with<E>(
        &self,
        key: &[u8],
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        loop {
            if let Some(value) = self.get(key) {
                return Ok(value);
            }
            let flight = match self.flights.join(key) {
                Joined::Mine(flight) => flight,
                Joined::Others(flight) => match flight.wait() {
                    Some(value) => return Ok(value),
                    None => continue,
                },
            };
            let _end = flight.end_at_drop(&self.flights, key);
            // It may have come before this thread was the one to make it.
            let value = match self.get(key) {
                Some(value) => value,
                None => {
                    let value = make()?;
                    flight.unless_overtaken(|| {
                        let entry = Entry { key: self.key(key), value: Some(&value), expires_at: 0 };
                        self.put_made(&[entry], &mut |_, _| ());
                    });
                    value
                }
            };
            flight.arrive(&value);
            return Ok(value);
        }
    }
}
