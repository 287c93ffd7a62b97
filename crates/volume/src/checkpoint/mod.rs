//! The checkpoint of a volume: its map on disk, so that a start reads only later segments.
//!
//! A checkpoint is written beside the former one, synced and renamed over it. So there is the former one or the new
//! one, and either is complete. An incomplete one was damaged, and refuses the start: the log may no longer have its
//! content.

mod format;
mod read;
mod write;

pub use format::CheckpointHeader;
pub(crate) use format::{HEADER_SIZE, PAGE_RECORD_SIZE, TRAILER_SIZE, seal};
pub use read::{Checkpoint, read};
pub(crate) use read::{ScanError, scan};
pub(crate) use write::encode;
pub use write::{Prepared, prepare, write};

use std::io;
use std::path::Path;

/// Adds the path to an error.
fn of_path(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
