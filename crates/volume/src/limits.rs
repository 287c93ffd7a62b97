//! Every bound of the volume, in one place.

use std::time::Duration;

/// The most logical blocks of a map: 4 PiB in blocks of 4 KiB. A volume has fewer, for its log has at most as many
/// blocks as there are places ([`Config::geometry`](crate::Config::geometry)).
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

/// The number of logical blocks of a shard of a hash map. The slowest write takes as long as copying a shard.
pub const HASH_BLOCKS_PER_SHARD: u64 = 1 << 16;

/// The most shards of a hash map.
pub const HASH_SHARDS_MAX: u64 = 1 << 12;

/// log2 of the slots of the smallest table of a hash map, unless there are fewer blocks.
pub const HASH_SLOT_BITS_MIN: u32 = 5;

/// The most slots of a hash map that are searched for a key.
pub const HASH_DISTANCE_MAX: u64 = 63;

/// The bits of a key that a slot of a hash map holds beside those that its number implies.
pub const HASH_REMAINDER_BITS: u32 = 25;

const _: () = assert!(BLOCKS_MAX / HASH_REGIONS_MAX < u16::MAX as u64);
const _: () = assert!(FLAT_REGION_BLOCKS.is_power_of_two() && REGIONS_PER_GROUP.is_power_of_two());

/// The bytes at the beginning of a raw device that are checked for data: file systems, partition tables, volume
/// managers and volumes all have some there.
pub const DEVICE_HEAD_BYTES: usize = 1 << 20;

/// The unit in which the head of a raw device is read and written.
pub const DEVICE_UNIT: usize = 4096;

/// The sizes of a logical block.
pub const BLOCK_SIZES: [u64; 4] = [512, 4096, 8192, 16384];

/// The smallest segment that [`Config::new`](crate::Config::new) chooses.
pub const SEGMENT_BYTES_MIN: u64 = 256 << 10;

/// The largest segment that [`Config::new`](crate::Config::new) chooses.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 20;

/// The largest live share of the log, when the volume is full: cleaning needs the rest.
pub const UTILISATION_PERCENT_MAX: u64 = 90;

/// Segments that only cleaning may take: the blocks that it moves need less than one at a time, and emptied segments
/// wait for a sync.
pub const RESERVED_SEGMENTS: u64 = 4;

/// Reserved segments that trims must leave to cleaning.
pub const TRIM_SEGMENTS_KEPT: u64 = 2;
const _: () = assert!(0 < TRIM_SEGMENTS_KEPT && TRIM_SEGMENTS_KEPT < RESERVED_SEGMENTS);

/// Segments beyond those that a full volume needs: for segments being filled, written and emptied.
pub const SEGMENTS_SPARE: u64 = 8;

/// Blocks that are written, or moved while the reserve is whole, under one hold of the log's writer lock.
pub const BLOCKS_LOCKED_MAX: usize = 32;

/// Blocks that are made zero under one hold of the log's writer lock.
pub const ZEROES_LOCKED_MAX: u64 = 4096;

/// The most slots with a damaged or missing header that a start reads completely.
pub const DAMAGED_SEARCHED_MAX: u64 = 64;

/// The longest wait of a write for cleaning and the device before it fails for want of space. Time spent writing a
/// checkpoint does not count.
pub const ROOM_WAIT_MAX: Duration = Duration::from_secs(60);

/// The longest wait of a write for room while no checkpoint can be written: slots of segments that no checkpoint covers
/// are not reused.
pub const ROOM_WAIT_WITHOUT_MAP_MAX: Duration = Duration::from_secs(5);

/// The interval at which a waiting write checks for errors.
pub const ROOM_LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The pause after a checkpoint failed, doubled each time, at most [`RETRY_MAX`].
pub const RETRY: Duration = Duration::from_millis(100);
/// The longest of the pauses that begin with [`RETRY`].
pub const RETRY_MAX: Duration = Duration::from_secs(1);

/// The most times that a read looks up a block again that was moved meanwhile.
pub const READ_TRIES_MAX: usize = 1000;

/// The least time between two log lines about damaged blocks that were read.
pub const DAMAGE_TOLD: Duration = Duration::from_secs(1);

/// Default bytes of cached checksums: those of 64 GiB in blocks of 4 KiB.
pub const CHECKSUM_BYTES: u64 = 64 << 20;

/// The approximate bytes written between two syncs if no client flushes: the cleaner checks every [`CLEANER_SLEEP`]. A
/// recovery reads unsynced blocks.
pub const UNSYNCED_BYTES_MAX: u64 = 64 << 20;

/// Between two checkpoints 1/`CHECKPOINT_SEGMENTS_DIVISOR` of the log's segments are written.
pub const CHECKPOINT_SEGMENTS_DIVISOR: u64 = 8;

/// The sleep of the cleaner when there is nothing to do.
pub const CLEANER_SLEEP: Duration = Duration::from_millis(200);

/// The time for which the cleaner skips a segment with an unreadable block: a fault may pass. Doubled each time, at
/// most [`SET_ASIDE_MAX`].
pub const SET_ASIDE: Duration = Duration::from_millis(100);
/// The longest time for which the cleaner skips a segment ([`SET_ASIDE`]).
pub const SET_ASIDE_MAX: Duration = Duration::from_secs(8);

/// Cleaning goes on until 1/`CLEAN_DIVISOR` of the segments are free beside the reserved ones, at least [`CLEAN_MIN`]
/// and at most [`CLEAN_MAX`]. Free segments hold no data: the more there are, the fuller are the victims; the fewer
/// there are, the sooner do writers wait for cleaning.
pub const CLEAN_DIVISOR: u32 = 85;
/// The fewest segments that [`CLEAN_DIVISOR`] stands for.
pub const CLEAN_MIN: u32 = 2;
/// The most segments that [`CLEAN_DIVISOR`] stands for.
pub const CLEAN_MAX: u32 = 48;

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
