//! Retries of failed work, with growing pauses.

use crate::limits::{RETRY, RETRY_MAX};
use std::io;
use std::time::{Duration, Instant};

/// Something that may fail for a while.
#[derive(Default)]
pub(crate) struct Retry {
    failed: Option<LastFailure>,
}

struct LastFailure {
    error: io::Error,
    wait: Duration,
    until: Instant,
}

impl Retry {
    /// The error of the last attempt, if it failed.
    pub fn failure(&self) -> Option<io::Error> {
        self.failed.as_ref().map(|failed| copy_of(&failed.error))
    }

    /// Calls `work`, unless it failed a moment ago: then returns that error again.
    pub fn attempt(&mut self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if let Some(failed) = self.failed.as_ref().filter(|failed| Instant::now() < failed.until) {
            return Err(copy_of(&failed.error));
        }
        let before = self.failed.take().map_or(Duration::ZERO, |failed| failed.wait);
        work().inspect_err(|error| {
            let wait = (2 * before).clamp(RETRY, RETRY_MAX);
            self.failed = Some(LastFailure { error: copy_of(error), wait, until: Instant::now() + wait });
        })
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
