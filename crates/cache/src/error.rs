//! The errors of a cache.

use crate::entry::Refusal;
use granary_log::OpenError;
use std::io;
use std::path::PathBuf;

/// The reason why a call failed. Lookups do not fail: what cannot be read is a miss, and is counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cache cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An entry is not kept.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A key or a value cannot be turned into bytes.
    #[error("cannot encode the {what}: {source}")]
    Encode {
        /// "key" or "value".
        what: &'static str,
        /// The format's error.
        source: CodecError,
    },
    /// The threads of an asynchronous cache cannot be started.
    #[error(
        "cannot start a thread of the cache, the process may have reached its limits (ulimit -u, -n): {source}"
    )]
    Start {
        /// The operating system's answer.
        source: io::Error,
    },
    /// Some of what was put could not be written.
    #[error(
        "{path}: cannot write what was put: {source}; {lost} entries are lost, and older values of their keys with them"
    )]
    Flush {
        /// The path of the cache.
        path: PathBuf,
        /// The entries that the device refused, except those reported by an earlier error.
        lost: u64,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Deletions or overwritten entries cannot be synced: a loss of power may bring them back.
    #[error(
        "{path}: cannot sync what was deleted or overwritten, a loss of power may bring it back: {source}"
    )]
    Sync {
        /// The path of the cache.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The cache cannot be emptied for good: after a crash old content may be back.
    #[error("{path}: cannot empty the cache for good: {source}")]
    Clear {
        /// The path of the cache.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The cache was not stopped cleanly: it may start empty.
    #[error("{path}: cannot stop the cache cleanly, it may start empty: {source}")]
    Close {
        /// The path of the cache.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match &error {
            Error::Flush { source, .. }
            | Error::Sync { source, .. }
            | Error::Clear { source, .. }
            | Error::Close { source, .. } => io::Error::new(source.kind(), error),
            _ => io::Error::other(error),
        }
    }
}

/// The reason why a format cannot encode or decode a value.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CodecError(Box<dyn std::error::Error + Send + Sync>);

impl CodecError {
    /// An error of this kind, or with this text.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}
