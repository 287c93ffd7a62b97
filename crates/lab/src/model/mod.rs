//! Models of caches: what each policy finds of a workload's requests, and what it writes to flash.
//!
//! A replay is look-aside, like memcached's clients: a read that misses is followed by the client's store of that
//! object. Lifetimes and sizes are handled by the replay, so that all models see the same. Bytes are those of keys and
//! values. A model's objects fit into its budget; its index is counted ([`Model::index_bytes`]) but not taken from the
//! budget, so that policies are compared, not indexes.

mod belady;
mod costs;
mod divided;
mod fifo;
mod hybrid;
mod lru;
mod policy;
mod replay;
mod ripq;
mod s3_fifo;
mod segments;
mod victim;
mod workload;

pub use belady::Belady;
pub use costs::{Costs, LARGE_DRAM_DIVISOR, Layout};
pub use divided::{Divided, DividedOptions, FoundIn};
pub use fifo::Fifo;
pub use hybrid::{Filter, Hybrid, HybridOptions, Offer};
pub use lru::Lru;
pub use policy::Policy;
pub use replay::{Tally, replay};
pub use ripq::Ripq;
pub use s3_fifo::S3Fifo;
pub use segments::Packing;
pub use victim::Victim;
pub use workload::{Step, Workload};

/// No object, no position, no end of a lifetime.
pub const NEVER: u32 = u32::MAX;

/// The space that a cache may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of DRAM for objects, including those that wait to be written to flash.
    pub dram_bytes: u64,
    /// Bytes of flash, written in segments.
    pub flash_bytes: u64,
    /// Bytes written, and freed, at once.
    pub segment_bytes: u64,
}

impl Budget {
    /// Default number of segments of flash.
    const SEGMENTS: u64 = 128;

    /// Flash in 128 segments: enough of them for each of RIPQ's insertion points to have several.
    pub fn new(dram_bytes: u64, flash_bytes: u64) -> Self {
        Self { dram_bytes, flash_bytes, segment_bytes: (flash_bytes / Self::SEGMENTS).max(1) }
    }

    /// DRAM that is left when `buffers` segments wait to be written.
    fn dram_beside(&self, buffers: u64) -> u64 {
        self.dram_bytes.saturating_sub(buffers * self.segment_bytes)
    }
}

/// An object that is requested or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its key; keys of a workload are numbered from 0.
    pub key: u32,
    /// Bytes of key and value.
    pub bytes: u32,
    /// When its lifetime ends, in seconds, or [`NEVER`].
    pub expires: u32,
    /// Position of the next read that an object stored now can answer, or [`NEVER`]. Only Belady may look.
    pub next_read: u32,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not in the cache.
    Absent,
    /// In DRAM: answered without a read of flash.
    Dram,
    /// On flash.
    Flash,
}

/// A cache's decisions, without its data.
pub trait Model {
    /// Returns where an object is.
    fn place(&self, key: u32) -> Place;

    /// A client reads an object. Returns where it was, like [`Self::place`].
    fn read(&mut self, object: &Object, clock: Clock) -> Place;

    /// A client stores an object, replacing an earlier one.
    fn store(&mut self, object: &Object, clock: Clock);

    /// An object was deleted, or its lifetime ended.
    fn remove(&mut self, key: u32);

    /// Bytes written to flash.
    fn flash_bytes_written(&self) -> u64;

    /// Bytes of DRAM that hold objects now.
    fn dram_bytes(&self) -> u64;

    /// Bytes of DRAM that the index takes now, as the literature gives it for such an index.
    fn index_bytes(&self) -> u64;

    /// Recomputes every sum; panics if one is wrong.
    fn validate(&self);
}

/// The time of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Position in the workload.
    pub position: u32,
    /// Seconds since the workload began.
    pub seconds: u32,
}
