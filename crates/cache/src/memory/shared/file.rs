//! The file on tmpfs: opened, locked, made anew, removed.

use super::header::{ArenaHeader, Layout, SIZE, encode_path};
use granary_log::{Lock, folder_of, lock_file, open_or_create_for};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatfs, fstatvfs};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// The number that `statfs` returns for a tmpfs.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The prefix of the files' names.
pub(super) const NAME_START: &str = "granary-";

/// The file of the RAM tier of partition `partition` of the cache at `state_path`. Its name does not reveal that path
/// to users who may list the folder.
pub(crate) fn path_of(folder: &Path, state_path: &Path, partition: u64) -> PathBuf {
    named(folder, absolute(state_path).as_os_str().as_bytes(), partition)
}

/// The path with its folder canonicalised.
fn absolute(state_path: &Path) -> PathBuf {
    let parent = folder_of(state_path);
    let parent = std::fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    parent.join(state_path.file_name().unwrap_or_default())
}

/// The file's name for a path that is [`absolute`].
pub(super) fn named(folder: &Path, path: &[u8], partition: u64) -> PathBuf {
    folder.join(format!("{NAME_START}{:016x}.{partition}", XxHash3_64::oneshot(path)))
}

/// Removes the files that the cache at `state_path` has in the folder for `partitions`. Only the caller has the cache
/// open.
pub(crate) fn remove_all(folder: &Path, state_path: &Path, partitions: std::ops::Range<u64>) {
    for partition in partitions {
        let path = path_of(folder, state_path, partition);
        if std::fs::symlink_metadata(&path).is_ok_and(|found| is_of_cache(&found, state_path)) {
            drop(std::fs::remove_file(path));
        }
    }
}

/// Removes the files of a cache that is not open: those that a process has locked stay.
pub(crate) fn remove_unlocked(folder: &Path, state_path: &Path, partitions: std::ops::Range<u64>) {
    for partition in partitions {
        let path = path_of(folder, state_path, partition);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::open(&path, flags, Mode::empty()).map(File::from) else { continue };
        let is_unlocked = || matches!(lock_file(&file), Ok(Lock::Taken));
        // The one that had it locked may have removed it, and another one made the next.
        let is_named = || file.metadata().is_ok_and(|found| found.nlink() > 0);
        if file.metadata().is_ok_and(|found| is_of_cache(&found, state_path)) && is_unlocked() && is_named() {
            drop(std::fs::remove_file(path));
        }
    }
}

pub(super) fn is_ours(found: &Metadata) -> bool {
    found.is_file() && found.uid() == rustix::process::geteuid().as_raw()
}

/// Whether a file is ours, or is of the user whose folder the cache at `state_path` lies in, and we are root: root
/// gives that user what it makes for the cache.
fn is_of_cache(found: &Metadata, state_path: &Path) -> bool {
    let is_of_user = || folder_of(state_path).metadata().is_ok_and(|folder| folder.uid() == found.uid());
    is_ours(found) || found.is_file() && rustix::process::geteuid().is_root() && is_of_user()
}

/// The locked file of a RAM tier.
pub(crate) struct Claim {
    file: File,
    path: PathBuf,
    state_path: PathBuf,
    layout: Layout,
    /// The header that an earlier process left in it.
    found: Option<ArenaHeader>,
}

impl Claim {
    /// Opens and locks the file, and creates it if it is missing. Its content is not changed.
    ///
    /// # Errors
    /// The folder is no tmpfs, is not writable or is full; or the file is in use, or another user's.
    pub fn new(folder: &Path, state_path: &Path, partition: u64, layout: Layout) -> io::Result<Self> {
        let path = path_of(folder, state_path, partition);
        let file = open_locked(&path, state_path)?;
        if fstatfs(&file)?.f_type as u64 != TMPFS_MAGIC {
            let none_before = file.metadata()?.len() == 0;
            if none_before {
                drop(std::fs::remove_file(&path));
            }
            return Err(io::Error::other("it is no tmpfs, which keeps files in RAM"));
        }
        let mut bytes = [0; SIZE];
        let header = file.read_exact_at(&mut bytes, 0).ok().and_then(|()| ArenaHeader::parse(&bytes));
        let is_whole = file.metadata()?.len() == layout.file_bytes();
        let found = header.filter(|header| is_whole && header.layout == layout);
        Ok(Self { file, path, state_path: absolute(state_path), layout, found })
    }

    /// The number that the state file must have for the found content to be valid; 0: nothing was found.
    pub fn memory_id(&self) -> u64 {
        self.found.map_or(0, |header| header.memory_id)
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes of the file's pages, and free bytes in the folder.
    pub fn room(&self) -> io::Result<(u64, u64)> {
        let free = fstatvfs(&self.file)?;
        Ok((self.file.metadata()?.blocks() * 512, free.f_bavail * free.f_frsize))
    }

    /// Returns the found header if it has this number and salt.
    pub fn adopt(&self, memory_id: u64, salt: u64) -> Option<ArenaHeader> {
        self.found.filter(|header| header.memory_id == memory_id && header.salt == salt && memory_id != 0)
    }

    /// Starts over: an empty file of full length with a reserved directory and `header`, which is written last.
    pub fn start_over(&self, header: &ArenaHeader) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.set_len(self.layout.file_bytes())?;
        self.reserve(0..self.layout.units_at())?;
        self.file.write_all_at(&encode_path(self.state_path.as_os_str().as_bytes()), SIZE as u64)?;
        self.file.write_all_at(&header.encode(), 0)
    }

    /// Has the kernel reserve pages, so that touching them cannot fail.
    pub fn reserve(&self, bytes: std::ops::Range<u64>) -> io::Result<()> {
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), bytes.start, bytes.end - bytes.start) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    /// Gives pages back; their bytes are zero then.
    pub fn release(&self, bytes: std::ops::Range<u64>) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.file, flags, bytes.start, bytes.end - bytes.start)?)
    }

    /// Makes the file's content void, and removes the file.
    pub fn invalidate(&self) {
        if let Err(error) = self.file.set_len(0) {
            tracing::warn!(%error, path = %self.path.display(), "the file of the RAM tier cannot be emptied");
        }
        self.remove();
    }

    /// Removes the file; its RAM is freed when it is closed. A file of another cache that has taken its place stays:
    /// that cache has the path of this one, whose files were removed.
    pub fn remove(&self) {
        let identity = |found: Metadata| (found.dev(), found.ino());
        let there = std::fs::symlink_metadata(&self.path).map(identity);
        if there.is_ok_and(|there| self.file.metadata().map(identity).is_ok_and(|own| own != there)) {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %self.path.display(), "the file of the RAM tier cannot be removed");
        }
    }
}

/// Opens and locks a file that only this user may read, or the one whose folder the cache lies in.
fn open_locked(path: &Path, state_path: &Path) -> io::Result<File> {
    let (flags, mode) = (OFlags::RDWR | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR);
    loop {
        let file = File::from(open_or_create_for(folder_of(state_path), path, flags, mode)?);
        if !is_of_cache(&file.metadata()?, state_path) || file.metadata()?.mode() & 0o077 != 0 {
            return Err(io::Error::other("a file of that name is another's, or others may open it"));
        }
        match lock_file(&file)? {
            Lock::InUse => return Err(io::Error::new(ErrorKind::ResourceBusy, "another process has it")),
            // The previous holder of the lock may have removed the file.
            Lock::Taken if file.metadata()?.nlink() == 0 => {}
            Lock::Taken => return Ok(file),
        }
    }
}
