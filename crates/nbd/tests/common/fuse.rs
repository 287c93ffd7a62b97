//! An export as a file, by nbdfuse.

use super::programs::attempt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that is killed when this is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An export that is a file, until this is dropped.
pub struct Fuse {
    nbdfuse: Running,
    file: PathBuf,
}

impl Fuse {
    /// The export at `uri` as the file `name` in a folder; `None`: there is no nbdfuse or no FUSE here.
    pub fn mount(folder: &Path, name: &str, uri: &str) -> Option<Self> {
        let file = folder.join(name);
        std::fs::write(&file, "").unwrap();
        let mut nbdfuse = Command::new("nbdfuse");
        let nbdfuse = nbdfuse.arg(&file).arg(uri).stdin(Stdio::null()).spawn().ok()?;
        let mut fuse = Self { nbdfuse: Running(nbdfuse), file };
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::metadata(&fuse.file).map_or(0, |found| found.len()) == 0 {
            // It ends if it cannot mount.
            if fuse.nbdfuse.0.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(Instant::now() < deadline, "nbdfuse runs and mounts nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(fuse)
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let file = self.file.to_str().unwrap();
        // Detaches it even if it is still open.
        let folder = self.file.parent().unwrap();
        if !attempt(folder, "umount", &[file]).0 {
            let _ = attempt(folder, "umount", &["-l", file]);
        }
    }
}

/// Waits until `is_there` is true.
pub fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
