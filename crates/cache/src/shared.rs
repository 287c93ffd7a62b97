//! What the threads of one partition share.

use crate::blocks::Blocks;
use crate::codec::{Codecs, StoredValue, VersionUser};
use crate::dram_first::DramFirst;
use crate::drive::Helpers;
use crate::flash::Flash;
use crate::headroom::Headroom;
use crate::key::{Key, KeyHash, KeyHasher};
use crate::limits::{SHARDS, SHARDS_ASKED_FOR_ROOM};
use crate::lookup::Probe;
use crate::memory::shared::Arena;
use crate::memory::{EntryState, Eviction, Memory, Pool, ShrinkTarget, Spare, Which};
use crate::shard::Shard;
use crate::stats::Counters;
use granary_log::sync::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
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
    /// The blocks of the RAM tier; `None`: it has entries only.
    pub blocks: Option<Blocks>,
    /// The shard that evicts entries next when blocks want room.
    pub shard_in_turn: AtomicUsize,
    /// Longer entries do not wait in RAM, where others can go to flash.
    pub large_bytes: u64,
    /// The newest time that was told with a lookup.
    pub now: AtomicU32,
    pub counters: Counters,
    /// The threads that help with large batches.
    pub helpers: Helpers,
    pub codecs: Arc<Codecs>,
}

impl VersionUser for Shared {
    fn uses(&self, version: u32) -> bool {
        let on_flash = || {
            self.flash.as_ref().is_some_and(|flash| {
                // After a kill those before the newest may be gone, and older ones be served again.
                let oldest = flash.log.newest_safe().saturating_sub(flash.log.geometry().segments());
                flash.versions.is_used_since(version, oldest)
            })
        };
        let in_shard = |shard| {
            let mut is_used = false;
            self.lock(shard).memory.for_each(Which::All, |entry| {
                is_used |= entry.value().is_some_and(|value| value.version() == version);
            });
            is_used
        };
        // What leaves RAM for flash meanwhile is in one or the other.
        on_flash() || (0..SHARDS).any(in_shard) || on_flash()
    }
}

impl Shared {
    /// The parts of a cache that is DRAM first.
    pub fn dram_first(&self) -> Option<(&Flash, &DramFirst)> {
        let flash = self.flash.as_ref()?;
        Some((flash, flash.dram_first.as_ref()?))
    }

    pub fn is_dram_first(&self) -> bool {
        self.dram_first().is_some()
    }

    pub fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        self.lock(hash.shard())
    }

    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock().expect("no panic under the lock")
    }

    /// Whether a copy of an entry on flash, of so many bytes, may enter RAM. DRAM first, it must not wait for what is in RAM
    /// only to leave: only the evictor can tell whether it may. So it enters only if there is room for it.
    pub fn has_room_for_copy(&self, flash: &Flash, bytes: u64) -> bool {
        let Some(dram_first) = &flash.dram_first else { return true };
        let after = Headroom::beside(flash, &self.pool, bytes);
        if after != Headroom::Enough {
            dram_first.wake();
        }
        after > Headroom::Exceeded && Headroom::of(flash, &self.pool) >= Headroom::BelowTarget
    }

    /// Whether all entries that a block is looked through for have left RAM lately: they would have been in a larger one.
    pub fn are_ghosts(&self, keys: &[Key<'_>], probes: &[Probe]) -> bool {
        let Some(ghosts) = self.pool.ghosts() else { return false };
        probes.iter().all(|probe| ghosts.contains(keys[probe.key as usize].hash().to_bits()))
    }

    /// Remembers entries that were found in a block in RAM, and that would have come to the entries without it, as if they
    /// had left these just now.
    pub fn note_as_ghosts(&self, keys: &[Key<'_>], probes: &[Probe], bytes: u64) {
        let Some(ghosts) = self.pool.ghosts() else { return };
        for probe in probes {
            ghosts.note(keys[probe.key as usize].hash().to_bits(), bytes / probes.len() as u64);
        }
    }

    /// The same; they are no ghosts any more.
    pub fn entries_return(&self, keys: &[Key<'_>], probes: &[Probe]) -> bool {
        let Some(ghosts) = self.pool.ghosts() else { return false };
        probes.iter().all(|probe| ghosts.returns(keys[probe.key as usize].hash().to_bits()))
    }

    /// Copies an entry that is on flash to RAM, where blocks may have had its room; whether it was not too long for that.
    pub fn copy_to_memory(
        &self,
        memory: &mut Memory,
        key: Key<'_>,
        value: Option<StoredValue<'_>>,
        expires_at: u32,
    ) -> bool {
        let bytes = key.bytes().len() + value.map_or(0, |value| value.bytes.len());
        if let Some(blocks) = &self.blocks {
            blocks.give_way(bytes as u64);
        }
        let kept = memory.insert(key, value, expires_at, EntryState::Clean, self.time());
        if let Some(blocks) = &self.blocks {
            // For a table that has grown.
            blocks.give_way(0);
        }
        kept
    }

    /// Lets copies of entries leave RAM where they take more than their share, until there is room for what blocks take;
    /// whether there is.
    pub fn make_room_for_blocks(&self, blocks: &Blocks) -> bool {
        let fits = || self.pool.used() + blocks.bytes_allocated() <= self.pool.bytes();
        for spare in [Spare::Fresh, Spare::Nothing] {
            for _ in 0..SHARDS_ASKED_FOR_ROOM {
                if fits() {
                    return true;
                }
                let shard = self.shard_in_turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
                let aim = ShrinkTarget { shard: self.pool.share(), pool: 0, spare };
                let memory = &mut self.lock(shard).memory;
                memory.shrink(aim, self.time(), |_| Eviction::Keep);
                memory.release_spare();
            }
        }
        fits()
    }

    /// Notes what time it is.
    pub fn note_time(&self, now: u32) {
        // A clock that was ahead for a moment is believed no longer than that.
        if self.now.load(Ordering::Relaxed) != now {
            self.now.store(now, Ordering::Relaxed);
        }
    }

    /// The time that was told last.
    pub fn time(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }
}
