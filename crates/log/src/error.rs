//! Why a log is not opened.

use crate::device::OpenDeviceError;
use std::io;
use std::path::PathBuf;

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The sizes do not fit together.
    #[error(transparent)]
    Geometry(#[from] crate::GeometryError),
    /// The data file or device.
    #[error(transparent)]
    Device(#[from] OpenDeviceError),
    /// The state or journal files.
    #[error("cannot use the state files of {path}: {source}")]
    State {
        /// What their names begin with.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The threads that it needs cannot be started. What it held is there at the next start, as after a kill.
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
        /// What is wrong with it, and what to give instead.
        reason: String,
    },
    /// Somebody else's file lies where a log's would: it would be overwritten.
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
    /// The log and its state file were left by an earlier stop than other files that belong to them.
    #[error("{path}: it and the log are copies from before what lies beside them: put the last ones back")]
    Older {
        /// The state file.
        path: PathBuf,
    },
    /// Whoever uses the log wants to overwrite one segment while it keeps another.
    #[error("{path} has room for one write buffer: make file_size at least twice write_buffer_size")]
    OneSegment {
        /// The path.
        path: PathBuf,
    },
}
