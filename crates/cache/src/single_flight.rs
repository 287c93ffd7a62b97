//! Values that are being made: of many threads that want the same key at once, one makes its value.

use crate::key::{Key, KeyHash};
use crate::limits::MADE_LATELY;
use granary_log::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use granary_log::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(feature = "async")]
use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
#[cfg(feature = "async")]
use std::task::Waker;

/// Keys whose values are being made.
#[derive(Default)]
pub(crate) struct SingleFlight {
    flights: Mutex<HashMap<Box<[u8]>, Arc<Flight>>>,
    /// Their number: whoever changes keys looks here first.
    count: AtomicUsize,
    /// The number of made values that were stored.
    stored: AtomicU64,
    /// The number of these stores that have ended.
    ended: AtomicU64,
    /// The keys of the last of them, the `n`-th at `n % MADE_LATELY`.
    stored_lately: Mutex<Box<[KeyHash]>>,
}

/// The keys whose made values were stored.
enum StoredSince {
    /// More than are remembered.
    Any,
    /// The keys with these hashes.
    Keys(HashSet<u64>),
}

impl StoredSince {
    fn may_have(&self, key: KeyHash) -> bool {
        match self {
            Self::Any => true,
            Self::Keys(keys) => keys.contains(&key.to_bits()),
        }
    }
}

/// A value that is being made.
#[derive(Default)]
pub(crate) struct Flight {
    state: Mutex<FlightState>,
    ended: Condvar,
}

#[derive(Default)]
struct FlightState {
    value: Option<Vec<u8>>,
    has_ended: bool,
    /// The key was changed since.
    is_cancelled: bool,
    /// Tasks that wait for the end, by the numbers of their waits: they are woken in the order in which they came.
    #[cfg(feature = "async")]
    tasks: BTreeMap<u64, Waker>,
    /// The number of the next wait.
    #[cfg(feature = "async")]
    next_wait: u64,
}

/// A task's wait for the end of a flight. Whoever drops it waits no more.
#[cfg(feature = "async")]
struct Wait<'a> {
    flight: &'a Flight,
    number: u64,
}

#[cfg(feature = "async")]
impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let waker = lock(&self.flight.state).tasks.remove(&self.number);
        // The task's code: no lock is held.
        drop(waker);
    }
}

