//! The RAM tier's chunks in a file on tmpfs that outlives the process. See docs/format.md, "The RAM tier".
//!
//! `abandoned` removes the files of caches that are gone, `claims` holds the files of all partitions, `file` opens,
//! locks and removes one, `header` is its first page, `directory` tells which chunk lies where, `arena` allocates
//! chunks, `buffers` write buffers, `partition_memory` is the log's view of both, `mapping` is the only place with
//! unsafe accesses to the mapped bytes. `memory/entry.rs` has the content of chunks; `memory/recover.rs` takes it over.

mod abandoned;
mod arena;
mod buffers;
mod claims;
mod directory;
mod file;
mod header;
mod mapping;
mod partition_memory;

pub(crate) use arena::{Arena, FoundChunk, UnitRange};
pub(crate) use claims::Claims;
pub(crate) use file::{path_of, remove_unlocked};
pub(crate) use header::{Layout, WriteBuffers};
pub(super) use mapping::store_released;
pub(crate) use partition_memory::PartitionMemory;

#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests;
