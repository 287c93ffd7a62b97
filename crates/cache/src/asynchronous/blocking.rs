//! Calls that wait for the device, each on a thread of its own.

use super::AsyncCache;
use super::thread_clones::ThreadClones;
use crate::error::Error;
use crate::typed::TypedCache;
use granary_log::sync::{Arc, Mutex, PoisonError};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Poll, Waker};

/// The state shared by a thread and the task that waits for it.
struct CallState<T> {
    result: Option<std::thread::Result<T>>,
    waker: Option<Waker>,
}

/// A clone held by a thread, counted in `thread_clones`.
struct ThreadClone<K: ?Sized, V, C> {
    cache: Option<AsyncCache<K, V, C>>,
    thread_clones: Arc<ThreadClones>,
}

impl<K: ?Sized, V, C> ThreadClone<K, V, C> {
    fn of(cache: &AsyncCache<K, V, C>) -> Self {
        let thread_clones = Arc::clone(&cache.0.thread_clones);
        thread_clones.change(|count| *count += 1);
        Self { cache: Some(cache.clone()), thread_clones }
    }

    fn typed(&self) -> &TypedCache<K, V, C> {
        self.cache.as_ref().expect("it is there until it is dropped").typed()
    }
}

impl<K: ?Sized, V, C> Drop for ThreadClone<K, V, C> {
    fn drop(&mut self) {
        drop(self.cache.take());
        self.thread_clones.change(|count| *count -= 1);
    }
}

/// Calls `work` on a thread of its own. It goes on if the future is dropped; if it panics, so does the task.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let shared = Arc::new(Mutex::new(CallState { result: None, waker: None }));
    let reported = Arc::clone(&shared);
    let work = move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        let mut state = reported.lock().unwrap_or_else(PoisonError::into_inner);
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    };
    let thread = std::thread::Builder::new().name("granary-flush".into());
    thread.spawn(work).map_err(|source| Error::Start { source })?;
    poll_fn(|context| {
        // Cloning and dropping wakers is the task's code: no lock is held.
        let waker = context.waker().clone();
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(result) = state.result.take() else {
            let older = state.waker.replace(waker);
            drop(state);
            drop(older);
            return Poll::Pending;
        };
        drop(state);
        Poll::Ready(result.unwrap_or_else(|panic| resume_unwind(panic)))
    })
    .await
}

impl<K: ?Sized + 'static, V: 'static, C: 'static> AsyncCache<K, V, C> {
    /// Waits until what was put is on the device. DRAM first, what is in RAM stays there.
    ///
    /// # Errors
    /// The errors of [`Cache::flush`](crate::Cache::flush).
    pub async fn flush(&self) -> Result<(), Error> {
        let this = ThreadClone::of(self);
        on_thread(move || this.typed().flush()).await
    }

    /// Forgets everything, for good.
    ///
    /// # Errors
    /// The operating system refuses.
    pub async fn clear(&self) -> Result<(), Error> {
        let this = ThreadClone::of(self);
        on_thread(move || this.typed().clear()).await
    }

    /// Stops cleanly if this is the last clone; else the last one does when it is dropped. It waits for a flush whose
    /// future was dropped.
    ///
    /// # Errors
    /// The errors of [`Cache::close`](crate::Cache::close).
    pub async fn close(self) -> Result<(), Error> {
        on_thread(move || {
            self.0.thread_clones.wait();
            match Arc::into_inner(self.0) {
                Some(super::AsyncShared { drivers, typed, .. }) => {
                    drop(drivers);
                    typed.close()
                }
                None => Ok(()),
            }
        })
        .await
    }
}