/// The thread or task that makes a value.
pub(crate) enum FlightRole {
    /// The thread that asked.
    Leader(Arc<Flight>),
    /// Another thread.
    Waiter(Arc<Flight>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl SingleFlight {
    pub fn join(&self, key: &[u8]) -> FlightRole {
        let mut flights = lock(&self.flights);
        if let Some(flight) = flights.get(key) {
            return FlightRole::Waiter(Arc::clone(flight));
        }
        let flight = Arc::new(Flight::default());
        flights.insert(key.into(), Arc::clone(&flight));
        self.count.store(flights.len(), Ordering::SeqCst);
        FlightRole::Leader(flight)
    }

    /// A made value of this key is about to be stored.
    pub fn begin_store(&self, key: KeyHash) {
        let mut lately = lock(&self.stored_lately);
        if lately.is_empty() {
            *lately = vec![KeyHash::default(); MADE_LATELY].into();
        }
        let stored = self.stored();
        lately[stored as usize % MADE_LATELY] = key;
        self.stored.store(stored + 1, Ordering::SeqCst);
    }

    /// The value that was [noted](Self::begin_store) is stored.
    pub fn end_store(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Runs `change` on `items`, and cancels the values that are being made for their keys: those are not stored, and
    /// not given to callers that come after the change. Where one may have been stored in between, `delete` deletes the
    /// key; changing it again could undo what other threads have done since. Returns the indexes of the items whose
    /// keys were deleted.
    pub fn change<'a, T>(
        &self,
        items: &[T],
        key: impl Fn(&T) -> Key<'a>,
        change: impl FnOnce(&[T]),
        delete: impl FnOnce(&[Key<'a>]),
    ) -> Vec<usize> {
        let mut before = self.stored();
        self.cancel(items.iter().map(|item| key(item).bytes()));
        // Stores that have ended come before the change.
        let ended = self.ended.load(Ordering::SeqCst);
        if ended == self.stored() {
            before = ended;
        }
        change(items);
        // Those who began to make a value after the keys were cancelled and before they were changed. Who begins from
        // here on makes it of what is there after the change.
        self.cancel(items.iter().map(|item| key(item).bytes()));
        let Some(stored) = self.stored_since(before) else { return Vec::new() };
        let keys = items.iter().map(key).enumerate();
        let (deleted, in_doubt): (Vec<usize>, Vec<Key<'a>>) =
            keys.filter(|(_, key)| stored.may_have(key.hash())).unzip();
        if !in_doubt.is_empty() {
            delete(&in_doubt);
            // Those who have found meanwhile what is deleted now, and would give it to others.
            self.cancel(in_doubt.iter().map(Key::bytes));
        }
        deleted
    }

    /// Changes all keys, like [`change`](Self::change): if a made value may have come between, `change` is called once
    /// more.
    pub fn change_all<E>(&self, change: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let before = self.stored();
        self.cancel_all();
        let changed = change();
        self.cancel_all();
        if self.stored() == before {
            return changed;
        }
        let again = change();
        self.cancel_all();
        again.and(changed)
    }

    /// The number of made values that were stored.
    fn stored(&self) -> u64 {
        self.stored.load(Ordering::SeqCst)
    }

    /// The keys whose made values were stored since there were `before`; `None`: none was.
    fn stored_since(&self, before: u64) -> Option<StoredSince> {
        if self.stored() == before {
            return None;
        }
        let lately = lock(&self.stored_lately);
        let stored = self.stored();
        if stored - before > MADE_LATELY as u64 {
            return Some(StoredSince::Any);
        }
        let keys = (before..stored).map(|n| lately[n as usize % MADE_LATELY].to_bits());
        Some(StoredSince::Keys(keys.collect()))
    }

    /// These keys change: what is being made for them is not stored, and nobody joins it any more.
    fn cancel<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for key in keys {
            let flight = lock(&self.flights).get(key).cloned();
            flight.iter().for_each(|flight| self.cancel_flight(key, flight));
        }
    }

    /// Waits until the flight's value is stored, if that goes on. Only then is it taken out: whoever finds none changes
    /// the key at once.
    fn cancel_flight(&self, key: &[u8], flight: &Arc<Flight>) {
        lock(&flight.state).is_cancelled = true;
        self.take_out(key, flight);
    }

    /// All keys change.
    fn cancel_all(&self) {
        let all = lock(&self.flights).clone();
        all.iter().for_each(|(key, flight)| self.cancel_flight(key, flight));
    }

    fn take_out(&self, key: &[u8], flight: &Arc<Flight>) {
        let mut flights = lock(&self.flights);
        if flights.get(key).is_some_and(|found| Arc::ptr_eq(found, flight)) {
            flights.remove(key);
            self.count.store(flights.len(), Ordering::SeqCst);
        }
    }
}

impl Flight {
    /// The value; `None`: there will be none.
    pub fn wait(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        while !state.has_ended {
            state = self.ended.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.value.clone()
    }

    /// Waits as [`wait`](Self::wait) does, for a task.
    #[cfg(feature = "async")]
    pub async fn wait_async(&self) -> Option<Vec<u8>> {
        let number = {
            let mut state = lock(&self.state);
            state.next_wait += 1;
            state.next_wait
        };
        let _wait = Wait { flight: self, number };
        std::future::poll_fn(|context| {
            // Cloning and dropping wakers is the task's code: no lock is held.
            let waker = context.waker().clone();
            let mut state = lock(&self.state);
            if state.has_ended {
                return std::task::Poll::Ready(state.value.clone());
            }
            let older = state.tasks.insert(number, waker);
            drop(state);
            drop(older);
            std::task::Poll::Pending
        })
        .await
    }

    /// Calls `store` unless the key was changed: that waits until `store` is done, and then changes what it stored.
    pub fn unless_cancelled(&self, store: impl FnOnce()) {
        let state = lock(&self.state);
        if !state.is_cancelled {
            store();
        }
    }

    /// The value has come.
    pub fn arrive(&self, value: &[u8]) {
        lock(&self.state).value = Some(value.to_vec());
    }

    /// Whatever happens to the maker, nobody waits for it in vain.
    pub fn finish_on_drop<'a>(
        self: &'a Arc<Self>,
        flights: &'a SingleFlight,
        key: &'a [u8],
    ) -> impl Drop + 'a {
        struct FinishOnDrop<'a>(&'a Arc<Flight>, &'a SingleFlight, &'a [u8]);
        impl Drop for FinishOnDrop<'_> {
            fn drop(&mut self) {
                let Self(flight, flights, key) = self;
                flights.take_out(key, flight);
                let mut state = lock(&flight.state);
                state.has_ended = true;
                #[cfg(feature = "async")]
                let tasks = std::mem::take(&mut state.tasks);
                drop(state);
                flight.ended.notify_all();
                #[cfg(feature = "async")]
                tasks.into_values().for_each(Waker::wake);
            }
        }
        FinishOnDrop(self, flights, key)
    }
}

#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::entry::Entry;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    #[cfg(feature = "async")]
    #[test]
    fn a_task_that_waits_no_more_leaves_nothing() {
        let flight = Flight::default();
        let mut context = std::task::Context::from_waker(Waker::noop());
        for _ in 0..3 {
            let mut wait = std::pin::pin!(flight.wait_async());
            assert!(
                wait.as_mut().poll(&mut context).is_pending()
                    && wait.as_mut().poll(&mut context).is_pending()
            );
            assert_eq!(lock(&flight.state).tasks.len(), 1);
        }
        assert_eq!(lock(&flight.state).tasks.len(), 0);
    }

