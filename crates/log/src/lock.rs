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

/// Whether a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The descriptor holds it until the file is closed.
    Taken,
    /// Another descriptor holds it, of this process or another.
    InUse,
}

/// Whether somebody has a file open and locked.
pub(crate) fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| lock(&file) == Ok(Lock::InUse))
}

/// Takes the lock for as long as the descriptor is open. Waits up to a second for who holds it.
///
/// # Errors
/// The file system has no locks.
pub fn lock(file: impl AsFd) -> Result<Lock, Errno> {
    match patiently(Errno::WOULDBLOCK, || flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(Lock::Taken),
        Err(Errno::WOULDBLOCK) => Ok(Lock::InUse),
        Err(errno) => Err(errno),
    }
}

/// Tries to take what one process can have at a time, again and again for a second while the answer is `busy`.
///
/// # Errors
/// Those of `take`; `busy` if somebody has it all that time.
pub fn patiently<T>(busy: Errno, mut take: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match take() {
            Err(errno) if errno == busy && Instant::now() < deadline => std::thread::sleep(PAUSE),
            taken => return taken,
        }
    }
}
