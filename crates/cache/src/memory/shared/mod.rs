//! The RAM tier's chunks in a file on tmpfs that outlives the process. See docs/format.md, "The RAM tier".
//!
//! `abandoned` removes the files of caches that are gone, `claims` has the files of all partitions, `file` opens, locks and removes one, `header` says what it is, `directory` which chunk lies where, `arena`
//! gives room to chunks, `buffers` to write buffers, `partition_memory` shows both to the log, `mapping` is the only place that touches the mapped bytes unsafely. What is in a chunk is
//! `memory/entry.rs`; `memory/recover.rs` takes it over.

mod abandoned;
mod arena;
mod buffers;
mod claims;
mod directory;
mod file;
mod header;
mod mapping;
mod partition_memory;

pub(crate) use arena::{Arena, Extent, FoundChunk};
pub(crate) use claims::Claims;
pub(crate) use file::path_of;
pub(crate) use header::{Layout, WriteBuffers};
pub(super) use mapping::store_released;
pub(crate) use partition_memory::PartitionMemory;

#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests;