    #[cfg(feature = "async")]
    #[test]
    fn tasks_are_woken_in_the_order_in_which_they_came() {
        struct Woken(usize, std::sync::mpsc::Sender<usize>);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.1.send(self.0).unwrap();
            }
        }
        let flight = Arc::new(Flight::default());
        let (woken, all_woken) = std::sync::mpsc::channel();
        let mut waits: Vec<_> = (0..20).map(|_| Box::pin(flight.wait_async())).collect();
        for (number, wait) in waits.iter_mut().enumerate() {
            let waker = Waker::from(Arc::new(Woken(number, woken.clone())));
            assert!(wait.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        }
        drop(flight.finish_on_drop(&SingleFlight::default(), b"key"));
        drop((waits, woken));
        assert_eq!(all_woken.iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_joins_after_a_change_what_began_while_it_went_on() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        let mut begun = None;
        cache.single_flight.change(
            &[cache.key(b"key")],
            |key| *key,
            |_| begun = Some(cache.single_flight.join(b"key")),
            |_| (),
        );
        assert!(matches!(begun, Some(FlightRole::Leader(_))));
        assert!(matches!(cache.single_flight.join(b"key"), FlightRole::Leader(_)));
    }

    #[test]
    fn what_a_made_value_came_between_is_deleted() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        for others in [0, 1, MADE_LATELY] {
            let mut deleted = Vec::new();
            cache.single_flight.change(
                &[cache.key(b"a"), cache.key(b"b")],
                |key| *key,
                |_| {
                    cache.single_flight.begin_store(cache.key(b"b").hash());
                    (0..others).for_each(|_| cache.single_flight.begin_store(cache.key(b"c").hash()));
                },
                |keys| deleted.extend(keys.iter().map(|key| key.bytes())),
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
        cache.single_flight.change(
            &[cache.key(b"key")],
            |key| *key,
            |_| {
                cache.single_flight.begin_store(cache.key(b"key").hash());
                put(b"key");
                cache.remove(b"key");
            },
            |keys| cache.delete_many(keys),
        );
        assert_eq!(cache.get(b"key"), None);
    }

    /// Waits until so many threads that change the key have come to its flight.
    fn await_changers(flight: &Arc<Flight>, changers: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        // The maker has it, too, and the table of flights.
        while Arc::strong_count(flight) < 2 + changers {
            assert!(Instant::now() < deadline, "{changers} changers come");
            std::thread::yield_now();
        }
    }

    /// While a made value is being stored, one changer waits for that; the next one finds it waiting.
    #[test]
    fn each_of_several_changers_waits_for_a_value_that_is_being_stored() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        for changers in [[false, false], [true, false], [false, true]] {
            let FlightRole::Leader(flight) = cache.single_flight.join(b"key") else {
                panic!("nobody makes it")
            };
            let change = |clears| match clears {
                true => cache.clear().unwrap(),
                false => cache.insert(b"key", b"new").unwrap(),
            };
            std::thread::scope(|scope| {
                flight.unless_cancelled(|| {
                    let of = |clears| scope.spawn(move || change(clears));
                    let mut come = 0;
                    let waiting = changers.map(|clears| {
                        let changer = of(clears);
                        // It comes to the flight before the next one does.
                        come += 1;
                        await_changers(&flight, come);
                        changer
                    });
                    assert!(waiting.iter().all(|changer| !changer.is_finished()), "{changers:?}");
                    cache.put_made(Entry { key: cache.key(b"key"), value: Some(b"old"), expires_at: 0 });
                });
            });
            assert_ne!(cache.get(b"key").as_deref(), Some(&b"old"[..]), "{changers:?}");
            drop(flight.finish_on_drop(&cache.single_flight, b"key"));
            cache.remove(b"key");
        }
    }

    /// A put that waited while a made value was stored comes after it: nothing is in doubt.
    #[test]
    fn a_put_that_waited_for_a_made_value_stays() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        let FlightRole::Leader(flight) = cache.single_flight.join(b"key") else { panic!("nobody makes it") };
        std::thread::scope(|scope| {
            flight.unless_cancelled(|| {
                let put = scope.spawn(|| cache.insert(b"key", b"new"));
                await_changers(&flight, 1);
                assert!(!put.is_finished());
                cache.put_made(Entry { key: cache.key(b"key"), value: Some(b"old"), expires_at: 0 });
            });
        });
        assert_eq!(cache.get(b"key").as_deref(), Some(&b"new"[..]));
        drop(flight.finish_on_drop(&cache.single_flight, b"key"));
    }

    /// A put whose key is in doubt says that it was not kept.
    #[test]
    fn a_put_that_a_made_value_may_have_replaced_is_told() {
        let cache = Cache::builder().memory(1 << 20).open().unwrap();
        // One that has begun and does not end.
        cache.single_flight.begin_store(cache.key(b"other").hash());
        assert_eq!(cache.insert(b"key", b"value"), Ok(()));
        let (key, flights) = (cache.key(b"key"), &cache.single_flight);
        let deleted = flights.change(&[key], |key| *key, |_| flights.begin_store(key.hash()), |_| ());
        assert_eq!(deleted, [0]);
    }

    /// Other keys' values are made all the time: a put ends, and what it put is there.
    #[test]
    fn a_batch_is_put_while_values_of_other_keys_are_made() {
        let cache = Cache::builder().memory(64 << 20).open().unwrap();
        let names: Vec<[u8; 8]> = (0..20_000u64).map(u64::to_le_bytes).collect();
        let has_ended = AtomicBool::new(false);
        let make = |from: u64| {
            for other in from.. {
                if has_ended.load(Ordering::SeqCst) {
                    return;
                }
                let key = other.to_le_bytes();
                let made = cache.get_or_insert_with(&key, || {
                    std::thread::sleep(Duration::from_micros(50));
                    Ok::<_, ()>(key.to_vec())
                });
                made.unwrap();
            }
        };
        std::thread::scope(|scope| {
            for from in [1 << 32, 1 << 33] {
                scope.spawn(move || make(from));
            }
            for _ in 0..10 {
                let entry = |name| Entry { key: cache.key(name), value: Some(b"put"), expires_at: 0 };
                let entries: Vec<Entry<'_>> = names.iter().map(|name| entry(name)).collect();
                assert_eq!(cache.put_many(&entries), []);
            }
            has_ended.store(true, Ordering::SeqCst);
        });
        let found = names.iter().filter(|name| cache.get(*name).is_some()).count();
        assert!(found * 10 > names.len() * 9, "{found}");
    }
}
