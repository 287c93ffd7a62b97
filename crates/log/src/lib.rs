//! A log of segments on a device: append, commit, read, reclaim, recover.
//!
//! The log knows segments of opaque blocks, sequence numbers and slots. How records lie in blocks, what checks them and
//! what a segment's summary says is the [`Framing`] of its consumer; the [`Consumer`] decides what becomes of live
//! records when a segment is reclaimed. It knows no key, no protocol and no async runtime.

mod adopt_buffers;
mod buffer;
mod commit;
mod commit_state;
pub mod device;
mod durable_state;
mod error;
mod files;
mod flusher;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod geometry;
mod io;
mod journal;
pub mod limits;
mod lock;
mod log;
mod occupant;
mod open;
mod options;
#[doc(hidden)]
pub mod parallel;
mod partitions;
mod power_loss;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod power_loss_tests;
#[doc(hidden)]
pub mod prefetch;
mod recover;
mod segment;
mod shared_memory;
#[cfg(test)]
#[path = "../tests/common/skip.rs"]
mod skip;
mod slots;
mod start;
mod state;
#[doc(hidden)]
pub mod sync;
mod writer;

pub use buffer::{ALIGNMENT, AlignedBuffer, BufferOwner};
pub use error::OpenError;
pub use files::{
    UnpublishedFile, create_folders, folder_of, open_or_create, open_or_create_for, sync_folder, with_suffix,
};
pub use framing::{Framing, SealedBlocks, SegmentId, SummarySource};
pub use geometry::{Geometry, GeometryError};
#[doc(hidden)]
pub use io::read_buffer_bytes;
pub use io::{Engine, Extent, Io, ReadAhead, ReadQueue};
pub use lock::{Lock, is_locked, lock as lock_file, patiently};
pub use log::{Consumer, Location, Log, LogStats, OnWriteError};
pub use occupant::Occupant;
pub use open::set_geometry;
pub use options::{CrashPolicy, NewestKnown, Options};
pub use partitions::{invalidate, invalidate_closed, is_any_open, is_name_of_partition, state_files};
pub use recover::{Opened, Recovered};
pub use segment::{Segment, SegmentReader};
pub use shared_memory::SharedMemory;
pub use slots::SlotOrder;
#[doc(hidden)]
pub use state::boot_id;
pub use writer::Writer;
