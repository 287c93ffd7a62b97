//! The division of a table's bits at a given size.

use super::bits::{FIELD_BITS_MAX, Line, Select, low_bits};
use super::divisor::Divisor;
use crate::limits::{
    BUCKET_BYTES, ENTRY_BYTES_EXPECTED_MIN, GROWTH_DIVISOR, HASH_BITS, OBJECT_BYTES_EXPECTED_MIN, SHARDS,
    SMALL_GROWTH_DIVISOR, SMALL_TABLE_BUCKETS, TAG_AND_BLOCK_BITS, TAG_BITS_MIN, TIGHT_GROWTH_DIVISOR,
};

const BUCKET_BITS: usize = BUCKET_BYTES * 8;

/// The capacity that the tables of a cache are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Block numbers are `0..blocks`.
    pub blocks: u64,
    /// Most entries of one table.
    pub entries: u64,
    /// Bits of the hash that a slot and its bucket keep between them.
    pub hash_bits: u32,
    pub growth: Growth,
}

/// The growth of a full table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// By a quarter while it is small, then by a tenth.
    Quick,
    /// By a thirty-second: entries come no faster than flash takes them.
    Tight,
}

impl Growth {
    /// The number of buckets that a table of `buckets` gets more.
    pub fn of(self, buckets: usize) -> usize {
        let more = match self {
            Self::Quick if buckets < SMALL_TABLE_BUCKETS => buckets / SMALL_GROWTH_DIVISOR,
            Self::Quick => buckets / GROWTH_DIVISOR,
            Self::Tight => buckets / TIGHT_GROWTH_DIVISOR,
        };
        more.max(1)
    }
}

impl Capacity {
    /// The capacity for a file of `file_bytes` bytes with `blocks` blocks and at most `entries` entries, over all
    /// shards.
    pub fn new(file_bytes: u64, blocks: u64, entries: Option<u64>, growth: Growth) -> Self {
        let entry_bytes = match growth {
            Growth::Quick => ENTRY_BYTES_EXPECTED_MIN,
            Growth::Tight => OBJECT_BYTES_EXPECTED_MIN,
        };
        let expected = (file_bytes / entry_bytes).min(entries.unwrap_or(u64::MAX));
        let per_shard = expected.div_ceil(SHARDS as u64);
        let buckets = (per_shard / 16).max(1);
        // Short block numbers leave bits for longer tags, and these make look-alikes, which cost entries, rarer.
        let tag_bits = TAG_BITS_MIN.max(TAG_AND_BLOCK_BITS.saturating_sub(bits_of(blocks)));
        let hash_bits = (buckets.next_power_of_two().ilog2() + tag_bits).min(HASH_BITS - SHARDS.ilog2());
        let entries = entries.map_or(u64::MAX, |n| n.div_ceil(SHARDS as u64));
        Self { blocks, entries, hash_bits, growth }
    }
}

/// A table of `buckets` buckets. The hash of an entry is `bucket * stride + tag`, so that the bucket's number stores
/// its part of the hash for free, and the whole hash is known when the table grows.
///
/// A bucket stores an entry's fingerprint: the tag and 1 bit "in its other bucket". The fingerprint is
/// `group * rests + rest`. A bucket has the number of entries of each group, in unary, then a field for each entry:
/// `rest * blocks + block`, and 1 bit "found lately".
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub buckets: usize,
    pub stride: Divisor,
    /// Fingerprints of a group.
    pub rests: Divisor,
    pub blocks: Divisor,
    /// Rests times blocks of a group: the values of a field without the "found" bit.
    pub group_size: Divisor,
    /// Most entries of a bucket.
    pub slots: usize,
    /// Bits of the unary counts of all groups.
    pub groups_bits: usize,
    pub groups_mask: u64,
    pub field_bits: u32,
    pub field_mask: u64,
    pub select: Select,
}

/// Most groups of a bucket: with more, some would always be empty.
pub(super) const GROUPS_MAX: usize = 32;

/// Most groups and slots of a bucket together: their bits are in one word.
const GROUPS_AND_SLOTS_MAX: usize = 63;

