//! The options of a log: its place, its shape, and its start.

use crate::device::Space;
use crate::error::OpenError;
use crate::geometry::Geometry;
use crate::shared_memory::SharedMemory;
use crate::slots::SlotOrder;
use crate::state::{StateFile, state_file_of};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The place and the shape of a log, and what a start makes of its content.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data: a file of exactly the geometry's size, or a block device.
    pub path: PathBuf,
    /// The path of the small state and journal files: `<this>.state`, `<this>.journal.0` and `.1`.
    pub state_path: PathBuf,
    /// The shape.
    pub geometry: Geometry,
    /// A number that stands for what the consumer stores; another one starts empty.
    pub fingerprint: u64,
    /// A number that the consumer's summary entries depend on, kept with the content; another one starts empty.
    /// `None`: the one that is there, or a random one.
    pub salt: Option<u64>,
    /// The number of a file of the consumer's without which the content cannot be read, such as a file of compression
    /// dictionaries; 0: there is none. It is kept with the content. A log whose content depends on another number
    /// starts empty; one whose content depends on none stays, and depends on this number from here on.
    pub depends_on: u64,
    /// The choice of slots for segments. Part of the content: another order wants another fingerprint.
    pub slots: SlotOrder,
    /// Whether the file's space is reserved.
    pub space: Space,
    /// The treatment of content that may be incomplete, at a start.
    pub crash_policy: CrashPolicy,
    /// The memory of each partition that outlives the process. A start without it makes what it holds void. Empty:
    /// there is none.
    pub shared_memory: Vec<Arc<dyn SharedMemory>>,
}

/// The treatment of a log that was not stopped cleanly, or whose files are damaged, at a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrashPolicy {
    /// Start empty, as a cache may: after a loss of power, and where the files are damaged or of another shape.
    #[default]
    StartEmpty,
    /// After a loss of power take what can be found, older versions of what was not synced among it; start empty where
    /// the files are damaged or of another shape. What was journalled is void for good once
    /// [`Log::sync_journal`](crate::Log::sync_journal) has returned. Only with [`SlotOrder::Fifo`]. Part of the
    /// content: who changes to this from another wants another fingerprint.
    ServeOlder,
    /// Take what can be found after a loss of power; refuse to open where the files are missing, damaged or of another
    /// shape, or are a copy from before the newest segment that the consumer knows of, if it knows of any. A log is
    /// made with another of these.
    Keep(Option<NewestKnown>),
}

/// The newest segment that files of the consumer's own speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestKnown {
    /// The instance of the log that they speak of. Of another, they say nothing.
    pub instance: u64,
    /// The sequence number.
    pub sequence: u64,
}

impl Options {
    /// An error of the state or journal files.
    pub(crate) fn state_error(&self, source: io::Error) -> OpenError {
        OpenError::State { path: self.state_path.clone(), source }
    }

    /// Opens and locks the log's state file.
    pub(crate) fn open_state(&self) -> Result<StateFile, OpenError> {
        StateFile::open(&state_file_of(&self.state_path))
            .map_err(|source| self.state_error(source))?
            .map_err(|_| OpenError::InUse { path: self.path.clone() })
    }
}
