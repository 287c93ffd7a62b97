//! One process at a time works on a volume: from the first look at its files to the last change of them.

use crate::config::{Error, Files};
use crate::raw_device::claim;
use granary_log::{Lock, folder_of, lock_file};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

/// The exclusive hold of a volume, or of the name of a future one.
pub(crate) struct Hold {
    files: Files,
    /// Locked as long as it is open.
    file: File,
    /// The volume's folder.
    folder: Identity,
    claim: OnceLock<OwnedFd>,
}

impl Hold {
    /// Takes hold of a volume's name. Waits up to a second for its holder.
    ///
    /// # Errors
    /// Another process has it, or the folder cannot be written.
    pub fn take(files: &Files) -> Result<Self, Error> {
        let path = files.lock_path();
        loop {
            let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
            let file = opened.map_err(Error::io("lock", &path))?;
            match lock_file(&file).map_err(|errno| Error::io("lock", &path)(errno.into()))? {
                Lock::InUse => return Err(Error::InUse { path: files.config() }),
                Lock::Taken if is_at(&file, &path).map_err(Error::io("lock", &path))? => {
                    let folder = identity(folder_of(&path)).map_err(Error::io("look at", &path))?;
                    return Ok(Self { files: files.clone(), file, folder, claim: OnceLock::new() });
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
        if !files.config().exists() {
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
            self.keep(claim(device)?);
        }
        Ok(())
    }

    /// Checks that the volume's folder was not replaced by another one, with a copy of the volume that another process
    /// uses. A folder that was moved away still has the volume's files.
    ///
    /// # Errors
    /// The folder, or the locked file, was replaced.
    pub fn check_folder(&self) -> io::Result<()> {
        let path = self.files.lock_path();
        let is_own = match identity(&path) {
            Ok(there) => self.file.metadata().map_or(true, |here| there == (here.dev(), here.ino())),
            // There is no lock file at the path: compare the folder.
            Err(_) => identity(folder_of(&path)).map_or(true, |there| there == self.folder),
        };
        if is_own {
            return Ok(());
        }
        let text = format!(
            "{} is not the file that this process has locked: another folder was put in the place of the volume's",
            path.display()
        );
        Err(io::Error::other(text))
    }

    /// Keeps a claim that was made.
    pub fn keep(&self, claim: OwnedFd) {
        // Only one claim is ever made.
        drop(self.claim.set(claim));
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let is_volume = [self.files.config(), self.files.deleted(), self.files.resized()];
        if !is_volume.iter().any(|path| path.exists()) {
            // A lock file that remains does no harm.
            drop(std::fs::remove_file(self.files.lock_path()));
        }
    }
}

/// The identity of a file or folder: device number and inode number.
type Identity = (u64, u64);

fn identity(path: &Path) -> io::Result<Identity> {
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
