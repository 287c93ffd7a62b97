//! What a policy decides about, and how.

use crate::key::Key;

/// An object that leaves DRAM.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its key.
    pub key: Key<'a>,
    /// What it takes on flash.
    pub bytes: u64,
    /// How often it was read in DRAM, up to [`COUNT_MAX`].
    pub reads: u8,
    /// How often it was written over in DRAM, up to [`COUNT_MAX`].
    pub updates: u8,
}

/// Reads and updates of an object are counted up to here.
pub const COUNT_MAX: u8 = 15;

/// What becomes of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is written to flash.
    Flash,
    /// It leaves the cache.
    Drop,
}
