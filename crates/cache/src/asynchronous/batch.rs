//! Values being read from the device for a task.

use granary_log::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Values by the places of their keys in a batch; `None`: the key has none.
pub(super) type Values = Vec<Option<Vec<u8>>>;

/// The state shared by drivers and the waiting task.
struct SharedBatch(Mutex<BatchState>);

struct BatchState {
    values: Values,
    /// Keys that have no outcome yet.
    left: usize,
    waker: Option<Waker>,
}

impl SharedBatch {
    fn lock(&self) -> MutexGuard<'_, BatchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The values of a batch, once all are known. Dropping it cancels the wait.
pub(super) struct PendingValues(Arc<SharedBatch>);

impl Future for PendingValues {
    type Output = Values;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Values> {
        // Cloning and dropping wakers is the task's code: no lock is held.
        let waker = context.waker().clone();
        let mut state = self.0.lock();
        if state.left == 0 {
            return Poll::Ready(std::mem::take(&mut state.values));
        }
        let older = state.waker.replace(waker);
        drop(state);
        drop(older);
        Poll::Pending
    }
}

/// The duty to report the outcome of one key. Dropping it reports a miss.
pub(super) struct Reporter {
    batch: Arc<SharedBatch>,
    place: usize,
    value: Option<Vec<u8>>,
}

impl Reporter {
    /// Whether the batch's future still exists.
    pub fn is_wanted(&self) -> bool {
        // Each answer of the batch holds an `Arc`, and so does the waiting future.
        Arc::strong_count(&self.batch) > self.batch.lock().left
    }

    /// Reports the value.
    pub fn give(mut self, value: Vec<u8>) {
        self.value = Some(value);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let mut state = self.batch.lock();
        state.values[self.place] = self.value.take();
        state.left -= 1;
        let waker = if state.left == 0 { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A batch whose `values` are known except those at `places`, one for each of the returned answers.
pub(super) fn batch(values: Values, places: &[usize]) -> (PendingValues, impl Iterator<Item = Reporter>) {
    let state = BatchState { values, left: places.len(), waker: None };
    let shared = Arc::new(SharedBatch(Mutex::new(state)));
    let answers: Vec<Reporter> = places
        .iter()
        .map(|place| Reporter { batch: Arc::clone(&shared), place: *place, value: None })
        .collect();
    (PendingValues(shared), answers.into_iter())
}
