//! The blocks of the RAM tier: copies of blocks that were read from flash lately.
//!
//! A block serves all keys in it, which were put one after the other. Index and checks are those of flash: a block is
//! found by its number, and is valid only if it is of the segment that is there now. The division of the RAM tier's
//! budget between blocks and entries is adapted to the lookups ([`division`](crate::policy::division)).

mod plan;
mod shard;
mod slab;

use crate::ghosts::Ghosts;
use crate::limits::BLOCK_FINDS_PROMOTED;
use crate::memory::Pool;
use crate::memory::shared::Arena;
use crate::policy::Promotion;
use crate::policy::division::{Division, Misses};
use granary_log::sync::Mutex;
use granary_log::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use plan::Plan;
use shard::BlockShard;
pub(crate) use shard::{Block, Saving};
use std::sync::Arc;

/// The blocks in RAM of one partition.
pub(crate) struct Blocks {
    plan: Plan,
    pool: Arc<Pool>,
    arena: Option<Arc<Arena>>,
    /// Lock order: after those of keys' shards.
    shards: Box<[Mutex<BlockShard>]>,
    /// Bytes that blocks may take.
    target: AtomicU64,
    /// Bytes that blocks take.
    used: AtomicU64,
    ghost_bytes: u64,
    ghosts: Option<Ghosts>,
    is_warm: AtomicBool,
    /// Reads, ghosts of blocks and ghosts of entries since the last division.
    misses: [AtomicU64; 3],
    /// The shard that gives back a slab next.
    shard_in_turn: AtomicUsize,
    /// Lock order: after all others.
    division: Mutex<Division>,
}

/// The meaning of a found block for the budget's division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Find {
    /// The count of the read that brought the block, which is to be withdrawn: other keys use the block now, and would
    /// have needed the read anyway. [`Saving::NotEntries`]: nothing is withdrawn.
    pub counted_anew: Saving,
    /// Other blocks were replaced since the last find: it is not the same run of keys.
    pub is_new_visit: bool,
}

impl Blocks {
    pub fn new(plan: Plan, pool: Arc<Pool>, arena: Option<Arc<Arena>>) -> Self {
        let shard = || Mutex::new(BlockShard::new(plan.block_size as usize, plan.blocks_per_slab as usize));
        let this = Self {
            pool,
            arena,
            shards: (0..plan.shards).map(|_| shard()).collect(),
            target: AtomicU64::new(0),
            used: AtomicU64::new(0),
            ghost_bytes: plan.ghost_bytes(),
            ghosts: plan.block_ghosts(),
            is_warm: AtomicBool::new(false),
            misses: Default::default(),
            shard_in_turn: AtomicUsize::new(0),
            division: Mutex::new(plan.division),
            plan,
        };
        this.divide(plan.division.blocks);
        this
    }

    /// Bytes of RAM.
    pub fn bytes_allocated(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + self.ghost_bytes
    }

    /// The number of blocks that fit as long as entries do not need their room.
    pub fn capacity(&self) -> usize {
        (self.most() / self.plan.block_size) as usize
    }

    /// Bytes that blocks may take now: their share, and what entries leave unused of theirs.
    fn most(&self) -> u64 {
        let target = self.target.load(Ordering::Relaxed);
        let unused = self.pool.bytes().saturating_sub(self.pool.used() + self.ghost_bytes);
        if self.plan.is_measured { target.max(unused.saturating_sub(self.plan.chunk_bytes)) } else { target }
    }

