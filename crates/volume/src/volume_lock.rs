//! One process at a time works on a volume: from the first look at its files to the last change of them.

use crate::config::{Config, Error, Files, is_there};
use crate::raw_device::claim;
use granary_log::{Lock, folder_of, is_locked, lock_file, open_or_create};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The exclusive lock of a volume, or of the name of a future one.
pub(crate) struct VolumeLock {
    files: Files,
    /// Locked as long as it is open.
    lock: File,
    /// The volume's folder.
    folder: FileIdentity,
    /// The state file, and the log where that is a file, since they were opened.
    parts: OnceLock<Vec<Part>>,
    claim: OnceLock<OwnedFd>,
}

/// A file that the log has open.
struct Part {
    path: PathBuf,
    file: File,
}

impl VolumeLock {
    /// Takes hold of a volume's name. Waits up to a second for its holder.
    ///
    /// # Errors
    /// Another process has it, or has the log open, or the folder cannot be written.
    pub fn take(files: &Files) -> Result<Self, Error> {
        Self::take_unless_open(files, &[files.state_file(), files.data()])
    }

    /// Like [`take`](Self::take), for a volume whose log is on a device that the caller has open.
    ///
    /// # Errors
    /// The errors of [`take`](Self::take).
    pub fn take_beside_device(files: &Files) -> Result<Self, Error> {
        Self::take_unless_open(files, &[files.state_file()])
    }

    fn take_unless_open(files: &Files, parts: &[PathBuf]) -> Result<Self, Error> {
        let path = files.lock_path();
        loop {
            let opened = open_or_create(&path, OFlags::WRONLY, Mode::RUSR | Mode::WUSR);
            let lock = File::from(opened.map_err(|errno| Error::io("lock", &path)(errno.into()))?);
            match lock_file(&lock).map_err(|errno| Error::io("lock", &path)(errno.into()))? {
                Lock::InUse => return Err(Error::InUse { path: files.config() }),
                Lock::Taken if is_at(&lock, &path).map_err(Error::io("lock", &path))? => {
                    let folder = identity(folder_of(&path)).map_err(Error::io("look at", &path))?;
                    let taken = Self {
                        files: files.clone(),
                        lock,
                        folder,
                        parts: OnceLock::new(),
                        claim: OnceLock::new(),
                    };
                    // The lock file may have been removed and made anew under a process that works on the volume.
                    let is_open = parts.iter().any(|part| is_locked(part));
                    return if is_open {
                        Err(Error::InUse { path: taken.files.config() })
                    } else {
                        Ok(taken)
                    };
                }
                // The previous holder deleted the volume, and this file with it.
                Lock::Taken => {}
            }
        }
    }

    /// Like [`take`](Self::take), for an existing volume.
    ///
    /// # Errors
    /// There is none of this name; or those of [`take`](Self::take).
    pub fn take_existing(files: &Files) -> Result<Self, Error> {
        if !is_there(&files.config())? {
            return Err(Error::not_found(files));
        }
        Self::take(files)
    }

    /// Claims the volume's raw device exclusively, as a mount does, for as long as the volume is held: no file system
    /// can be created on it.
    ///
    /// # Errors
    /// The device is in use, or is no block device.
    pub fn claim(&self, device: &Path) -> Result<(), Error> {
        if self.claim.get().is_none() {
            self.keep_device(claim(device)?);
        }
        Ok(())
    }

    /// Notes the files that the log has open, for [`check_files`](Self::check_files).
    ///
    /// # Errors
    /// The operating system refused.
    pub fn note_open(&self, config: &Config) -> Result<(), Error> {
        let log = config.device.is_none().then(|| self.files.data());
        let mut parts = Vec::new();
        for path in [Some(self.files.state_file()), log].into_iter().flatten() {
            match File::open(&path) {
                // The log is on a device that the caller gave.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => {
                    let file = opened.map_err(Error::io("open", &path))?;
                    parts.push(Part { path, file });
                }
            }
        }
        // Under one hold the log is opened once.
        drop(self.parts.set(parts));
        Ok(())
    }

    /// Checks that the log's files are where they were opened. Otherwise what is written there is lost for whoever
    /// opens the volume next, and what another process has put in their place would be overwritten. A folder that was
    /// moved away still has the volume's files.
    ///
    /// # Errors
    /// A file was removed or replaced, or its folder was.
    pub fn check_files(&self) -> io::Result<()> {
        self.parts.get().into_iter().flatten().try_for_each(|part| self.check_part(part))
    }

    fn check_part(&self, Part { path, file }: &Part) -> io::Result<()> {
        // What cannot be looked at says nothing.
        let Ok(here) = file.metadata() else { return Ok(()) };
        let there = identity(path);
        if there.as_ref().is_ok_and(|there| *there == (here.dev(), here.ino())) {
            return Ok(());
        }
        let folder = identity(folder_of(path)).ok();
        let is_gone = there.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let what = match folder {
            Some(folder) if folder != self.folder => "another folder was put in the place of the volume's",
            _ if there.is_ok() => "another file was put in the place of the volume's",
            // Without the folder the file may have been moved with it.
            _ if is_gone && (folder.is_some() || here.nlink() == 0) => "the file was removed",
            _ => return Ok(()),
        };
        let text = format!("{} is not the file that this process has open: {what}", path.display());
        Err(io::Error::other(text))
    }

    /// Keeps a claim that was made.
    pub fn keep_device(&self, claim: OwnedFd) {
        // Only one claim is ever made.
        drop(self.claim.set(claim));
    }
}

impl Drop for VolumeLock {
    fn drop(&mut self) {
        let is_volume = [self.files.config(), self.files.unfinished_delete(), self.files.unfinished_resize()];
        // What cannot be seen may be there.
        let path = self.files.lock_path();
        if !is_volume.iter().any(|path| path.try_exists().unwrap_or(true))
            && is_at(&self.lock, &path).unwrap_or(false)
        {
            // A lock file that remains does no harm.
            drop(std::fs::remove_file(path));
        }
    }
}

/// The identity of a file or folder: device number and inode number.
type FileIdentity = (u64, u64);

fn identity(path: &Path) -> io::Result<FileIdentity> {
    std::fs::metadata(path).map(|there| (there.dev(), there.ino()))
}

/// Whether a path still leads to a file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let here = file.metadata()?;
    match identity(path) {
        Ok(there) => Ok(there == (here.dev(), here.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
