//! Clones of a cache held by threads, perhaps for futures that were dropped: closing waits until there are none.

use granary_log::sync::{Condvar, Mutex, PoisonError};

/// The number of clones held by threads.
#[derive(Default)]
pub(super) struct ThreadClones {
    count: Mutex<usize>,
    ended: Condvar,
}

impl ThreadClones {
    pub fn change(&self, by: impl FnOnce(&mut usize)) {
        by(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner));
        self.ended.notify_all();
    }

    /// Waits until there is none.
    pub fn wait(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.ended.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