    fn shard(&self, block_number: u64) -> &Mutex<BlockShard> {
        let mixed = u128::from(block_number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        &self.shards[((mixed * self.shards.len() as u128) >> 64) as usize]
    }

    /// Passes the block, if it is here and of segment `sequence`, to `visit` under its shard's lock, so that `visit`
    /// has to copy what it needs. Its second argument tells whether an entry found is to be copied to the RAM entries.
    /// `is_ghost`: whether the keys looked for have left the RAM entries lately.
    pub fn find(
        &self,
        block_number: u64,
        sequence: u64,
        is_ghost: impl FnOnce() -> bool,
        visit: impl FnOnce(&[u8], Promotion),
    ) -> Option<Find> {
        let mut shard = self.shard(block_number).lock().expect("no panic under the lock");
        let kept = shard.get(block_number).filter(|kept| kept.sequence == sequence)?;
        *kept.finds = kept.finds.wrapping_add(1);
        // Entries are to get the room that blocks have beyond their share.
        let promotes =
            kept.is_new_visit || *kept.finds % BLOCK_FINDS_PROMOTED == 0 || self.has_more_than_its_part();
        visit(kept.bytes, if promotes { Promotion::Promote } else { Promotion::Leave });
        // A later visit would have had a read of its own.
        let is_settled = kept.is_new_visit || *kept.saving == Saving::NotEntries || !is_ghost();
        let saving = if is_settled { std::mem::take(kept.saving) } else { Saving::NotEntries };
        let counted_anew = if kept.is_new_visit { Saving::NotEntries } else { saving };
        Some(Find { counted_anew, is_new_visit: kept.is_new_visit })
    }

    /// Keeps a block that was read and checked. `make_room` is called without locks: it evicts entries until the blocks
    /// have room, and returns whether they have.
    pub fn keep(&self, block: Block<'_>, make_room: impl FnOnce() -> bool) {
        let (slab, most) = (self.plan.slab_bytes(), self.most());
        // All shards have the same share.
        let slabs = (most / slab / self.plan.shards).max(1) as usize;
        let mut shard = self.shard(block.block_number).lock().expect("no panic under the lock");
        if !shard.has_free() && shard.slabs() < slabs && self.used.load(Ordering::Relaxed) + slab <= most {
            drop(shard);
            // Counted before it is allocated, so that other threads do not use the same room.
            let before = self.used.fetch_add(slab, Ordering::Relaxed);
            let grows = before + slab <= most && make_room();
            shard = self.shard(block.block_number).lock().expect("no panic under the lock");
            if grows {
                shard.grow(self.arena.as_ref());
            } else {
                self.used.fetch_sub(slab, Ordering::Relaxed);
            }
        }
        let kept = shard.insert(block, |block_number| self.note(block_number));
        drop(shard);
        if !kept {
            self.note(block.block_number);
        }
    }

    fn has_more_than_its_part(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.target.load(Ordering::Relaxed)
    }

    /// Makes blocks give back what they have beyond their share, for an entry of `bytes` bytes (a chunk if it is
    /// shorter) that is about to take room; 0: it has taken it.
    #[inline]
    pub fn give_way(&self, bytes: u64) {
        let wanted = if bytes > 0 { bytes.max(self.plan.chunk_bytes) } else { 0 };
        while self.pool.used() + self.bytes_allocated() + wanted > self.pool.bytes()
            && self.has_more_than_its_part()
        {
            if !self.shrink_one() {
                break;
            }
        }
    }

    /// Remembers a block that was read and not kept as a ghost.
    pub fn note(&self, block_number: u64) {
        if let Some(ghosts) = &self.ghosts {
            ghosts.note(block_number, self.plan.block_size + BlockShard::SLOT_BYTES as u64);
        }
    }

    /// Whether the block left RAM lately, as far as ghosts tell; forgets the ghost.
    pub fn returns(&self, block_number: u64) -> bool {
        self.ghosts.as_ref().is_some_and(|ghosts| ghosts.returns(block_number))
    }

    /// Counts misses, and divides the budget anew after enough of them. Until entries have filled their part once, none of
    /// them can have left it, and blocks use the rest of it anyway.
    pub fn count(&self, misses: Misses) {
        let Misses { reads, ghost_blocks, ghost_entries } = misses;
        if !self.plan.is_measured || misses == Misses::default() || !self.is_warm() {
            return;
        }
        let [all, blocks, entries] = &self.misses;
        blocks.fetch_add(ghost_blocks, Ordering::Relaxed);
        // A negative count wraps.
        entries.fetch_add(ghost_entries as u64, Ordering::Relaxed);
        let window = self.plan.window();
        if all.fetch_add(reads, Ordering::Relaxed) + reads < window {
            return;
        }
        let Ok(mut division) = self.division.try_lock() else { return };
        let [reads, ghost_blocks, ghost_entries] =
            [all, blocks, entries].map(|count| count.swap(0, Ordering::Relaxed));
        *division = division.after(Misses { reads, ghost_blocks, ghost_entries: ghost_entries as i64 });
        self.divide(division.blocks);
    }

    /// Whether entries have filled their part since the cache was opened or cleared.
    fn is_warm(&self) -> bool {
        if !self.is_warm.load(Ordering::Relaxed) && !self.pool.has_room() {
            self.is_warm.store(true, Ordering::Relaxed);
        }
        self.is_warm.load(Ordering::Relaxed)
    }

    /// Gives blocks the `blocks` bytes of the division, and entries the rest. Each gives up its excess when the other
    /// needs room.
    fn divide(&self, blocks: u64) {
        self.target.store(blocks, Ordering::Relaxed);
        self.pool.set_entry_bytes(self.pool.bytes() - self.ghost_bytes - blocks);
    }

    /// Frees a slab of the next shard that has one; returns whether any had.
    fn shrink_one(&self) -> bool {
        for _ in &self.shards {
            let turn = self.shard_in_turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let mut shard = self.shards[turn].lock().expect("no panic under the lock");
            if shard.slabs() > 0 {
                shard.shrink(|block_number| self.note(block_number));
                self.used.fetch_sub(self.plan.slab_bytes(), Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Forgets all blocks.
    pub fn clear(&self) {
        while self.shrink_one() {}
        self.is_warm.store(false, Ordering::Relaxed);
    }

    /// Derives everything anew and compares.
    pub fn validate(&self) {
        for shard in &self.shards {
            shard.lock().expect("no panic under the lock").validate();
        }
    }
}
