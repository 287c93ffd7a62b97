//! The objects that a policy decides about, and its verdicts.

use crate::key::Key;

/// An object that leaves DRAM.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its key.
    pub key: Key<'a>,
    /// Bytes that it takes on flash.
    pub bytes: u64,
    /// The number of its reads in DRAM, up to [`COUNT_MAX`].
    pub reads: u8,
    /// The number of times it was overwritten in DRAM, up to [`COUNT_MAX`].
    pub updates: u8,
}

/// Reads and updates of an object are counted up to here.
pub const COUNT_MAX: u8 = 15;

/// The decision about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is written to flash.
    Flash,
    /// It leaves the cache.
    Drop,
}
