//! The state of running and earlier commits.

use crate::sync::Mutex;
use crate::sync::atomic::AtomicU64;
use std::io;

/// Running commits, and results of earlier ones.
#[derive(Default)]
pub(crate) struct Commits {
    /// Number of commits requested.
    pub asked: AtomicU64,
    pub running: Mutex<Covered>,
    /// The newest lost segment that a flush has reported; 0: none.
    pub reported_lost: AtomicU64,
    /// The error of the last failed write of a segment.
    pub write_error: Mutex<Option<Failure>>,
}

/// The last commit that ran: it covers the requests up to number `until`.
#[derive(Default)]
pub(crate) struct Covered {
    pub until: u64,
    pub result: Option<Failure>,
}

/// An error that can be returned to several callers.
#[derive(Clone)]
pub(crate) struct Failure {
    kind: io::ErrorKind,
    errno: Option<i32>,
}

impl Failure {
    /// Keeps the error's kind and number.
    pub fn of(error: &io::Error) -> Self {
        Self { kind: error.kind(), errno: error.raw_os_error() }
    }

    /// The error for a caller.
    pub fn error(&self) -> io::Error {
        self.errno.map_or_else(|| self.kind.into(), io::Error::from_raw_os_error)
    }
}
