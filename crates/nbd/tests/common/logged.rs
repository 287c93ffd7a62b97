//! A disk that keeps a log of every write and flush: a file exported by QEMU's storage daemon over FUSE, through its
//! filter `blklogwrites`. The log has the format of the kernel's dm-log-writes.

use super::fuse::{Running, wait_for};
use super::programs::attempt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The unit of the log.
const SECTOR: u64 = 4096;

/// The flags of an entry: a flush; a write that is durable once it is answered; a discard, without data.
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;

/// The disk, until this is dropped.
pub struct LoggedDisk {
    daemon: Option<Running>,
    folder: PathBuf,
}

impl LoggedDisk {
    /// A disk of zeros in a folder; `None`: there is no FUSE, or no storage daemon.
    pub fn new(folder: &Path, bytes: u64) -> Option<Self> {
        File::create(folder.join("content")).unwrap().set_len(bytes).unwrap();
        for name in ["log", "disk"] {
            File::create(folder.join(name)).unwrap();
        }
        let mut daemon = Command::new("qemu-storage-daemon");
        daemon
            .args(["--blockdev", "driver=file,node-name=content,filename=content"])
            .args(["--blockdev", "driver=file,node-name=log,filename=log"])
            .arg("--blockdev")
            .arg(format!(
                "driver=blklogwrites,node-name=logged,file=content,log=log,log-sector-size={SECTOR}"
            ))
            .arg("--export")
            .arg(format!(
                "type=fuse,id=disk,node-name=logged,mountpoint={},writable=on,allow-other=off",
                folder.join("disk").display()
            ))
            .current_dir(folder)
            .stdin(Stdio::null());
        let daemon = Running(daemon.spawn().ok()?);
        let mut this = Self { daemon: Some(daemon), folder: folder.to_owned() };
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::metadata(this.path()).unwrap().len() != bytes {
            // It ends if it cannot mount.
            if this.daemon.as_mut().is_some_and(|daemon| daemon.0.try_wait().unwrap().is_some()) {
                return None;
            }
            assert!(Instant::now() < deadline, "the storage daemon runs and mounts nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(this)
    }

    /// The disk.
    pub fn path(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// The file that holds the disk's content.
    pub fn content_path(&self) -> PathBuf {
        self.folder.join("content")
    }

    /// The disk's content, read from its file.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(self.content_path()).unwrap()
    }

    /// The length of the log, which includes everything that the disk has answered.
    pub fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.folder.join("log")).unwrap().len()
    }

    /// The entries of the log from offset `from` on.
    pub fn entries(&self, from: u64) -> Vec<LogEntry> {
        let log = File::open(self.folder.join("log")).unwrap();
        let bytes = log.metadata().unwrap().len();
        let (mut at, mut entries) = (SECTOR, Vec::new());
        while at < bytes {
            let mut header = [0; 32];
            log.read_exact_at(&mut header, at).unwrap();
            let [sector, sectors, flags, _] =
                [0, 8, 16, 24].map(|i| u64::from_le_bytes(header[i..i + 8].try_into().unwrap()));
            let mut data = vec![0; if flags & DISCARD == 0 { (sectors * SECTOR) as usize } else { 0 }];
            log.read_exact_at(&mut data, at + SECTOR).unwrap();
            let begin = at;
            at += SECTOR + data.len() as u64;
            if begin >= from {
                let discarded = if flags & DISCARD == 0 { 0 } else { sectors * SECTOR };
                entries.push(LogEntry { offset: sector * SECTOR, data, discarded, flags, end: at });
            }
        }
        assert_eq!(at, bytes, "the log ends with an entry");
        entries
    }
}

impl Drop for LoggedDisk {
    fn drop(&mut self) {
        // The daemon unmounts when it is asked to end.
        if let Some(mut daemon) = self.daemon.take() {
            let _ = attempt(&self.folder, "kill", &[&daemon.0.id().to_string()]);
            wait_for("the storage daemon ends", || daemon.0.try_wait().unwrap().is_some());
        }
    }
}

/// A request to the disk.
pub struct LogEntry {
    offset: u64,
    data: Vec<u8>,
    discarded: u64,
    flags: u64,
    /// The offset of the entry's end in the log.
    pub end: u64,
}

impl LogEntry {
    /// Whether the entry is a flush, or has FUA.
    pub fn is_flush(&self) -> bool {
        self.flags & (FLUSH | FUA) != 0
    }

    /// Applies the entry to a file that is an image of the disk.
    pub fn apply_to_file(&self, image: &File) {
        image.write_all_at(&self.data, self.offset).unwrap();
        image.write_all_at(&vec![0; self.discarded as usize], self.offset).unwrap();
    }

    /// Applies the entry to an image of the disk.
    pub fn apply(&self, image: &mut [u8]) {
        let at = self.offset as usize;
        image[at..at + self.data.len()].copy_from_slice(&self.data);
        image[at..at + self.discarded as usize].fill(0);
    }
}
