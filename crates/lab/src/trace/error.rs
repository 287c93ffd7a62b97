//! What can be wrong with a trace.

use std::io;
use std::path::{Path, PathBuf};

/// A trace that cannot be read, and where.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be opened, read or unpacked.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the unpacker said.
        error: io::Error,
    },
    /// A line of text that is not of the format.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Lines are counted from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// Bytes that are not of the format.
    #[error("{}, byte {offset} (unpacked): {what}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The file as a whole is not usable.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl TraceError {
    pub(super) fn file(path: &Path, what: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), what: what.into() }
    }

    /// For `map_err`.
    pub(super) fn read(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self::Read { path: path.to_owned(), error }
    }
}
