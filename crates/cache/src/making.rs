//! Values that are being made: of many threads that want the same key at once, one makes its value.

use granary_log::sync::sync::atomic::{AtomicUsize, Ordering};
use granary_log::sync::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::task::Waker;

/// Keys whose values are being made.
#[derive(Default)]
pub(crate) struct MakingFlights {
    flights: Mutex<HashMap<Box<[u8]>, Arc<Making>>>,
    /// How many there are: whoever changes keys looks here first.
    count: AtomicUsize,
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

    /// These keys are about to change: what is being made for them is not stored, and nobody joins it any more.
    pub fn overtake<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
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

    /// All keys are about to change.
    pub fn overtake_all(&self) {
        let all = std::mem::take(&mut *lock(&self.flights));
        self.count.store(0, Ordering::SeqCst);
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
