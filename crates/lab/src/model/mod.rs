//! Models of caches, fed with requests: what each policy finds, and what it writes to flash.
//!
//! A replay is look-aside, as clients of memcached do it: a read that misses is followed by the client's
//! store of that object. Lifetimes and sizes are the replay's affair, so that all models see the same.
//! Bytes are those of keys and values. A model's objects fit into its budget; its index is counted
//! ([`Model::index_bytes`]), but does not take from the budget, so that policies are compared, not indexes.

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
pub use costs::{Costs, LARGE_DRAM_PARTS, Layout};
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

/// What a cache may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Objects in DRAM, those that wait to be written to flash among them.
    pub dram_bytes: u64,
    /// Flash, written in segments.
    pub flash_bytes: u64,
    /// What is written at once, and freed at once.
    pub segment_bytes: u64,
}

impl Budget {
    /// Segments that flash is cut into, unless said otherwise.
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

/// An object that is asked for or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Which one: keys of a workload are numbered from 0.
    pub key: u32,
    /// Bytes of key and value.
    pub bytes: u32,
    /// When it stops being good, in seconds, or [`NEVER`].
    pub expires: u32,
    /// Position of the next read that what is stored now can answer, or [`NEVER`]. Only Belady may look.
    pub next_read: u32,
}

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not in the cache.
    Absent,
    /// In DRAM: answered without a read of flash.
    Dram,
    /// On flash.
    Flash,
}

/// A cache as far as its decisions go.
pub trait Model {
    /// Where an object is.
    fn place(&self, key: u32) -> Place;

    /// A client reads an object, wherever it is: as [`Self::place`] says.
    fn read(&mut self, object: &Object, clock: Clock) -> Place;

    /// A client stores an object, in place of what may be there.
    fn store(&mut self, object: &Object, clock: Clock);

    /// An object is not wanted any more: deleted, or no longer good.
    fn remove(&mut self, key: u32);

    /// Bytes written to flash.
    fn flash_bytes_written(&self) -> u64;

    /// Bytes of DRAM that hold objects now.
    fn dram_bytes(&self) -> u64;

    /// Bytes of DRAM that the index takes now, as the literature says of such an index.
    fn index_bytes(&self) -> u64;

    /// Derives every sum anew; panics if one is wrong.
    fn validate(&self);
}

/// When a request comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Position in the workload.
    pub position: u32,
    /// Seconds since its begin.
    pub seconds: u32,
}
