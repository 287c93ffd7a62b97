//! A temporary folder, removed at the end.

use std::path::{Path, PathBuf};

use crate::failure::{Result, at};

pub struct Scratch {
    pub path: PathBuf,
}

impl Scratch {
    pub fn new(parent: &Path) -> Result<Scratch> {
        let path = parent.join(format!("granary-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(at(&path))?;
        Ok(Scratch { path: path.canonicalize().map_err(at(&path))? })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that remain are in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
