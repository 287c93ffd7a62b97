//! A log-structured volume: logical block -> place on flash.
//!
//! A write goes to the end of the log, and the [`map`] of the volume then says where each logical block lies.
//! What is overwritten is dead; [`policy`] decides which segments are cleaned, when, and how long writers
//! wait for it. [`checksums`] keeps the checksums of blocks by segment, and [`checkpoint`] the map on disk,
//! so that a start reads what came after it only.
//!
//! The crate knows no protocol and no async runtime.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod checksums;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
pub mod map;
pub mod policy;
mod sync;
