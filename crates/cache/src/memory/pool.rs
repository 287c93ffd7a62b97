//! The RAM that the shards of a partition share, and its turnover.

use super::shared::Layout;
use crate::ghosts::Ghosts;
use crate::limits::{
    FRESH_DIVISOR, MEMORY_CHUNK_BYTES_MAX, MEMORY_CHUNK_BYTES_MIN, SHARDS, SHARED_MEMORY_ENTRY_DIVISOR,
    SHARED_MEMORY_PAGE_BYTES,
};
use granary_log::sync::atomic::{AtomicU64, Ordering};

/// Most chunks of a shard: their 16-bit numbers differ, with room for one that is added before another is removed.
pub(super) const CHUNKS_MAX: usize = (1 << 16) - 2;
const _: () = assert!(MEMORY_CHUNK_BYTES_MAX <= 1 << 16, "an offset has 16 bits");

/// Most chunks, of the smallest size, in a shard's share: a shard may take more than its share.
const CHUNKS_OF_SHARE: u64 = CHUNKS_MAX as u64 / 2;

/// Most chunks that a full shard lacks of its share: entries leave by the chunk.
pub(super) const CHUNKS_OF_MARGIN: u64 = 2;

/// A share that is used up has at least this many chunks, but for very small ones.
const CHUNKS_OF_FULL_SHARE: u64 = 32;

/// Approximate bytes of an entry with a number as its key and a short value.
pub(super) const SHORT_ENTRY_BYTES: usize = 36;

/// One part of what fits the pool, as [`Pool::put`] counts it.
const PART: u64 = 1 << 32;

/// A shard reports its puts to the pool when they reach this. All unreported puts together are a small fraction of a
/// part: otherwise an entry would seem old as soon as other shards report.
const REPORT_AT: u64 = PART / (8 * SHARDS as u64);

/// The part of the pool's turnover in which an entry was put, from 1 to [`STAMPS`]; 0: long ago.
pub(super) type Stamp = u8;
const STAMPS: u64 = 15;
const _: () =
    assert!(FRESH_DIVISOR < STAMPS, "the hand comes to an entry before its stamp means another part");

/// The RAM of a partition's RAM tier. Shards take what they need; the putting threads enforce the total.
pub(crate) struct Pool {
    bytes: u64,
    /// Bytes that entries may take: all, or what the tier's blocks leave.
    entry_bytes: AtomicU64,
    /// Ghosts of entries that left RAM lately, if they are measured.
    ghosts: Option<Ghosts>,
    shards: u64,
    used: AtomicU64,
    /// The bytes put since the cache was opened, as [`PART`]s of the pool's turnover.
    put: AtomicU64,
    /// The amount that a put byte adds to `put`, and the least that a put entry adds.
    per_byte: f64,
    per_entry: f64,
}

impl Pool {
    /// A pool for the shards of a partition. `entries`: the bound on their entries.
    pub fn new(bytes: u64, entries: Option<u64>) -> Self {
        Self::of(bytes, entries, SHARDS as u64)
    }

    /// A pool for `shards` shards, of at most the bytes that these can use.
    pub(super) fn of(bytes: u64, entries: Option<u64>, shards: u64) -> Self {
        let bytes = bytes.min(shards * CHUNKS_OF_SHARE * MEMORY_CHUNK_BYTES_MAX as u64);
        let whole = (FRESH_DIVISOR * PART) as f64;
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

    /// Returns the pool with ghosts: it remembers entries that leave.
    pub fn with_ghosts(self, ghosts: Ghosts) -> Self {
        Self { ghosts: Some(ghosts), ..self }
    }

    /// The ghosts of entries that left RAM lately.
    #[inline]
    pub fn ghosts(&self) -> Option<&Ghosts> {
        self.ghosts.as_ref()
    }

    /// The most that all shards and the tier's blocks may take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the bytes that entries may take from now on.
    pub fn set_entry_bytes(&self, bytes: u64) {
        self.entry_bytes.store(bytes.min(self.bytes), Ordering::Relaxed);
    }

    /// Bytes that the shards take.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// An equal share, for one shard, of the bytes for entries.
    #[inline]
    pub fn share(&self) -> u64 {
        self.entry_bytes.load(Ordering::Relaxed) / self.shards
    }

    /// Whether some shard has room: together they take less than full ones do.
    pub fn has_room(&self) -> bool {
        let chunks = self.shards * CHUNKS_OF_MARGIN * self.chunk_bytes(u64::MAX) as u64;
        self.used() + chunks < self.entry_bytes.load(Ordering::Relaxed)
    }

    /// The share if there are no blocks.
    fn whole_share(&self) -> u64 {
        self.bytes / self.shards
    }

    /// The longest entry that is kept in RAM only.
    pub fn entry_bytes_max(&self) -> u64 {
        self.bytes / SHARED_MEMORY_ENTRY_DIVISOR
    }

    /// Bytes of a chunk: a small part of a share, or of the bytes of `entries` short entries if that is less, but not
    /// so small that chunk numbers run out.
    pub fn chunk_bytes(&self, entries: u64) -> usize {
        let bytes = self.whole_share().min(entries.saturating_mul(SHORT_ENTRY_BYTES as u64));
        let least = self.whole_share().div_ceil(CHUNKS_OF_SHARE) as usize;
        let chunk = ((bytes / CHUNKS_OF_FULL_SHARE) as usize)
            .max(least)
            .clamp(MEMORY_CHUNK_BYTES_MIN, MEMORY_CHUNK_BYTES_MAX);
        let page = SHARED_MEMORY_PAGE_BYTES as usize;
        chunk.next_multiple_of(if chunk < page { MEMORY_CHUNK_BYTES_MIN / 8 } else { page })
    }

    /// The layout of a file for shards of at most `entries` entries: chunks are made of its units.
    pub fn layout(&self, entries: u64) -> Layout {
        Layout::new(self.bytes, (self.chunk_bytes(entries) as u64).min(SHARED_MEMORY_PAGE_BYTES))
    }

    /// Notes that a shard takes `now` bytes instead of `before`.
    pub(super) fn take(&self, before: usize, now: usize) {
        match now.checked_sub(before) {
            Some(0) => {}
            Some(more) => _ = self.used.fetch_add(more as u64, Ordering::Relaxed),
            None => _ = self.used.fetch_sub((before - now) as u64, Ordering::Relaxed),
        }
    }
}

/// Puts of a shard that were not reported to the pool.
#[derive(Default)]
pub(super) struct UnreportedPuts(u64);

impl UnreportedPuts {
    /// Notes that an entry of `len` bytes is put; returns its stamp.
    pub fn put(&mut self, pool: &Pool, len: usize) -> Stamp {
        self.0 += (len as f64 * pool.per_byte).max(pool.per_entry) as u64;
        if self.0 >= REPORT_AT {
            pool.put.fetch_add(self.0, Ordering::Relaxed);
            self.0 = 0;
        }
        self.now(pool)
    }

    fn now(&self, pool: &Pool) -> Stamp {
        1 + (self.part(pool) % STAMPS) as Stamp
    }

    /// The number of parts of the turnover so far.
    pub fn part(&self, pool: &Pool) -> u64 {
        (pool.put.load(Ordering::Relaxed) + self.0) / PART
    }

    /// Whether an entry was put in this part of the turnover or the one before: such an entry stays even if all older
    /// ones were read.
    pub fn is_fresh(&self, pool: &Pool, stamp: Stamp) -> bool {
        let age = (u64::from(self.now(pool)) + STAMPS - u64::from(stamp)) % STAMPS;
        stamp != 0 && age <= 1
    }
}
