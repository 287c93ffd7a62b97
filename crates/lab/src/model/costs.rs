//! What a cache's objects take beside their bytes, and what it keeps free.

use super::{Budget, Packing};
use granary_cache::limits::{DRAM_FIRST_MEMORY_PARTS, SHARDS, SPARE_MEMORY_PARTS};

/// What objects take beside their bytes, what is kept free, and which objects do not wait in DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// An object in DRAM.
    pub dram_bytes_per_object: u32,
    /// An object on flash.
    pub flash_bytes_per_object: u32,
    /// How objects lie there.
    pub packing: Packing,
    /// DRAM without objects.
    pub dram_bytes_free: u64,
    /// Flash without objects.
    pub flash_bytes_free: u64,
    /// Objects with more bytes are written to flash at once.
    pub large_bytes: u64,
    /// Objects with more bytes get no copy in DRAM while they are on flash.
    pub copy_bytes: u64,
}

/// What whoever uses the cache makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The unit read.
    pub block_bytes: u32,
    /// What is kept with each value.
    pub value_bytes: u32,
}

/// A record's header, for values of 128 bytes to 16 KiB.
const RECORD_HEADER_BYTES: u32 = 8;

/// In DRAM an entry has its hash and flags in front, and a slot in a table: 5 bytes, which is between seven
/// sixteenths and seven eighths full.
const DRAM_ENTRY_BYTES: u32 = 8 + 8;

/// DRAM is chunks, so many of them; two hold nothing or are on their way to that.
const DRAM_CHUNKS: u64 = 32;

/// Of flash one part in so many is emptied ahead of the writer, a segment at least, and at most so many bytes.
const AHEAD_PARTS: u64 = 16;
const AHEAD_BYTES_MAX: u64 = 16 << 20;

/// Objects of more than one such part of DRAM are written to flash at once by Granary's cache.
pub const LARGE_DRAM_PARTS: u64 = DRAM_FIRST_MEMORY_PARTS;

impl Costs {
    /// Nothing but bytes of objects. A segment waits in DRAM to be written.
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

    /// As Granary's cache has them.
    pub fn of_cache(budget: &Budget, Layout { block_bytes, value_bytes }: Layout) -> Self {
        let spare =
            (budget.dram_bytes / SPARE_MEMORY_PARTS).max(budget.segment_bytes.min(budget.dram_bytes / 4));
        let segments = budget.flash_bytes / budget.segment_bytes;
        let ahead = (segments / AHEAD_PARTS).min(AHEAD_BYTES_MAX / budget.segment_bytes).max(1);
        Self {
            dram_bytes_per_object: RECORD_HEADER_BYTES + value_bytes + DRAM_ENTRY_BYTES,
            flash_bytes_per_object: RECORD_HEADER_BYTES + value_bytes,
            packing: Packing::Blocks(block_bytes),
            dram_bytes_free: spare + 2 * budget.dram_bytes / DRAM_CHUNKS,
            // The slot of the segment that waits in DRAM is empty, too.
            flash_bytes_free: (1 + ahead) * budget.segment_bytes,
            large_bytes: budget.dram_bytes / LARGE_DRAM_PARTS,
            // A shard's part, if there is so much room at once.
            copy_bytes: spare.min(budget.dram_bytes / SHARDS as u64),
        }
    }
}
