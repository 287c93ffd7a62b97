//! Checks for memory that outlives a process.

use rustix::fs::{statfs, statvfs};

/// The default folder of RAM tiers.
const MEMORY_FOLDER: &str = "/dev/shm";

/// The number that `statfs` returns for a tmpfs.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Whether the folder of RAM tiers is a tmpfs and has room for `bytes` bytes.
pub fn has_room(bytes: u64) -> bool {
    let is_tmpfs = statfs(MEMORY_FOLDER).is_ok_and(|found| found.f_type as u64 == TMPFS_MAGIC);
    is_tmpfs && statvfs(MEMORY_FOLDER).is_ok_and(|free| free.f_bavail * free.f_frsize >= bytes)
}
