//! Commands of a connection that end on other threads.

use crate::export::{Outcome, Tag};
use crate::protocol::Errno;
use granary_volume::Volume;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Commands that have ended since the connection last took them.
pub(super) struct Finished {
    done: Mutex<Vec<(Tag, Outcome)>>,
    /// The event of the connection's reads, which is also used for these.
    event: OwnedFd,
}

impl Finished {
    pub fn new(event: OwnedFd) -> Self {
        Self { done: Mutex::default(), event }
    }

    /// Readable after a command has ended; [`take`](Self::take) makes it unreadable.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    pub fn push(&self, tag: Tag, outcome: Outcome) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push((tag, outcome));
        // It can fail only if the counter overflows.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Ends a command once all earlier writes are durable.
    pub fn push_durable(self: &Arc<Self>, volume: &Volume, tag: Tag) {
        let finished = Arc::clone(self);
        volume.commit_later(move |result| finished.push(tag, result.map_err(Errno::from)));
    }

    pub fn take(&self) -> Vec<(Tag, Outcome)> {
        // Read before the list is taken, so that later commands make it readable again. It may be unreadable.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
