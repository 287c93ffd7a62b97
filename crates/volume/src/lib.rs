//! A log-structured volume: logical block -> place on flash.
//!
//! A write goes to the end of the log, and the [`map`] of the volume then says where each logical block lies.
//! What is overwritten is dead; [`policy`] decides which segments are cleaned, and when: what is alive in them moves to
//! the end. [`checksums`] keeps the checksums of blocks by segment, and [`checkpoint`] the map on disk, so that a start
//! reads what came after it only. The crate knows no protocol and no async runtime.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod checksums;
mod clean;
mod committer;
mod config;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod hold;
mod lifecycle;
pub mod limits;
pub mod map;
pub mod policy;
mod raw_device;
mod read;
mod recover;
mod retry;
mod shared;
mod stats;
mod sync;
mod unfinished;
mod volume;
mod write;

pub use config::{Config, Error, Files};
pub use granary_log::device;
pub use granary_log::{Engine, Extent, Flights, Io};
pub use read::{Found, Stored, Verdict};
pub use stats::{Operation, Stats};
pub use volume::{Progress, Volume};
pub use write::Patience;
