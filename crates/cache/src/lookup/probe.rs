//! Where a lookup searches.

use super::search::KeyDigest;

/// A block to look for a key in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// Its number.
    pub block: u64,
    /// The key, by its number in the batch.
    pub key: u32,
    /// The digest of the key's bytes.
    pub digest: KeyDigest,
    /// The entry was found before, as far as the index knows.
    pub recent: bool,
}

/// A block that did not hold the key it was looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FalsePositive {
    pub key: u32,
    pub block: u64,
    /// Segment that the block was read as; 0: the block says nothing for later.
    pub sequence: u64,
}

/// Probes of one segment on the device: `probes[range]`, to be read as segment `sequence`.
pub(crate) struct OnDevice {
    pub range: std::ops::Range<usize>,
    pub sequence: u64,
}

/// What a read brings: the probes of its blocks begin with this one, and their segments in
/// [`on_device`](super::Scratch::on_device) with that.
#[derive(Clone, Copy)]
pub(crate) struct PlannedRead {
    pub probe: usize,
    pub segment: usize,
}

/// An entry over several blocks, the first of which has been seen.
#[derive(Clone, Copy)]
pub(crate) struct LongEntry {
    pub probe: Probe,
    /// Of its segment.
    pub sequence: u64,
    /// Bytes of its record.
    pub len: usize,
}
