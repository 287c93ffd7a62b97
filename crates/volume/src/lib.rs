//! A log-structured volume: logical block -> place on flash.
//!
//! A write goes to the end of the log, and the [`map`] of the volume then has the place of each logical block.
//! Overwritten blocks are dead; [`policy`] decides which segments are cleaned, and when: their live blocks move to the
//! end. [`checksums`] caches the checksums of blocks by segment, and [`checkpoint`] keeps the map on disk, so that a
//! start reads only later segments. The crate knows no protocol and no async runtime.
//!
//! Where the process has a limit of the length of files (`RLIMIT_FSIZE`), a write beyond it comes with SIGXFSZ, which
//! ends the process unless the program ignores or handles it: then the write fails, as on a full file system.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod checksums;
mod clean;
mod committer;
mod config;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod lifecycle;
pub mod limits;
pub mod map;
pub mod policy;
mod raw_device;
mod read;
mod recover;
mod retry;
mod running;
mod stats;
mod sync;
mod unfinished;
mod volume;
mod volume_lock;
mod write;

pub use config::{Config, Error, Files};
pub use granary_log::device;
pub use granary_log::{Engine, Extent, Io, ReadQueue};
pub use read::{BlockCheck, DeviceBlock, Located};
pub use stats::{Operation, Stats};
pub use volume::{Progress, Volume};
pub use write::WaitPolicy;
