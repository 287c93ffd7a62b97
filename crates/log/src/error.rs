//! The errors of opening a log.

use crate::device::OpenDeviceError;
use std::io;
use std::path::PathBuf;

/// The reason why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The sizes do not fit together.
    #[error(transparent)]
    Geometry(#[from] crate::GeometryError),
    /// The data file or device could not be opened.
    #[error(transparent)]
    Device(#[from] OpenDeviceError),
    /// The state or journal files could not be used.
    #[error("cannot use the state files of {path}: {source}")]
    State {
        /// The prefix of their names.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The log's threads cannot be started. Its content is there at the next start, as after a kill.
    #[error(
        "cannot start a thread for {path}, the process may have reached its limits (ulimit -u, TasksMax=): {source}"
    )]
    Thread {
        /// The path.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Another cache has it open.
    #[error("{path} is in use by another cache: give each a path of its own")]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// An option that makes no sense.
    #[error("{option}: {reason}")]
    Invalid {
        /// Its name.
        option: &'static str,
        /// The fault, and what to give instead.
        reason: String,
    },
    /// A file that is not Granary's lies where the log's would, and would be overwritten.
    #[error("{path} is there already, and is no cache of Granary's: move it away, or choose another path")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The files of a log that must not start empty are not what they should be.
    #[error(
        "{path}: the state file is damaged, or says another size or format: it is not opened, lest data be lost"
    )]
    Damaged {
        /// The state file.
        path: PathBuf,
    },
    /// The log and its state file are older than other files that belong to them.
    #[error("{path}: it and the log are copies from before what lies beside them: put the last ones back")]
    Older {
        /// The state file.
        path: PathBuf,
    },
    /// The consumer needs two segments: it keeps one while another is overwritten.
    #[error("{path} has room for one write buffer: make file_size at least twice write_buffer_size")]
    OneSegment {
        /// The path.
        path: PathBuf,
    },
}
