//! One process works on a file at a time.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process that was killed lets go of its files a little after it is gone: its ring is taken apart by the
/// kernel behind its back, and a program that it was just starting holds copies until it runs.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// Whether the file is ours now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Nobody else has it until the file is closed.
    Taken,
    /// Somebody else has it.
    InUse,
}

/// Whether somebody has a file open and locked.
pub(crate) fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| lock(&file) == Ok(Lock::InUse))
}

/// Takes the lock for as long as the descriptor is open. Waits a moment for who has it.
///
/// # Errors
/// The file system has no locks.
pub fn lock(file: impl AsFd) -> Result<Lock, Errno> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock::Taken),
            Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => return Ok(Lock::InUse),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(errno) => return Err(errno),
        }
    }
}
