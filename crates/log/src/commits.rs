//! What is known of commits, those that run and those before.

use crate::sync::sync::Mutex;
use crate::sync::sync::atomic::AtomicU64;
use std::io;

/// What a commit guards against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process: the kernel or the device has the data.
    Buffered,
    /// A loss of power: the device was told to keep it.
    Synced,
}

/// Commits that run, and what became of earlier ones.
#[derive(Default)]
pub(crate) struct Commits {
    /// Commits that were asked for.
    pub asked: AtomicU64,
    pub running: Mutex<Covered>,
    /// The newest segment that was lost and that a flush has told of; 0: none.
    pub lost_told: AtomicU64,
    /// Why a segment could not be written lately.
    pub write_error: Mutex<Option<Failure>>,
}

/// The newest commit of each kind whose request is covered, and whether it succeeded.
#[derive(Default)]
pub(crate) struct Covered {
    pub until: u64,
    pub result: Option<Failure>,
    pub durability: Option<Durability>,
}

/// An error that several callers get.
#[derive(Clone)]
pub(crate) struct Failure {
    kind: io::ErrorKind,
    errno: Option<i32>,
}

impl Failure {
    /// What is kept of an error.
    pub fn of(error: &io::Error) -> Self {
        Self { kind: error.kind(), errno: error.raw_os_error() }
    }

    /// The error, as a caller gets it.
    pub fn error(&self) -> io::Error {
        self.errno.map_or_else(|| self.kind.into(), io::Error::from_raw_os_error)
    }
}
