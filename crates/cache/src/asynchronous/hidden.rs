//! The clones of a cache that threads hold for futures which were dropped: closing waits until there are none.

use granary_log::sync::sync::{Condvar, Mutex, PoisonError};

/// Clones that threads hold which nobody waits for any more.
#[derive(Default)]
pub(super) struct Hidden {
    count: Mutex<usize>,
    ended: Condvar,
}

impl Hidden {
    pub fn change(&self, by: impl FnOnce(&mut usize)) {
        by(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner));
        self.ended.notify_all();
    }

    /// Until there is none.
    pub fn wait(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.ended.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
