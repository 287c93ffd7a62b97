//! A log of segments on a device: append, seal, read, reclaim, recover.
//!
//! The log knows segments, blocks, sequence numbers and, for each record, one 48-bit *word* that it
//! repeats in the summary at the segment's end. What a record holds, what its word means and what
//! becomes of live records when a segment is reclaimed is the [`Consumer`]'s affair. It knows no
//! key, no protocol and no async runtime.

pub mod block;
mod buffer;
pub mod device;
mod flusher;
mod free_spaces;
#[doc(hidden)]
pub mod fuzzing;
mod geometry;
mod io;
mod journal;
pub mod limits;
mod lock;
mod log;
mod open;
mod partitions;
mod segment;
mod state;
mod summary;
#[doc(hidden)]
pub mod sync;

pub use buffer::AlignedBuffer;
pub use geometry::{Geometry, GeometryError};
pub use io::{Engine, Extent, Flights, Io, ReadAhead};
pub use log::{Consumer, Location, Log, LogStats, Placed, WordsOf, Writer};
pub use open::{Found, OpenError, Options, Recovered};
pub use segment::{Segment, SegmentReader, WordRule};
pub use summary::Summary;
