//! A file system on a disk that logs, and images of that disk after a loss of power.

use crate::logged::{LogEntry, LoggedDisk};
use crate::programs::{attempt, run};
use crate::skip::skipped;
use fastrand::Rng;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    Ext4,
    Xfs,
    /// A sync of one thing brings less of what was done before it along than with the others.
    Btrfs,
}

impl FileSystem {
    /// Not much more than the smallest that there can be.
    fn bytes(self) -> u64 {
        match self {
            Self::Ext4 => 96 << 20,
            Self::Xfs => 304 << 20,
            Self::Btrfs => 128 << 20,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    fn make(self, folder: &Path, file: &str) {
        let arguments: &[&str] = match self {
            Self::Ext4 => &["-q", "-F", "-b", "4096", "-J", "size=4", "-E", LAZY],
            Self::Xfs => &["-q", "-f"],
            Self::Btrfs => &["-q", "-f", "-m", "single"],
        };
        run(folder, &format!("mkfs.{}", self.name()), &[arguments, &[file]].concat());
    }

    /// Whether it can be mounted in a folder from a file that is no disk of these tests.
    fn is_mounted_elsewhere(self, folder: &Path) -> bool {
        let folder = folder.join("elsewhere");
        std::fs::create_dir(&folder).unwrap();
        File::create(folder.join("disk")).unwrap().set_len(self.bytes()).unwrap();
        self.make(&folder, "disk");
        Mounted::new(&folder, self, self.options()).is_ok()
    }

    /// Nothing becomes durable by itself: neither after some seconds, nor where a file takes another's place.
    fn options(self) -> &'static str {
        match self {
            Self::Ext4 => "loop,noauto_da_alloc,commit=300",
            Self::Xfs => "loop",
            Self::Btrfs => "loop,commit=300",
        }
    }
}

const LAZY: &str = "lazy_itable_init=0,lazy_journal_init=0";

/// A folder in RAM, where syncs take no time.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// `None`: nothing can be mounted here, which is said.
    pub fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        if !attempt(folder.path(), "mount", &["-t", "tmpfs", "tmpfs", folder.path().to_str().unwrap()]).0 {
            skipped("nothing can be mounted: losses of power");
            return None;
        }
        Some(Self(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = attempt(Path::new("/"), "umount", &["-l", self.path().to_str().unwrap()]);
    }
}

/// A mounted file system.
pub struct Mounted {
    folder: PathBuf,
}

impl Mounted {
    /// # Errors
    /// What `mount` says.
    fn new(folder: &Path, file_system: FileSystem, options: &str) -> Result<Self, String> {
        let to = folder.join("mount");
        std::fs::create_dir_all(&to).unwrap();
        let arguments = ["-t", file_system.name(), "-o", options, "disk", "mount"];
        match attempt(folder, "mount", &arguments) {
            (true, ..) => Ok(Self { folder: to }),
            (false, _, errors) => Err(errors),
        }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let path = self.folder.to_str().unwrap();
        // The kernel may end the reads of a process that was killed, and let go of its files, after that is gone.
        for _ in 0..500 {
            if attempt(Path::new("/"), "umount", &[path]).0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = attempt(Path::new("/"), "umount", &["-l", path]);
    }
}

/// The disk, with its file system mounted.
pub struct Disk {
    // Unmounted before the disk goes.
    mounted: Mounted,
    logged: Arc<LoggedDisk>,
    file_system: FileSystem,
    /// The bytes of the log when the file system was mounted.
    begin: u64,
}

impl Disk {
    /// `None`: something is missing here, which is said.
    pub fn new(folder: &Path, file_system: FileSystem) -> Option<Self> {
        let folder = folder.join("disk");
        std::fs::create_dir(&folder).unwrap();
        let Some(logged) = LoggedDisk::new(&folder, file_system.bytes()) else {
            skipped("no FUSE or no qemu-storage-daemon: losses of power");
            return None;
        };
        let reboots = "mount --bind /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/boot_id";
        if !attempt(&folder, "unshare", &["-m", "sh", "-c", reboots]).0 {
            skipped("no mount namespaces: losses of power");
            return None;
        }
        file_system.make(&folder, "disk");
        let mounted = match Mounted::new(&folder, file_system, file_system.options()) {
            Ok(mounted) => mounted,
            Err(why) => {
                assert!(!file_system.is_mounted_elsewhere(&folder), "this disk alone is not mounted: {why}");
                skipped(&format!("no loop device, or no {}: losses of power", file_system.name()));
                return None;
            }
        };
        run(&folder, "sync", &["-f", "mount"]);
        let begin = logged.log_bytes();
        Some(Self { mounted, logged: Arc::new(logged), file_system, begin })
    }

    pub fn logged(&self) -> Arc<LoggedDisk> {
        Arc::clone(&self.logged)
    }

    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// What it was asked to do since it was mounted.
    pub fn entries(&self) -> Vec<LogEntry> {
        self.logged.entries(self.begin)
    }
}

/// A loss of power.
#[derive(Debug)]
pub struct Cut {
    /// The bytes of the log by then.
    pub log_bytes: u64,
    /// Of the writes that were not flushed: 0: none are there, 1: some, 2: all.
    pub kept: u8,
    /// What had been, or was being, answered.
    pub after: &'static str,
}

/// What the disk has for sure, more and more of it.
pub struct Image {
    folder: PathBuf,
    flushed: File,
    file_system: FileSystem,
    /// The entries that it has.
    applied: usize,
}

impl Image {
    /// The disk as it is now, while nothing is written.
    pub fn of(disk: &Disk, folder: &Path) -> Self {
        std::fs::create_dir(folder).unwrap();
        let content = disk.logged.content_path();
        run(folder, "cp", &["--sparse=always", content.to_str().unwrap(), "flushed"]);
        let flushed = File::options().write(true).open(folder.join("flushed")).unwrap();
        Self { folder: folder.to_owned(), flushed, file_system: disk.file_system, applied: 0 }
    }

    /// The file system after a loss of power that is not before the last one.
    pub fn mount(&mut self, entries: &[LogEntry], cut: &Cut, random: &mut Rng) -> Mounted {
        let until = entries.partition_point(|entry| entry.end <= cut.log_bytes);
        let flushed = entries[..until].iter().rposition(LogEntry::is_flush).map_or(0, |at| at + 1);
        if flushed > self.applied {
            entries[self.applied..flushed].iter().for_each(|entry| entry.apply_to_file(&self.flushed));
            self.applied = flushed;
        }
        // A file of its own: the last one may be in use for a moment yet.
        let _ = std::fs::remove_file(self.folder.join("disk"));
        run(&self.folder, "cp", &["--sparse=always", "flushed", "disk"]);
        let image = File::options().write(true).open(self.folder.join("disk")).unwrap();
        for entry in &entries[flushed..until] {
            if cut.kept == 2 || cut.kept == 1 && random.bool() {
                entry.apply_to_file(&image);
            }
        }
        drop(image);
        Mounted::new(&self.folder, self.file_system, "loop").unwrap_or_else(|why| panic!("{cut:?}: {why}"))
    }
}
