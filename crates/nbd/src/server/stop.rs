//! The signal to end for a server, or a single connection.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal that is given once and seen by all clones.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Sign>);

#[derive(Debug)]
struct Sign {
    is_given: AtomicBool,
    /// Readable once the signal was given; it is never read.
    event: OwnedFd,
}

impl Stop {
    /// A signal that is not given yet.
    ///
    /// # Errors
    /// The process has no file descriptors left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Sign { is_given: AtomicBool::new(false), event })))
    }

    /// Gives the signal.
    pub fn give(&self) {
        if !self.0.is_given.swap(true, Ordering::AcqRel)
            && let Err(error) = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes())
        {
            tracing::error!(%error, "the threads cannot be told to stop");
        }
    }

    /// Whether the signal was given.
    pub fn is_given(&self) -> bool {
        self.0.is_given.load(Ordering::Acquire)
    }

    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
