//! Errors of traces.

use std::io;
use std::path::{Path, PathBuf};

/// Why and where a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, read or unpacked.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system or the unpacker.
        error: io::Error,
    },
    /// A line that does not fit the format.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Lines are counted from 1.
        line: u64,
        /// The error.
        what: String,
    },
    /// Bytes that do not fit the format.
    #[error("{}, byte {offset} (unpacked): {what}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// The error.
        what: String,
    },
    /// The file as a whole is unusable.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
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
