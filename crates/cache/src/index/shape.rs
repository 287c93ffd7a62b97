//! How the bits of a table are dealt out at a given size.

use crate::limits::{
    BUCKET_BYTES, ENTRY_BYTES_EXPECTED_MIN, GROWTH_DIVISOR, HASH_BITS, OBJECT_BYTES_EXPECTED_MIN, SHARDS,
    TAG_AND_PLACE_BITS, TAG_BITS_MIN, TIGHT_GROWTH_DIVISOR,
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
    pub growth: Growth,
}

/// How a table grows that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// By a tenth.
    Quick,
    /// By a thirty-second: entries come no faster than flash takes them.
    Tight,
}

impl Growth {
    /// One part in so many.
    pub fn divisor(self) -> usize {
        match self {
            Self::Quick => GROWTH_DIVISOR,
            Self::Tight => TIGHT_GROWTH_DIVISOR,
        }
    }
}

impl Capacity {
    /// For a file of `file_bytes` with `places` places and at most `entries` entries, over all shards.
    pub fn new(file_bytes: u64, places: u64, entries: Option<u64>, growth: Growth) -> Self {
        let entry_bytes = match growth {
            Growth::Quick => ENTRY_BYTES_EXPECTED_MIN,
            Growth::Tight => OBJECT_BYTES_EXPECTED_MIN,
        };
        let expected = (file_bytes / entry_bytes).min(entries.unwrap_or(u64::MAX));
        let per_shard = expected.div_ceil(SHARDS as u64);
        let buckets = (per_shard / 16).max(1);
        // Where places are short, tags may be long: keys that look alike lose each other their entries.
        let tag_bits = TAG_BITS_MIN.max(TAG_AND_PLACE_BITS.saturating_sub(bits_of(places)));
        let hash_bits = (buckets.next_power_of_two().ilog2() + tag_bits).min(HASH_BITS - SHARDS.ilog2());
        let entries = entries.map_or(u64::MAX, |n| n.div_ceil(SHARDS as u64));
        Self { places, entries, hash_bits, growth }
    }
}

/// A table of `buckets` buckets. The hash of an entry is `bucket * stride + tag`, so that the bucket
/// keeps its part of the hash for nothing and the whole hash is there when the table grows.
///
/// What a slot keeps of the hash is its print: the tag and 1 bit "in its other bucket". A bucket has a
/// lane for each slot, a byte, then the fields of each slot. A lane is 0 (empty) or 1 + print mod 255; the
/// fields are 1 bit "found lately", the place, and the rest of the fingerprint, fingerprint / 255.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub buckets: usize,
    pub stride: u64,
    /// 2^64 / stride, rounded down.
    reciprocal: u64,
    pub slots: usize,
    /// Loads of 8 bytes that have all lanes.
    pub loads: usize,
    pub place_bits: u32,
    pub rest_bits: u32,
}

/// A load is 64 bits, 7 of which may lie before what is wanted.
const LOAD_BITS: u32 = 57;

/// Lanes that are not 0.
pub(super) const LANE_VALUES: u64 = 255;

fn bits_of(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

impl Shape {
    pub fn new(capacity: &Capacity, buckets: usize) -> Self {
        let stride = (1u64 << capacity.hash_bits).div_ceil(buckets as u64).max(1);
        let place_bits = bits_of(capacity.places.saturating_sub(1));
        let rest_bits = bits_of((2 * stride - 1) / LANE_VALUES);
        assert!(rest_bits.max(place_bits + 1) <= LOAD_BITS, "a field is one load");
        let slots = (BUCKET_BITS / (u8::BITS + 1 + place_bits + rest_bits)) as usize;
        let reciprocal = u64::try_from((1u128 << 64) / u128::from(stride)).unwrap_or(u64::MAX);
        Self { buckets, stride, reciprocal, slots, loads: slots.div_ceil(8), place_bits, rest_bits }
    }

    pub fn bytes(&self) -> usize {
        // One load reads 8 bytes from where a slot begins.
        self.buckets * BUCKET_BYTES + 8
    }

    /// (home bucket, tag) of a hash: quotient and remainder by the stride, without a division.
    #[inline]
    pub fn home(&self, hash: u64) -> (usize, u64) {
        // One too little at most, as the reciprocal is.
        let quotient = ((u128::from(hash) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = hash - quotient * self.stride;
        if rest < self.stride {
            (quotient as usize, rest)
        } else {
            (quotient as usize + 1, rest - self.stride)
        }
    }

    /// The other bucket that an entry with this tag may be in; its own inverse.
    #[inline]
    pub fn other(&self, bucket: usize, tag: u64) -> usize {
        let mixed = tag.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let sum = ((mixed * self.buckets as u64) >> 32) as usize;
        if sum >= bucket { sum - bucket } else { sum + self.buckets - bucket }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_quotient_and_remainder() {
        for hash_bits in [10, 24, 41] {
            for buckets in [1, 2, 3, 7, 1000, 1021, 1024, 65_537, 1 << 22] {
                let shape = Shape::new(
                    &Capacity { places: 100, entries: u64::MAX, hash_bits, growth: Growth::Quick },
                    buckets,
                );
                let last = (1 << hash_bits) - 1;
                let around = |n: u64| [n.saturating_sub(1), n, n + 1];
                let hashes = (0..2000).map(|i| i * (last / 2000)).flat_map(around);
                let edges = (0..2000).map(|i| i * shape.stride).flat_map(around);
                for hash in hashes.chain(edges).chain([last]).filter(|hash| *hash <= last) {
                    assert_eq!(shape.home(hash), ((hash / shape.stride) as usize, hash % shape.stride));
                }
            }
        }
    }

    /// RAM of an object on flash that is full of such of 256 bytes, in so many partitions of so many.
    fn bytes_an_object(flash_gib: u64, partitions: u64, block_kib: u64) -> f64 {
        let file_bytes = (flash_gib << 30) / partitions;
        let capacity = Capacity::new(file_bytes, file_bytes / (block_kib << 10) - 1, None, Growth::Tight);
        let (objects, fill) = (file_bytes / 256 / SHARDS as u64, 0.95);
        let bytes = |slots: usize| BUCKET_BYTES as f64 / (slots as f64 * fill);
        let buckets = |slots| (objects as f64 * bytes(slots) / BUCKET_BYTES as f64) as usize;
        let shape = (0..4).fold(Shape::new(&capacity, 1), |s, _| Shape::new(&capacity, buckets(s.slots)));
        bytes(shape.slots)
    }

    /// The table in docs/index.md.
    #[test]
    fn what_is_divided_takes_four_bytes_an_object() {
        for (flash_gib, partitions, block_kib, undivided) in
            [(1, 1, 8, 3.96), (16, 16, 8, 4.49), (64, 32, 16, 4.49), (128, 64, 16, 4.81)]
        {
            let bytes = bytes_an_object(flash_gib, partitions, block_kib);
            assert!((bytes - 3.96).abs() < 0.01, "{flash_gib} GiB: {bytes}");
            let bytes = bytes_an_object(flash_gib, 1, block_kib);
            assert!((bytes - undivided).abs() < 0.01, "{flash_gib} GiB undivided: {bytes}");
        }
    }
}
