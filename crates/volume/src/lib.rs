//! A log-structured volume: logical block -> place on flash.
//!
//! A write goes to the end of the log, and the [`map`] of the volume then says where each logical block lies. Live
//! blocks of segments that are mostly dead move to the end, so that the log never fills up. The crate knows no protocol
//! and no async runtime.

#![forbid(unsafe_code)]

mod checkpoint;
mod checksums;
mod clean;
mod committer;
mod config;
mod framing;
pub mod limits;
pub mod map;
mod policy;
mod read;
mod recover;
mod shared;
mod stats;
mod sync;
mod volume;
mod write;

pub use config::{Config, Error, Files};
pub use granary_log::Io;
pub use read::{Found, Stored, Verdict};
pub use stats::Stats;
pub use volume::{Progress, Volume};
