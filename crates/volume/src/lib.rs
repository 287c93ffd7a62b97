//! A log-structured volume: logical block -> place on flash.
//!
//! A write goes to the end of the log, and the [`map`] of the volume then says where each logical
//! block lies. The crate knows no protocol and no async runtime.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod checksums;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
pub mod map;
pub mod policy;
mod sync;
