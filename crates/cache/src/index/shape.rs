//! How the bits of a table are dealt out at a given size.

use crate::limits::{
    BUCKET_BYTES, ENTRY_BYTES_EXPECTED_MIN, HASH_BITS, SHARDS, TAG_AND_PLACE_BITS, TAG_BITS_MIN,
};

const BUCKET_BITS: u32 = BUCKET_BYTES as u32 * 8;

/// What the tables of a cache are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Places are `0..places`.
    pub places: u64,
    /// Most entries of one table.
    pub entries: u64,
    /// Bits of the hash that a slot and its bucket keep between them.
    pub hash_bits: u32,
}

impl Capacity {
    /// For a file of `file_bytes` with `places` places and at most `entries` entries, over all shards.
    pub fn new(file_bytes: u64, places: u64, entries: Option<u64>) -> Self {
        let expected = (file_bytes / ENTRY_BYTES_EXPECTED_MIN).min(entries.unwrap_or(u64::MAX));
        let per_shard = expected.div_ceil(SHARDS as u64);
        let buckets = (per_shard / 16).max(1);
        // Where places are short, tags may be long: keys that look alike lose each other their entries.
        let tag_bits = TAG_BITS_MIN.max(TAG_AND_PLACE_BITS.saturating_sub(bits_of(places)));
        let hash_bits = (buckets.next_power_of_two().ilog2() + tag_bits).min(HASH_BITS - SHARDS.ilog2());
        Self { places, entries: entries.map_or(u64::MAX, |n| n.div_ceil(SHARDS as u64)), hash_bits }
    }
}

/// A table of `buckets` buckets. The hash of an entry is `bucket * stride + tag`, so that the bucket
/// keeps its part of the hash for nothing and the whole hash is there when the table grows.
///
/// A bucket has a lane for each slot, then a word for each slot. A lane is 0 (empty) or, plus 1: tag, 1
/// bit "in its other bucket". A word is the place and 1 bit "found lately".
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub buckets: usize,
    pub stride: u64,
    pub slots: usize,
    pub lane_bits: u32,
    pub word_bits: u32,
    /// Lanes that one load has.
    pub lanes: usize,
    /// The lowest bit of each of these.
    pub low_bits: u64,
    /// The highest bit of each of these.
    pub top_bits: u64,
}

/// A load is 64 bits, 7 of which may lie before what is wanted.
const LOAD_BITS: u32 = 57;

fn bits_of(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

impl Shape {
    pub fn new(capacity: &Capacity, buckets: usize) -> Self {
        let stride = (1u64 << capacity.hash_bits).div_ceil(buckets as u64).max(1);
        let lane_bits = bits_of(2 * stride);
        let word_bits = bits_of(capacity.places.saturating_sub(1)) + 1;
        assert!(lane_bits.max(word_bits) <= LOAD_BITS, "a slot is two loads");
        let slots = (BUCKET_BITS / (lane_bits + word_bits)) as usize;
        let lanes = (LOAD_BITS / lane_bits) as usize;
        let low_bits = (0..lanes as u32).fold(0, |bits, lane| bits | 1 << (lane * lane_bits));
        let top_bits = low_bits << (lane_bits - 1);
        Self { buckets, stride, slots, lane_bits, word_bits, lanes, low_bits, top_bits }
    }

    pub fn bytes(&self) -> usize {
        // One load reads 8 bytes from where a slot begins.
        self.buckets * BUCKET_BYTES + 8
    }

    /// (home bucket, tag) of a hash.
    pub fn home(&self, hash: u64) -> (usize, u64) {
        ((hash / self.stride) as usize, hash % self.stride)
    }

    /// The other bucket that an entry with this tag may be in; its own inverse.
    pub fn other(&self, bucket: usize, tag: u64) -> usize {
        let mixed = tag.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let sum = ((mixed * self.buckets as u64) >> 32) as usize;
        if sum >= bucket { sum - bucket } else { sum + self.buckets - bucket }
    }
}
