//! How the bits of a table are dealt out at a given size.

use crate::limits::{BUCKET_BYTES, ENTRY_BYTES_EXPECTED_MIN, HASH_BITS, SHARDS, TAG_BITS_MIN};

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
        let hash_bits = (buckets.next_power_of_two().ilog2() + TAG_BITS_MIN).min(HASH_BITS - SHARDS.ilog2());
        Self { places, entries: entries.map_or(u64::MAX, |n| n.div_ceil(SHARDS as u64)), hash_bits }
    }
}

/// A table of `buckets` buckets. The hash of an entry is `bucket * stride + tag`, so that the bucket
/// keeps its part of the hash for nothing and the whole hash is there when the table grows.
///
/// A slot is, from the top: tag, 1 bit "in its other bucket", 1 bit "read lately", place + 1.
/// A slot of zeros is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub buckets: usize,
    pub stride: u64,
    pub place_bits: u32,
    pub slot_bits: u32,
    pub slots: usize,
}

/// A slot is read with one unaligned 64-bit load: 7 bits of that may lie before it.
const SLOT_BITS_MAX: u32 = 57;

impl Shape {
    /// Fewest buckets: with fewer, tags would be too long for a slot.
    pub fn buckets_min(capacity: &Capacity) -> usize {
        let place_bits = u64::BITS - capacity.places.leading_zeros();
        1 << (capacity.hash_bits + 2 + place_bits).saturating_sub(SLOT_BITS_MAX)
    }

    pub fn new(capacity: &Capacity, buckets: usize) -> Self {
        let stride = (1u64 << capacity.hash_bits).div_ceil(buckets as u64).max(1);
        let tag_bits = u64::BITS - (stride - 1).leading_zeros();
        let place_bits = u64::BITS - capacity.places.leading_zeros();
        let slot_bits = tag_bits + 2 + place_bits;
        assert!(slot_bits <= SLOT_BITS_MAX, "{buckets} buckets are too few");
        Self { buckets, stride, place_bits, slot_bits, slots: (BUCKET_BITS / slot_bits) as usize }
    }

    #[inline]
    pub fn slot_mask(&self) -> u64 {
        (1 << self.slot_bits) - 1
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
