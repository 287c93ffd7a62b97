//! The journal of a log after a loss of power.

use std::path::{Path, PathBuf};

/// The journal's two files, and what a loss of power leaves of them.
pub struct JournalFiles {
    paths: [PathBuf; 2],
    synced: [Vec<u8>; 2],
}

impl JournalFiles {
    /// The files beside `state_path`, all of whose bytes are synced.
    pub fn of(state_path: &Path) -> Self {
        let path = |suffix| state_path.with_extension(suffix);
        let mut this = Self { paths: ["journal.0", "journal.1"].map(path), synced: [Vec::new(), Vec::new()] };
        this.note_synced();
        this
    }

    /// The journal was synced.
    pub fn note_synced(&mut self) {
        self.synced = self.paths.each_ref().map(|path| std::fs::read(path).unwrap());
    }

    /// Leaves what was synced, and any part of later appends. A file that was emptied since may have its old content.
    /// `below(n)` draws a number below `n`.
    pub fn lose_power(&self, mut below: impl FnMut(u64) -> u64) {
        for (path, synced) in self.paths.iter().zip(&self.synced) {
            let mut bytes = std::fs::read(path).unwrap();
            let certain = if bytes.starts_with(synced) { synced.len() } else { 0 };
            let left = certain + below((bytes.len() - certain + 1) as u64) as usize;
            if below(3) == 0 {
                // Blocks that were not written are zero.
                bytes[left..].fill(0);
            } else {
                bytes.truncate(left);
            }
            let was_emptied = certain < synced.len();
            let bytes = if was_emptied && below(2) == 0 { synced } else { &bytes };
            std::fs::write(path, bytes).unwrap();
        }
    }
}
