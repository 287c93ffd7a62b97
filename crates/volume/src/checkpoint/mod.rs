//! The checkpoint of a volume: its map on disk, so that a start reads what came after it only.
//!
//! A checkpoint is written beside the one before it, synced and then put in its place. So there is the former
//! one or the new one, and either is whole. One that is not was damaged, and refuses the start: the log may have
//! forgotten what it said.

mod format;
mod read;
mod write;

pub use format::Header;
pub(crate) use format::{HEADER_SIZE, PAGE_RECORD_SIZE, TRAILER_SIZE, seal};
pub use read::{Checkpoint, read};
pub(crate) use read::{ScanError, scan};
pub(crate) use write::encode;
pub use write::{Prepared, prepare, write};

use std::io;
use std::path::Path;

/// The error with the path that it is of.
fn of_path(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
