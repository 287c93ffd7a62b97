//! Drivers of lookups: one thread that waits for its reads, two threads, and a thread that does other things meanwhile.

mod blocking;
mod by_block;
mod helpers;
mod in_memory;
mod io;
mod long_reads;
mod parallel;
mod polled;

pub(crate) use blocking::get_many;
pub(crate) use by_block::{Usable, or_by_block, read_by_block};
pub(crate) use helpers::Working;
pub use helpers::{Helpers, Team};
pub use in_memory::MemoryLookups;
pub(crate) use in_memory::get_in_memory;
#[cfg(feature = "async")]
pub(crate) use in_memory::get_many_in_memory;
pub use io::Io;
pub(crate) use long_reads::{LongReads, LongRecord};
pub(crate) use parallel::get_many_parallel;
pub use polled::Pending;
pub(crate) use polled::{begin_many, poll};
