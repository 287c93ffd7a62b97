//! The places that a lookup searches.

use super::search::KeyDigest;

/// A block to look for a key in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// Its number.
    pub block: u64,
    /// The key's index in the batch.
    pub key: u32,
    /// The digest of the key's bytes.
    pub digest: KeyDigest,
    /// The entry's found mark in the index.
    pub is_found: bool,
}

/// A block that did not hold the key it was looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FalsePositive {
    pub key: u32,
    pub block: u64,
    /// Segment that the block was read as; 0: the result is not remembered as a collision.
    pub sequence: u64,
}

/// Probes of one segment on the device: `probes[range]`, to be read as segment `sequence`.
pub(crate) struct OnDevice {
    pub range: std::ops::Range<usize>,
    pub sequence: u64,
}

/// A planned read: the index of its first probe, and of the first segment in [`on_device`](super::Scratch::on_device).
#[derive(Clone, Copy)]
pub(crate) struct PlannedRead {
    pub probe: usize,
    pub segment: usize,
}

/// An entry over several blocks, the first of which has been read.
#[derive(Clone, Copy)]
pub(crate) struct LongEntry {
    pub probe: Probe,
    /// The segment's sequence number.
    pub sequence: u64,
    /// Bytes of its record.
    pub len: usize,
}