/// Most slots of a bucket: there is a group at least.
pub(super) const SLOTS_MAX: usize = GROUPS_AND_SLOTS_MAX - 1;

fn bits_of(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// (bits of a field, slots) of a bucket with `groups` groups.
fn slots_of(fingerprints: u64, blocks: u64, groups: usize) -> (u32, usize) {
    let field_bits = 1 + bits_of(fingerprints.div_ceil(groups as u64).saturating_mul(blocks) - 1);
    let slots = (BUCKET_BITS - groups) / (field_bits as usize + 1);
    (field_bits, slots.min(GROUPS_AND_SLOTS_MAX - groups))
}

impl Shape {
    /// The shape of `buckets` buckets, or of more if a field were too long otherwise.
    pub fn new(capacity: &Capacity, buckets: usize) -> Self {
        let blocks = capacity.blocks.max(1);
        let hash_and_block_bits = capacity.hash_bits + bits_of(blocks - 1);
        let buckets = buckets.max(1 << hash_and_block_bits.saturating_sub(FIELD_BITS_MAX));
        let stride = (1u64 << capacity.hash_bits).div_ceil(buckets as u64).max(1);
        let fingerprints = 2 * stride;
        let most_groups = fingerprints.min(GROUPS_MAX as u64) as usize;
        let slots = |groups: &usize| slots_of(fingerprints, blocks, *groups).1;
        let groups = (1..=most_groups).max_by_key(slots).expect("there is a fingerprint");
        let (field_bits, slots) = slots_of(fingerprints, blocks, groups);
        assert!(field_bits <= FIELD_BITS_MAX, "a field is one load");
        let rests = fingerprints.div_ceil(groups as u64);
        Self {
            buckets,
            stride: Divisor::new(stride),
            rests: Divisor::new(rests),
            blocks: Divisor::new(blocks),
            group_size: Divisor::new(rests * blocks),
            slots,
            groups_bits: groups + slots,
            groups_mask: low_bits(groups + slots),
            field_bits,
            field_mask: low_bits(field_bits as usize),
            select: Select::of_processor(),
        }
    }

    /// Its buckets, without entries.
    pub fn lines(&self) -> Vec<Line> {
        vec![Line([0; BUCKET_BYTES]); self.buckets]
    }

    /// (home bucket, tag) of a hash: quotient and remainder by the stride.
    #[inline]
    pub fn home(&self, hash: u64) -> (usize, u64) {
        let (bucket, tag) = self.stride.divide(hash);
        (bucket as usize, tag)
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

    /// Bytes of RAM an object, for flash full of objects of 256 bytes, divided into `partitions` partitions.
    fn bytes_an_object(flash_gib: u64, partitions: u64, block_kib: u64) -> f64 {
        let file_bytes = (flash_gib << 30) / partitions;
        let capacity = Capacity::new(file_bytes, file_bytes / (block_kib << 10) - 1, None, Growth::Tight);
        let (objects, fill) = (file_bytes / 256 / SHARDS as u64, 0.95);
        let bytes = |slots: usize| BUCKET_BYTES as f64 / (slots as f64 * fill);
        let buckets = |slots| (objects as f64 * bytes(slots) / BUCKET_BYTES as f64) as usize;
        let shape = (0..4).fold(Shape::new(&capacity, 1), |s, _| Shape::new(&capacity, buckets(s.slots)));
        bytes(shape.slots)
    }

    /// The table in docs/index.md, and its values with blocks of 8 KiB.
    #[test]
    fn what_is_divided_takes_four_bytes_an_object() {
        for (flash_gib, partitions, block_kib, undivided) in [
            (1, 2, 4, 3.96),
            (16, 32, 4, 4.49),
            (64, 32, 16, 4.49),
            (128, 64, 16, 4.81),
            (1, 1, 8, 3.96),
            (16, 16, 8, 4.49),
        ] {
            let bytes = bytes_an_object(flash_gib, partitions, block_kib);
            assert!((bytes - 3.96).abs() < 0.01, "{flash_gib} GiB: {bytes}");
            let bytes = bytes_an_object(flash_gib, 1, block_kib);
            assert!((bytes - undivided).abs() < 0.01, "{flash_gib} GiB undivided: {bytes}");
        }
    }
}
