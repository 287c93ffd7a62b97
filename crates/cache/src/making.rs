//! Values that are being made: of many threads that want the same key at once, one makes its value.

use crate::key::{Key, KeyHash};
use crate::limits::MADE_LATELY;
use granary_log::sync::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use granary_log::sync::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::task::Waker;

/// Keys whose values are being made.
#[derive(Default)]
pub(crate) struct MakingFlights {
    flights: Mutex<HashMap<Box<[u8]>, Arc<Making>>>,
    /// How many there are: whoever changes keys looks here first.
    count: AtomicUsize,
    /// How many made values were stored.
    stored: AtomicU64,
    /// The keys of the last of them, the `n`-th at `n % MADE_LATELY`.
    stored_lately: Mutex<Box<[Option<KeyHash>]>>,
}

/// A value that is being made.
#[derive(Default)]
pub(crate) struct Making {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    value: Option<Vec<u8>>,
    has_ended: bool,
    /// The key was changed since.
    is_overtaken: bool,
    /// Tasks that wait for the end.
    wakers: Vec<Waker>,
}

/// The thread or task that makes a value.
pub(crate) enum Joined {
    /// The thread that asked.
    Mine(Arc<Making>),
    /// Another thread.
    Others(Arc<Making>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl MakingFlights {
    pub fn join(&self, key: &[u8]) -> Joined {
        let mut flights = lock(&self.flights);
        if let Some(flight) = flights.get(key) {
            return Joined::Others(Arc::clone(flight));
        }
        let flight = Arc::new(Making::default());
        flights.insert(key.into(), Arc::clone(&flight));
        self.count.store(flights.len(), Ordering::SeqCst);
        Joined::Mine(flight)
    }

    /// A made value of this key is about to be stored.
    pub fn note_stored(&self, key: KeyHash) {
        let mut lately = lock(&self.stored_lately);
        if lately.is_empty() {
            *lately = vec![None; MADE_LATELY].into();
        }
        let stored = self.stored.load(Ordering::SeqCst);
        lately[stored as usize % MADE_LATELY] = Some(key);
        self.stored.store(stored + 1, Ordering::SeqCst);
    }

    /// Changes items of keys. A value that is made for one of the keys meanwhile does not replace what was changed, and is
    /// not given to those who come after the change: where one may have come between, `delete` deletes what the key has. To
    /// change it again could undo what others have done since.
    pub fn change<'a, T>(
        &self,
        items: &[T],
        key: impl Fn(&T) -> Key<'a>,
        change: impl FnOnce(&[T]),
        mut delete: impl FnMut(Key<'a>),
    ) {
        let mut stored = self.stored.load(Ordering::SeqCst);
        self.overtake(items.iter().map(|item| key(item).bytes()));
        change(items);
        loop {
            // Those who began to make a value after the keys were overtaken and before they were changed.
            self.overtake(items.iter().map(|item| key(item).bytes()));
            let before = std::mem::replace(&mut stored, self.stored.load(Ordering::SeqCst));
            if stored == before {
                return;
            }
            for key in items.iter().map(&key) {
                if self.may_have_stored(before, key.hash()) {
                    delete(key);
                }
            }
        }
    }

    /// Whether a made value of this key may have been stored since there were `before`.
    fn may_have_stored(&self, before: u64, key: KeyHash) -> bool {
        let lately = lock(&self.stored_lately);
        let stored = self.stored.load(Ordering::SeqCst);
        stored - before > MADE_LATELY as u64
            || (before..stored).any(|n| lately[n as usize % MADE_LATELY] == Some(key))
    }

    /// These keys change: what is being made for them is not stored, and nobody joins it any more.
    fn overtake<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for key in keys {
            let flight = self.take_out(key, |_| true);
            if let Some(flight) = flight {
                lock(&flight.state).is_overtaken = true;
            }
        }
    }

    /// All keys change.
    pub fn overtake_all(&self) {
        let mut flights = lock(&self.flights);
        let all = std::mem::take(&mut *flights);
        self.count.store(0, Ordering::SeqCst);
        drop(flights);
        all.into_values().for_each(|flight| lock(&flight.state).is_overtaken = true);
    }

    fn take_out(&self, key: &[u8], is_meant: impl Fn(&Arc<Making>) -> bool) -> Option<Arc<Making>> {
        let mut flights = lock(&self.flights);
        let flight = flights.get(key).filter(|flight| is_meant(flight)).cloned();
        if flight.is_some() {
            flights.remove(key);
            self.count.store(flights.len(), Ordering::SeqCst);
        }
        flight
    }
}

impl Making {
    /// The value; `None`: there will be none.
    pub fn wait(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        while !state.has_ended {
            state = self.ended.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.value.clone()
    }

    /// As [`wait`](Self::wait), for a task.
    #[cfg(feature = "async")]
    pub async fn ended(&self) -> Option<Vec<u8>> {
        std::future::poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.has_ended {
                return std::task::Poll::Ready(state.value.clone());
            }
            if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                state.wakers.push(context.waker().clone());
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Calls `store` unless the key was changed: that waits until `store` is done, and then changes what it stored.
    pub fn unless_overtaken(&self, store: impl FnOnce()) {
        let state = lock(&self.state);
        if !state.is_overtaken {
            store();
        }
    }

    /// The value has come.
    pub fn arrive(&self, value: &[u8]) {
        lock(&self.state).value = Some(value.to_vec());
    }

    /// Whatever happens to the maker, nobody waits for it in vain.
    pub fn end_at_drop<'a>(self: &'a Arc<Self>, flights: &'a MakingFlights, key: &'a [u8]) -> impl Drop + 'a {
        struct End<'a>(&'a Arc<Making>, &'a MakingFlights, &'a [u8]);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                let Self(flight, flights, key) = self;
                flights.take_out(key, |found| Arc::ptr_eq(found, flight));
                let mut state = lock(&flight.state);
                state.has_ended = true;
                let wakers = std::mem::take(&mut state.wakers);
                drop(state);
                flight.ended.notify_all();
                wakers.into_iter().for_each(Waker::wake);
            }
        }
        End(self, flights, key)
    }
}

