//! The files that are in the place where a log is to be made.

use crate::journal;
use crate::options::Options;
use crate::partitions::path_of;
use crate::state::{self, Peeked, state_file_of};
use std::io;
use std::path::{Path, PathBuf};

/// The content of the place where a log is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nothing, or a log with this fingerprint. A block device always fits.
    Fitting,
    /// A log with another fingerprint; its file.
    OtherLog(PathBuf),
    /// A file that belongs to no log.
    Foreign(PathBuf),
}

impl Options {
    /// Looks at the place of `partitions` logs without touching it.
    ///
    /// # Errors
    /// An existing file cannot be read.
    pub fn occupant(&self, partitions: u64) -> io::Result<Occupant> {
        let has_data = has_bytes(&self.path)?;
        let state = state_file_of(&self.state_path);
        let peeked = state::peek(&state)?;
        if peeked == Peeked::Nothing && has_data {
            return Ok(Occupant::Foreign(self.path.clone()));
        }
        if let Some(foreign) = self.foreign_file(partitions)? {
            return Ok(Occupant::Foreign(foreign));
        }
        Ok(match peeked {
            Peeked::Log(found) if found != self.fingerprint_of(0, partitions) => {
                Occupant::OtherLog(if has_data { self.path.clone() } else { state })
            }
            _ => Occupant::Fitting,
        })
    }

    /// A file with the name of a state or a journal of one of `partitions` logs that is none. Without a state there can
    /// be no journal.
    pub(crate) fn foreign_file(&self, partitions: u64) -> io::Result<Option<PathBuf>> {
        for i in 0..partitions {
            let path = path_of(&self.state_path, i);
            let state = state_file_of(&path);
            let foreign = match state::peek(&state)? {
                Peeked::Foreign => Some(state),
                Peeked::Nothing => {
                    let mut foreign = None;
                    for journal in journal::paths(&path) {
                        foreign = foreign.or(has_bytes(&journal)?.then_some(journal));
                    }
                    foreign
                }
                Peeked::Invalidated | Peeked::Log(_) => None,
            };
            if foreign.is_some() {
                return Ok(foreign);
            }
        }
        Ok(None)
    }
}

/// Whether `path` is a file that is not empty. A block device does not count.
fn has_bytes(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(found.is_file() && found.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
