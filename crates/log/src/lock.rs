//! One process works on a file at a time.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// A killed process releases its files a little after it is gone: the kernel dismantles its ring later, and a program
/// that it was just starting holds copies of the descriptors until it runs.
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

/// Whether another descriptor holds the lock of a file. Of one that cannot be opened or locked this cannot be told.
pub fn is_locked(path: &Path) -> bool {
    // Over NFS a lock wants a descriptor that may write.
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.is_ok_and(|file| lock(&file) == Ok(Lock::InUse))
}

/// Takes the lock for as long as the descriptor is open. Waits up to a second for its holder.
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

/// Repeats `take`, which acquires an exclusive resource, for up to a second while it returns `busy`.
///
/// # Errors
/// The errors of `take`; `busy` if the resource was held all that time.
pub fn patiently<T>(busy: Errno, mut take: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match take() {
            Err(errno) if errno == busy && Instant::now() < deadline => std::thread::sleep(PAUSE),
            taken => return taken,
        }
    }
}
