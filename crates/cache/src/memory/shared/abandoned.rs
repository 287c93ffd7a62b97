//! Removes the files of caches that are gone, which nothing else would remove, and which take RAM.

use super::file::{NAME_START, is_ours, named};
use super::header::parse_path;
use crate::limits::{PARTITIONS_MAX, SHARED_MEMORY_PAGE_BYTES};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Removes all files in the folder whose cache has no state file any more: their content cannot be taken over. Files
/// that are in use, another user's or incomplete are left.
pub(super) fn remove_abandoned(folder: &Path) {
    let Ok(found) = std::fs::read_dir(folder) else { return };
    for path in found.flatten().map(|file| file.path()) {
        let name = path.file_name().unwrap_or_default().as_bytes();
        if !name.starts_with(NAME_START.as_bytes()) {
            continue;
        }
        // It is locked until it is removed, so no process begins to use it.
        let Some(_file) = abandoned(folder, &path) else { continue };
        match std::fs::remove_file(&path) {
            Ok(()) => {
                tracing::info!(path = %path.display(), "the RAM tier of a cache that is gone is removed")
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot remove the RAM tier of a cache that is gone");
            }
        }
    }
}

/// Returns the file, opened and locked, if its cache is gone.
fn abandoned(folder: &Path, path: &Path) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !is_ours(&file.metadata().ok()?) {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut page = Vec::new();
    (&file).take(SHARED_MEMORY_PAGE_BYTES).read_to_end(&mut page).ok()?;
    let owner = parse_path(&page)?;
    // The name has the path's hash, so the path is complete.
    if !(0..PARTITIONS_MAX).any(|partition| named(folder, owner, partition) == path) {
        return None;
    }
    let state = [owner, b".state"].concat();
    let state = std::fs::symlink_metadata(OsStr::from_bytes(&state));
    let is_gone =
        state.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory));
    is_gone.then_some(file)
}
