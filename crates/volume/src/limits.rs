//! Every bound of the volume, in one place.

/// The most logical blocks of a volume: 4 PiB in blocks of 4 KiB.
pub const BLOCKS_MAX: u64 = 1 << 40;

/// The number of logical blocks that share one counter of mapped blocks in a flat map: those of a page
/// of 4 KiB of it.
pub const FLAT_REGION_BLOCKS: u64 = 1024;

/// The number of counters of mapped blocks that share one counter of the level above.
pub const REGIONS_PER_GROUP: u64 = 4096;

const _: () = assert!(FLAT_REGION_BLOCKS.is_power_of_two() && REGIONS_PER_GROUP.is_power_of_two());
