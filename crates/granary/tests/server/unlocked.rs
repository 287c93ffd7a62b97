//! Files of a process that was killed.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// Waits until neither the folder nor a dictionary or a volume in it is locked: the kernel may finish the reads of a
/// killed process, and release its files, after the process is gone.
pub fn await_unlocked(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            await_unlocked(&path);
            continue;
        }
        // SQLite's locks, which are of another kind, would be released by closing the file.
        if name != "lock" && ![".bin", ".state", ".lock", ".log"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let is_locked = || {
            let file = File::open(&path);
            file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
        };
        while is_locked() {
            assert!(Instant::now() < deadline, "{} is locked by a process that is gone", path.display());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
