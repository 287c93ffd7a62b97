//! The RAM that the shards of a partition share, and what was put into it lately.

use super::shared::Layout;
use crate::ghosts::Ghosts;
use crate::limits::{
    FRESH_PARTS, MEMORY_CHUNK_BYTES_MAX, MEMORY_CHUNK_BYTES_MIN, SHARDS, SHARED_MEMORY_ENTRY_PARTS,
    SHARED_MEMORY_PAGE_BYTES,
};
use granary_log::sync::sync::atomic::{AtomicU64, Ordering};

/// Chunks of a shard, so that their numbers differ, with room for one that is added before another goes.
pub(super) const CHUNKS_MAX: usize = (1 << 16) - 2;
const _: () = assert!(MEMORY_CHUNK_BYTES_MAX <= 1 << 16, "an offset has 16 bits");

/// Chunks that a shard's share is enough for, of the smallest size: a shard may take more than its share.
const CHUNKS_OF_SHARE: u64 = CHUNKS_MAX as u64 / 2;

/// An entry with a number for its key and a short value has about so many bytes.
pub(super) const SHORT_ENTRY_BYTES: usize = 36;

/// One part of what fits the pool, as [`Pool::put`] counts it.
const PART: u64 = 1 << 32;

/// A shard tells the pool what was put into it when it is so much. What all keep back is a small part of a part:
/// else an entry would seem to be put long ago as soon as other shards tell.
const TOLD_AT_ONCE: u64 = PART / (8 * SHARDS as u64);

/// The part of the pool's turnover in which an entry was put, from 1 to [`STAMPS`]; 0: long ago.
pub(super) type Stamp = u8;
const STAMPS: u64 = 15;
const _: () = assert!(FRESH_PARTS < STAMPS, "the hand comes to an entry before its stamp means another part");

/// The RAM of a partition's RAM tier. Its shards take what they need of it; who puts sees to it that they do not
/// take more than there is.
pub(crate) struct Pool {
    bytes: u64,
    /// What entries may take: all, or what the tier's blocks leave them.
    entry_bytes: AtomicU64,
    /// Entries that left RAM lately, if anybody wants to know.
    ghosts: Option<Ghosts>,
    shards: u64,
    used: AtomicU64,
    /// The bytes put since the cache was opened, as [`PART`]s of the pool's turnover.
    put: AtomicU64,
    /// What a byte that is put adds to it, and an entry at the least.
    per_byte: f64,
    per_entry: f64,
}

impl Pool {
    /// For the shards of a partition. `entries`: the most of them.
    pub fn new(bytes: u64, entries: Option<u64>) -> Self {
        Self::of(bytes, entries, SHARDS as u64)
    }

    /// For so many shards, as far as these can use it.
    pub(super) fn of(bytes: u64, entries: Option<u64>, shards: u64) -> Self {
        let bytes = bytes.min(shards * CHUNKS_OF_SHARE * MEMORY_CHUNK_BYTES_MAX as u64);
        let whole = (FRESH_PARTS * PART) as f64;
        Self {
            bytes,
            entry_bytes: AtomicU64::new(bytes),
            ghosts: None,
            shards,
            used: AtomicU64::new(0),
            put: AtomicU64::new(0),
            per_byte: whole / bytes.max(1) as f64,
            per_entry: entries.map_or(0.0, |entries| whole / entries.max(1) as f64),
        }
    }

    /// The same, noting which entries leave.
    pub fn with_ghosts(self, ghosts: Ghosts) -> Self {
        Self { ghosts: Some(ghosts), ..self }
    }

    /// Entries that left RAM lately.
    #[inline]
    pub fn ghosts(&self) -> Option<&Ghosts> {
        self.ghosts.as_ref()
    }

    /// The most that all shards and the tier's blocks may take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Entries may take so many bytes from now on.
    pub fn set_entry_bytes(&self, bytes: u64) {
        self.entry_bytes.store(bytes.min(self.bytes), Ordering::Relaxed);
    }

    /// What they take.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What a shard takes if all take the same of what is for entries.
    #[inline]
    pub fn share(&self) -> u64 {
        self.entry_bytes.load(Ordering::Relaxed) / self.shards
    }

    /// The same if there are no blocks.
    fn whole_share(&self) -> u64 {
        self.bytes / self.shards
    }

    /// The longest entry that is kept where it is nowhere else.
    pub fn entry_bytes_max(&self) -> u64 {
        self.bytes / SHARED_MEMORY_ENTRY_PARTS
    }

    /// A small part of a share, of short entries if their number is what bounds them; not so small that there were
    /// more chunks than numbers for them.
    pub fn chunk_bytes(&self, entries: u64) -> usize {
        let bytes = self.whole_share().min(entries.saturating_mul(SHORT_ENTRY_BYTES as u64));
        let least = self.whole_share().div_ceil(CHUNKS_OF_SHARE) as usize;
        let chunk = ((bytes / 32) as usize).max(least).clamp(MEMORY_CHUNK_BYTES_MIN, MEMORY_CHUNK_BYTES_MAX);
        let page = SHARED_MEMORY_PAGE_BYTES as usize;
        chunk.next_multiple_of(if chunk < page { MEMORY_CHUNK_BYTES_MIN / 8 } else { page })
    }

    /// A file for shards of so many entries at most: chunks are made of its units.
    pub fn layout(&self, entries: u64) -> Layout {
        Layout::new(self.bytes, (self.chunk_bytes(entries) as u64).min(SHARED_MEMORY_PAGE_BYTES))
    }

    /// A shard takes `now` bytes instead of `before`.
    pub(super) fn take(&self, before: usize, now: usize) {
        match now.checked_sub(before) {
            Some(0) => {}
            Some(more) => _ = self.used.fetch_add(more as u64, Ordering::Relaxed),
            None => _ = self.used.fetch_sub((before - now) as u64, Ordering::Relaxed),
        }
    }
}

/// What a shard has put that the pool was not told of.
#[derive(Default)]
pub(super) struct Untold(u64);

impl Untold {
    /// An entry of so many bytes is put.
    pub fn put(&mut self, pool: &Pool, len: usize) -> Stamp {
        self.0 += (len as f64 * pool.per_byte).max(pool.per_entry) as u64;
        if self.0 >= TOLD_AT_ONCE {
            pool.put.fetch_add(self.0, Ordering::Relaxed);
            self.0 = 0;
        }
        self.now(pool)
    }

    fn now(&self, pool: &Pool) -> Stamp {
        1 + (self.part(pool) % STAMPS) as Stamp
    }

    /// Parts of the turnover that have gone by.
    pub fn part(&self, pool: &Pool) -> u64 {
        (pool.put.load(Ordering::Relaxed) + self.0) / PART
    }

    /// Whether an entry was put so lately that it does not leave however few others were not read: in this part of
    /// the turnover, or the one before.
    pub fn is_fresh(&self, pool: &Pool, stamp: Stamp) -> bool {
        let age = (u64::from(self.now(pool)) + STAMPS - u64::from(stamp)) % STAMPS;
        stamp != 0 && age <= 1
    }
}
