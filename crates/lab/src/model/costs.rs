//! Bytes that a cache's objects take beside their own, and the space it keeps free.

use super::{Budget, Packing};
use granary_cache::limits::{DRAM_FIRST_MEMORY_DIVISOR, SHARDS, SPARE_MEMORY_DIVISOR};

/// Overhead of objects, space kept free, and which objects skip DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Overhead of an object in DRAM.
    pub dram_bytes_per_object: u32,
    /// Overhead of an object on flash.
    pub flash_bytes_per_object: u32,
    /// How objects are packed on flash.
    pub packing: Packing,
    /// Bytes of DRAM kept free.
    pub dram_bytes_free: u64,
    /// Bytes of flash kept free.
    pub flash_bytes_free: u64,
    /// Objects with more bytes are written to flash at once.
    pub large_bytes: u64,
    /// Objects with more bytes get no copy in DRAM while they are on flash.
    pub copy_bytes: u64,
}

/// The cache's layout, as its user configures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The unit of reads.
    pub block_bytes: u32,
    /// Bytes stored with each value.
    pub value_bytes: u32,
}

/// A record's header, for values of 128 bytes to 16 KiB.
const RECORD_HEADER_BYTES: u32 = 8;

/// In DRAM an entry has its hash and flags before it, and a slot of 5 bytes in a table that is between seven sixteenths
/// and seven eighths full.
const DRAM_ENTRY_BYTES: u32 = 8 + 8;

/// Number of chunks of DRAM; two are empty or about to be.
const DRAM_CHUNKS: u64 = 32;

/// 1/AHEAD_DIVISOR of flash is emptied ahead of the writer: at least a segment, at most AHEAD_BYTES_MAX.
const AHEAD_DIVISOR: u64 = 16;
const AHEAD_BYTES_MAX: u64 = 16 << 20;

/// Granary's cache writes objects larger than 1/LARGE_DRAM_DIVISOR of DRAM to flash at once.
pub const LARGE_DRAM_DIVISOR: u64 = DRAM_FIRST_MEMORY_DIVISOR;

impl Costs {
    /// No overhead. One segment waits in DRAM to be written.
    pub fn none(budget: &Budget) -> Self {
        Self {
            dram_bytes_per_object: 0,
            flash_bytes_per_object: 0,
            packing: Packing::Tight,
            dram_bytes_free: budget.segment_bytes,
            flash_bytes_free: 0,
            large_bytes: u64::MAX,
            copy_bytes: budget.dram_bytes.saturating_sub(budget.segment_bytes),
        }
    }

    /// The costs of Granary's cache.
    pub fn of_cache(budget: &Budget, Layout { block_bytes, value_bytes }: Layout) -> Self {
        let spare =
            (budget.dram_bytes / SPARE_MEMORY_DIVISOR).max(budget.segment_bytes.min(budget.dram_bytes / 4));
        let segments = budget.flash_bytes / budget.segment_bytes;
        let ahead = (segments / AHEAD_DIVISOR).min(AHEAD_BYTES_MAX / budget.segment_bytes).max(1);
        Self {
            dram_bytes_per_object: RECORD_HEADER_BYTES + value_bytes + DRAM_ENTRY_BYTES,
            flash_bytes_per_object: RECORD_HEADER_BYTES + value_bytes,
            packing: Packing::Blocks(block_bytes),
            dram_bytes_free: spare + 2 * budget.dram_bytes / DRAM_CHUNKS,
            // The slot of the segment that waits in DRAM is empty, too.
            flash_bytes_free: (1 + ahead) * budget.segment_bytes,
            large_bytes: budget.dram_bytes / LARGE_DRAM_DIVISOR,
            // A shard's share, if that much is free at once.
            copy_bytes: spare.min(budget.dram_bytes / SHARDS as u64),
        }
    }
}
