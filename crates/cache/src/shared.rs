//! What the threads of one partition share.

use crate::codec::{Codecs, VersionUser};
use crate::drive::Helpers;
use crate::flash::Flash;
use crate::headroom::Headroom;
use crate::hybrid::Hybrid;
use crate::key::{KeyHash, KeyHasher};
use crate::limits::SHARDS;
use crate::memory::shared::Arena;
use crate::memory::{Pool, Which};
use crate::shard::Shard;
use crate::stats::Counters;
use granary_log::sync::sync::atomic::{AtomicU32, Ordering};
use granary_log::sync::sync::{Arc, Mutex, MutexGuard};

/// One partition: shards over one log.
pub(crate) struct Shared {
    pub shards: Box<[Mutex<Shard>]>,
    pub flash: Option<Flash>,
    pub memory_bytes: u64,
    pub hasher: KeyHasher,
    /// Where the RAM tier lies that outlives the process.
    pub arena: Option<std::sync::Arc<Arena>>,
    /// The RAM of the shards' tiers.
    pub pool: std::sync::Arc<Pool>,
    /// Longer entries do not wait in RAM, where others can go to flash.
    pub large_bytes: u64,
    /// The newest time that was told with a lookup.
    pub now: AtomicU32,
    pub counters: Counters,
    /// Who helps with large batches.
    pub helpers: Helpers,
    pub codecs: Arc<Codecs>,
}

impl VersionUser for Shared {
    fn uses(&self, version: u32) -> bool {
        let on_flash = self.flash.as_ref().is_some_and(|flash| {
            let oldest = flash.log.head().saturating_sub(flash.log.geometry().segments());
            flash.versions.is_used_since(version, oldest)
        });
        let in_shard = |shard| {
            let mut is_used = false;
            self.lock(shard).memory.for_each(Which::All, |entry| {
                is_used |= entry.value().is_some_and(|value| value.version() == version);
            });
            is_used
        };
        on_flash || (0..SHARDS).any(in_shard)
    }
}

impl Shared {
    /// The parts of a cache that is DRAM first.
    pub fn hybrid(&self) -> Option<(&Flash, &Hybrid)> {
        let flash = self.flash.as_ref()?;
        Some((flash, flash.hybrid.as_ref()?))
    }

    pub fn is_hybrid(&self) -> bool {
        self.hybrid().is_some()
    }

    pub fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        self.lock(hash.shard())
    }

    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock().expect("no panic under the lock")
    }

    /// Whether a copy of an entry on flash, of so many bytes, may enter RAM. DRAM first, it must not wait for what is in RAM
    /// only to leave: only the cleaner can tell whether it may. So it enters only if there is room for it.
    pub fn has_room_for_copy(&self, flash: &Flash, bytes: u64) -> bool {
        let Some(hybrid) = &flash.hybrid else { return true };
        let after = Headroom::beside(flash, &self.pool, bytes);
        if after != Headroom::Enough {
            hybrid.order_cleaning();
        }
        after > Headroom::TooLittle && Headroom::of(flash, &self.pool) >= Headroom::Less
    }

    /// Notes what time it is.
    pub fn note_time(&self, now: u32) {
        if self.now.load(Ordering::Relaxed) < now {
            self.now.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// The newest time that was told.
    pub fn time(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }
}
