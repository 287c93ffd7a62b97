//! Blocks of a RAM tier beside its entries: their sizes, and the division to begin with.

use super::shard::BlockShard;
use crate::ghosts::Ghosts;
use crate::limits::{
    BLOCK_SHARDS_MAX, DIVISION_WINDOW_DIVISOR, FIRST_BLOCKS_DIVISOR, GHOST_ENTRY_BYTES, GHOST_WINDOW_DIVISOR,
    LEAST_BLOCKS, LEAST_BLOCKS_DIVISOR, LEAST_ENTRY_CHUNKS, MOST_OF_LEAST_BLOCKS_DIVISOR, SHARDS,
};
use crate::memory::Pool;
use crate::options::MemoryDivision;
use crate::policy::division::{Division, Misses};
use granary_log::Geometry;

/// The first division of a RAM tier's budget, and the bounds of later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub division: Division,
    pub block_size: u64,
    pub blocks_per_slab: u64,
    pub shards: u64,
    /// Whether the division follows the measured misses; otherwise it is fixed.
    pub is_measured: bool,
    /// Bytes that entries allocate at once.
    pub chunk_bytes: u64,
    /// Bytes of leaving entries, and of leaving blocks, that are remembered as ghosts.
    ghost_window: u64,
}

impl Plan {
    /// The plan for a pool in front of flash of shape `geometry`, with at most `entries` entries in a shard. `None`: it
    /// keeps no blocks.
    pub fn new(division: MemoryDivision, pool: &Pool, entries: u64, geometry: &Geometry) -> Option<Self> {
        let chunk_bytes = pool.chunk_bytes(entries) as u64;
        let block_size = geometry.block_size() as u64;
        let blocks_per_slab = (chunk_bytes / block_size).max(1);
        let slab = slab_bytes(blocks_per_slab, block_size);
        let (wanted, is_measured) = match division {
            MemoryDivision::Measured => (pool.bytes() / FIRST_BLOCKS_DIVISOR, true),
            MemoryDivision::Fixed { blocks_percent: 0 } => return None,
            MemoryDivision::Fixed { blocks_percent } => {
                (pool.bytes() / 100 * u64::from(blocks_percent), false)
            }
        };
        let least = (pool.bytes() / LEAST_BLOCKS_DIVISOR).max(LEAST_BLOCKS.div_ceil(blocks_per_slab) * slab);
        // At least two slabs for each shard.
        let shards = (least / slab / 2).clamp(1, BLOCK_SHARDS_MAX);
        let ghost_window =
            if is_measured { (pool.bytes() / GHOST_WINDOW_DIVISOR).min(geometry.file_bytes()) } else { 0 };
        let reads_remembered = pool.bytes() / block_size;
        let mut plan = Self {
            division: Division { least, most: 0, blocks: 0, misses: Misses::default(), reads_remembered },
            block_size,
            blocks_per_slab,
            shards,
            is_measured,
            chunk_bytes,
            ghost_window,
        };
        let entries = LEAST_ENTRY_CHUNKS * SHARDS as u64 * chunk_bytes;
        let most = pool.bytes().checked_sub(entries + plan.ghost_bytes())?;
        if least > most.min(pool.bytes() / MOST_OF_LEAST_BLOCKS_DIVISOR) {
            return None;
        }
        plan.division.most = most;
        plan.division.blocks = wanted.clamp(least, most);
        Some(plan)
    }

    /// Bytes of RAM of a slab.
    pub fn slab_bytes(&self) -> u64 {
        slab_bytes(self.blocks_per_slab, self.block_size)
    }

    /// Reads of flash after which the budget is divided anew.
    pub fn window(&self) -> u64 {
        (self.division.reads_remembered / DIVISION_WINDOW_DIVISOR).max(1)
    }

    /// Ghosts of entries, if the division is measured.
    pub fn entry_ghosts(&self) -> Option<Ghosts> {
        self.is_measured.then(|| Ghosts::new(self.ghost_window, GHOST_ENTRY_BYTES))
    }

    /// Ghosts of blocks, if the division is measured.
    pub fn block_ghosts(&self) -> Option<Ghosts> {
        self.is_measured.then(|| Ghosts::new(self.ghost_window, self.block_size))
    }

    /// Bytes of RAM of both.
    pub fn ghost_bytes(&self) -> u64 {
        let bytes = |object| if self.is_measured { Ghosts::bytes(self.ghost_window, object) } else { 0 };
        bytes(GHOST_ENTRY_BYTES) + bytes(self.block_size)
    }
}

fn slab_bytes(blocks: u64, block_size: u64) -> u64 {
    blocks * (block_size + BlockShard::SLOT_BYTES as u64)
}
