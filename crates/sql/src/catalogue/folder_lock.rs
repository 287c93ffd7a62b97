//! A lock that gives a folder of dictionaries to one process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use granary_dialect::{Error, Result};
use granary_dict::{create_folders, open_or_create};
use rustix::fs::{Mode, OFlags};

use super::store::failed;

/// How long to wait for another process to release the folder: a process killed while it started a program holds the
/// lock until that program runs.
const TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// The folder's `lock`, held until the last clone is dropped; the system releases it however the process ends.
#[derive(Debug, Clone)]
pub struct FolderLock(#[expect(dead_code, reason = "it is held")] Arc<File>);

impl FolderLock {
    /// Locks a folder for this process, creating it if it is missing.
    ///
    /// # Errors
    /// DIRECTORY_IN_USE if another process has it, and what the file system says.
    pub fn take(folder: &Path) -> Result<FolderLock> {
        create_folders(folder).map_err(|error| failed("create folder", folder, &error))?;
        let path = folder.join("lock");
        let opened = open_or_create(&path, OFlags::WRONLY, Mode::from_raw_mode(0o666));
        let file = File::from(opened.map_err(|errno| failed("open", &path, &errno.into()))?);
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FolderLock(Arc::new(file))),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::directory_in_use(format!(
                        "Cannot lock {}: another granary is working in this folder",
                        path.display()
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FolderLock;

    #[test]
    fn a_folder_has_one_user() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        let copy = first.clone();
        drop(first);
        let second = FolderLock::take(folder.path()).unwrap_err();
        assert_eq!(second.code, 76);
        assert!(second.message.contains("another granary"), "{second}");
        drop(copy);
        FolderLock::take(folder.path()).unwrap();
    }
}
