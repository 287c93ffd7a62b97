//! Files and folders: whose new ones are, and changes that survive a loss of power.

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// The number of attempts to make a file that is not there before links are followed.
const TRIES: usize = 3;

/// Opens a file with these flags; makes it before, with the permissions `mode` (less the umask), if it is missing. What
/// root makes in a folder of another user's is that user's: the service that the folder belongs to has to open it, too.
///
/// # Errors
/// The operating system refuses.
pub fn open_or_create(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    open_or_create_for(folder_of(path), path, flags, mode)
}

/// Like [`open_or_create`] for a file that belongs to what lies in `folder`, and lies elsewhere itself.
///
/// # Errors
/// The operating system refuses.
pub fn open_or_create_for(folder: &Path, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let open =
        |flags: OFlags, mode: Mode| retry_on_intr(|| rustix::fs::open(path, flags | OFlags::CLOEXEC, mode));
    for _ in 0..TRIES {
        match open(flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        // Nobody's link is followed to a file that is then given away. Not with `flags`: a file system without O_DIRECT
        // makes the file, and then refuses to open it.
        match open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode) {
            Ok(made) => give_to_owner(&File::from(made), path, folder),
            // Another process was faster, or it is a link to a file that is missing.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    open(flags | OFlags::CREATE, mode)
}

/// Makes a folder and those above it that are not there. As with files, what root makes in a folder of another user's
/// is that user's.
///
/// # Errors
/// The operating system refuses, or there is another file.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let make = || match std::fs::create_dir(folder) {
        Ok(()) => {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::open(folder, flags, Mode::empty())?;
            give_to_owner(&File::from(made), folder, folder_of(folder));
            Ok(())
        }
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    };
    match (make(), folder.parent()) {
        (Err(error), Some(above)) if error.kind() == ErrorKind::NotFound => {
            create_folders(above)?;
            make()
        }
        (made, _) => made,
    }
}

/// Gives what root has made to the owner of a folder. Where that cannot be, root has it, and the log says so.
fn give_to_owner(made: &File, path: &Path, folder: &Path) {
    let (Ok(this), Ok(owner)) = (made.metadata(), folder.metadata()) else { return };
    if !is_root(&this) || is_root(&owner) {
        return;
    }
    let (user, group) = (owner.uid(), owner.gid());
    if let Err(error) = fchown(made, Some(user), Some(group)) {
        tracing::warn!(
            "{} is root's and cannot be given to user {user}, whose folder it belongs to ({error}): a service of that user \
             cannot open it",
            path.display()
        );
    }
}

fn is_root(found: &Metadata) -> bool {
    found.uid() == 0
}

/// Makes the names in the folder of a file survive a loss of power.
///
/// # Errors
/// The folder cannot be opened or synced.
pub fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

/// The folder of a file; the current folder for a bare name.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `path` with `suffix` behind it, for files whose names begin with a path that users choose. Unlike with
/// [`Path::with_added_extension`], a path that ends in a slash gives a file in that folder.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A new version of a file, written and synced under a name of its own. If it is dropped unpublished, it is removed.
#[must_use = "a file is replaced once the new version is published"]
pub struct UnpublishedFile {
    path: PathBuf,
    is_published: bool,
}

impl UnpublishedFile {
    /// Creates the file at `path`, or empties what is there, has `write` fill it, and syncs it. `mode` are the
    /// permissions of a new file, before the umask.
    ///
    /// # Errors
    /// The file cannot be created, written or synced. It is removed then.
    pub fn write(
        path: PathBuf,
        mode: u32,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Self> {
        // What cannot be opened is removed, too: the next try finds nothing in its way.
        let this = Self { path, is_published: false };
        let flags = OFlags::WRONLY | OFlags::TRUNC;
        let mut file = File::from(open_or_create(&this.path, flags, Mode::from_raw_mode(mode))?);
        write(&mut file)?;
        file.sync_all()?;
        Ok(this)
    }

    /// Puts the file in the place of `path`, in the same folder. When this returns, that survives a loss of power.
    ///
    /// # Errors
    /// The file cannot be renamed, or the folder not synced. The former version may come back then.
    pub fn publish_as(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.is_published = true;
        sync_folder(path)
    }
}

impl Drop for UnpublishedFile {
    fn drop(&mut self) {
        if !self.is_published {
            // A file that remains is ignored, and overwritten.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_once_its_new_version_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("f"), folder.path().join("f.new"));
        std::fs::write(&path, "old").unwrap();
        let write = || UnpublishedFile::write(new.clone(), 0o600, |file| file.write_all(b"new"));
        let read = || std::fs::read_to_string(&path).unwrap();
        drop(write().unwrap());
        assert_eq!((read().as_str(), new.exists()), ("old", false));
        UnpublishedFile::write(new.clone(), 0o600, |_| Err(io::Error::other("full"))).err().unwrap();
        assert_eq!((read().as_str(), new.exists()), ("old", false));
        write().unwrap().publish_as(&path).unwrap();
        assert_eq!((read().as_str(), new.exists()), ("new", false));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_opened_is_not_in_the_way_of_the_next_try() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("f"), folder.path().join("f.new"));
        std::os::unix::fs::symlink(&new, &new).unwrap();
        let write = || UnpublishedFile::write(new.clone(), 0o600, |file| file.write_all(b"new"));
        write().err().unwrap();
        write().unwrap().publish_as(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn the_folder_of_a_bare_name_is_the_current_one() {
        assert_eq!(folder_of(Path::new("f")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/f")), Path::new("a"));
        assert_eq!(folder_of(Path::new("/f")), Path::new("/"));
        sync_folder(Path::new("f")).unwrap();
    }

    #[test]
    fn a_suffix_behind_a_slash_is_a_file_in_that_folder() {
        assert_eq!(with_suffix(Path::new("a/b.c"), ".state"), Path::new("a/b.c.state"));
        assert_eq!(with_suffix(Path::new("a/"), ".state"), Path::new("a/.state"));
    }
}