#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn nobody_joins_after_a_change_what_began_while_it_went_on() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        let mut begun = None;
        cache.flights.change(
            &[cache.key(b"key")],
            |key| *key,
            |_| begun = Some(cache.flights.join(b"key")),
            |_| (),
        );
        assert!(matches!(begun, Some(Joined::Mine(_))));
        assert!(matches!(cache.flights.join(b"key"), Joined::Mine(_)));
    }

    #[test]
    fn what_a_made_value_came_between_is_deleted() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        for others in [0, 1, MADE_LATELY] {
            let mut deleted = Vec::new();
            cache.flights.change(
                &[cache.key(b"a"), cache.key(b"b")],
                |key| *key,
                |_| {
                    cache.flights.note_stored(cache.key(b"b").hash());
                    (0..others).for_each(|_| cache.flights.note_stored(cache.key(b"c").hash()));
                },
                |key| deleted.push(key.bytes()),
            );
            // More than are remembered may be of any key.
            let expected: &[&[u8]] = if others < MADE_LATELY { &[b"b"] } else { &[b"a", b"b"] };
            assert_eq!(deleted, expected);
        }
    }

    /// A put during which a made value of its key was stored, and then another's removal: that is the last word.
    #[test]
    fn a_put_that_met_a_made_value_does_not_undo_what_came_after_it() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        let put = |key| cache.insert(key, b"value").unwrap();
        cache.flights.change(
            &[cache.key(b"key")],
            |key| *key,
            |_| {
                cache.flights.note_stored(cache.key(b"key").hash());
                put(b"key");
                cache.remove(b"key");
            },
            |key| cache.delete_many(&[key]),
        );
        assert_eq!(cache.get(b"key"), None);
    }
}
