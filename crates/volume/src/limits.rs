//! Every bound of the volume, in one place.

use std::time::Duration;

/// The most logical blocks of a volume: 4 PiB in blocks of 4 KiB.
pub const BLOCKS_MAX: u64 = 1 << 40;

/// The number of logical blocks that share one counter of mapped blocks in a flat map: those of a page
/// of 4 KiB of it.
pub const FLAT_REGION_BLOCKS: u64 = 1024;

/// The number of counters of mapped blocks that share one counter of the level above.
pub const REGIONS_PER_GROUP: u64 = 4096;

/// The smallest number of logical blocks that share one counter of mapped blocks in a hash map. A scan looks
/// up each of them.
pub const HASH_REGION_BLOCKS_MIN: u64 = 64;

/// The most counters of regions of a hash map, which is 128 MiB of them. Maps of more than 2^32 blocks
/// (16 TiB in blocks of 4 KiB) have larger regions.
pub const HASH_REGIONS_MAX: u64 = 1 << 26;

/// The number of logical blocks from which on a hash map has another shard. Copying a shard takes as long as
/// the slowest write.
pub const HASH_BLOCKS_PER_SHARD: u64 = 1 << 16;

/// The most shards of a hash map.
pub const HASH_SHARDS_MAX: u64 = 1 << 12;

/// The bits of the number of slots of the smallest table of a hash map, where blocks are not fewer.
pub const HASH_SLOT_BITS_MIN: u32 = 5;

/// The most slots of a hash map that a key is searched in.
pub const HASH_DISTANCE_MAX: u64 = 63;

/// The bits of a key that a slot of a hash map holds beside those that its number implies.
pub const HASH_REMAINDER_BITS: u32 = 25;

const _: () = assert!(BLOCKS_MAX / HASH_REGIONS_MAX < u16::MAX as u64);
const _: () = assert!(FLAT_REGION_BLOCKS.is_power_of_two() && REGIONS_PER_GROUP.is_power_of_two());

/// Cleaning is urgent while fewer segments than one in so many, or [`CLEAN_URGENT_MAX`], are free beside
/// the reserved ones.
pub const CLEAN_URGENT_DIVISOR: u32 = 256;
/// See [`CLEAN_URGENT_DIVISOR`].
pub const CLEAN_URGENT_MAX: u32 = 16;

/// Cleaning goes on until one segment in so many, or [`CLEAN_BACKGROUND_MAX`], are free beside those below
/// which it is urgent. Free segments hold no data: the more there are, the fuller are the victims.
pub const CLEAN_BACKGROUND_DIVISOR: u32 = 128;
/// See [`CLEAN_BACKGROUND_DIVISOR`].
pub const CLEAN_BACKGROUND_MAX: u32 = 32;

/// The longest delay of a write while cleaning is urgent.
pub const WRITE_DELAY_MAX: Duration = Duration::from_millis(10);

/// The most shards of the cache of checksums.
pub const CHECKSUM_SHARDS_MAX: u64 = 16;

/// The smallest budget of a shard of the cache of checksums, where the whole budget is not smaller.
pub const CHECKSUM_SHARD_BYTES_MIN: u64 = 1 << 20;

/// The bytes that a segment's entry in the cache of checksums takes at most beside the checksums: 32 bytes, in
/// an array that may be half empty, or four times as large as needed while it has few; and its place in a table.
pub const CHECKSUM_ENTRY_BYTES_MAX: u64 = 256;

/// The number of logical blocks of a page of a checkpoint: 4 KiB of places.
pub const CHECKPOINT_PAGE_BLOCKS: u64 = 1024;

/// The bytes of a checkpoint that are written, and read, in one system call.
pub const CHECKPOINT_BUFFER_BYTES: usize = 1 << 20;
