//! The state that the threads of one partition share.

use crate::blocks::Blocks;
use crate::codec::{Codecs, DictionaryUser, StoredValue};
use crate::dram_first::DramFirst;
use crate::drive::Helpers;
use crate::flash::Flash;
use crate::headroom::Headroom;
use crate::key::{Key, KeyHash, KeyHasher};
use crate::limits::{SHARDS, SHARDS_ASKED_FOR_ROOM};
use crate::lookup::Probe;
use crate::memory::shared::Arena;
use crate::memory::{EntryFilter, EntryState, Eviction, Memory, Pool, Protected, ShrinkTarget};
use crate::shard::Shard;
use crate::stats::Counters;
use granary_log::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use granary_log::sync::{Arc, Mutex, MutexGuard};

/// One partition: shards over one log.
pub(crate) struct PartitionState {
    pub shards: Box<[Mutex<Shard>]>,
    pub flash: Option<Flash>,
    pub memory_bytes: u64,
    pub hasher: KeyHasher,
    /// The memory of a RAM tier that outlives the process.
    pub arena: Option<std::sync::Arc<Arena>>,
    /// The RAM of the shards' tiers.
    pub pool: std::sync::Arc<Pool>,
    /// The blocks of the RAM tier; `None`: it has entries only.
    pub blocks: Option<Blocks>,
    /// The shard that evicts entries next when blocks want room.
    pub shard_in_turn: AtomicUsize,
    /// DRAM first, longer entries go to flash at once.
    pub large_bytes: u64,
    /// The time passed with the last lookup.
    pub now: AtomicU32,
    pub counters: Counters,
    /// The threads that help with large batches.
    pub helpers: Helpers,
    pub codecs: Arc<Codecs>,
}

impl DictionaryUser for PartitionState {
    fn uses(&self, dictionary: u32) -> bool {
        let on_flash = || {
            self.flash.as_ref().is_some_and(|flash| {
                // After a kill the newest segments may be lost, and older ones be served again.
                let oldest = flash.log.newest_safe().saturating_sub(flash.log.geometry().segments());
                flash.dictionaries.is_used_since(dictionary, oldest)
            })
        };
        let in_shard = |shard| {
            let mut is_used = false;
            self.lock_shard(shard).memory.for_each(EntryFilter::All, |entry| {
                is_used |= entry.value().is_some_and(|value| value.dictionary() == dictionary);
            });
            is_used
        };
        // Flash is checked again for entries that left RAM for it meanwhile.
        on_flash() || (0..SHARDS).any(in_shard) || on_flash()
    }
}

impl PartitionState {
    /// Flash and DRAM-first state, if the cache is DRAM first.
    pub fn dram_first(&self) -> Option<(&Flash, &DramFirst)> {
        let flash = self.flash.as_ref()?;
        Some((flash, flash.dram_first.as_ref()?))
    }

    pub fn is_dram_first(&self) -> bool {
        self.dram_first().is_some()
    }

    pub fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        self.lock_shard(hash.shard())
    }

    pub fn lock_shard(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock().expect("no panic under the lock")
    }

    /// Whether a copy, of `bytes` bytes, of an entry on flash may enter RAM. DRAM first, only the evictor may make
    /// entries leave that are in RAM only, so a copy enters only if there is room.
    pub fn has_room_for_copy(&self, flash: &Flash, bytes: u64) -> bool {
        let Some(dram_first) = &flash.dram_first else { return true };
        let after = Headroom::with_entry(flash, &self.pool, bytes);
        if after != Headroom::Enough {
            dram_first.wake();
        }
        after > Headroom::Exceeded && Headroom::of(flash, &self.pool) >= Headroom::BelowTarget
    }

    /// Whether the shards are likely to have room for copies without other entries leaving. DRAM first, all room is for
    /// entries that are put.
    pub fn may_have_room(&self) -> bool {
        !self.is_dram_first() && self.pool.has_room()
    }

    /// Whether all entries that are searched in a block have left RAM lately: a larger RAM would still have them.
    pub fn are_ghosts(&self, keys: &[Key<'_>], probes: &[Probe]) -> bool {
        let Some(ghosts) = self.pool.ghosts() else { return false };
        probes.iter().all(|probe| ghosts.contains(keys[probe.key as usize].hash().to_bits()))
    }

    /// Remembers entries found in a block in RAM, which would otherwise have been copied to the RAM entries, as if they
    /// had just left those.
    pub fn note_as_ghosts(&self, keys: &[Key<'_>], probes: &[Probe], bytes: u64) {
        let Some(ghosts) = self.pool.ghosts() else { return };
        for probe in probes {
            ghosts.note(keys[probe.key as usize].hash().to_bits(), bytes / probes.len() as u64);
        }
    }

    /// Does what [`are_ghosts`](Self::are_ghosts) does, and forgets the ghosts.
    pub fn entries_return(&self, keys: &[Key<'_>], probes: &[Probe]) -> bool {
        let Some(ghosts) = self.pool.ghosts() else { return false };
        probes.iter().all(|probe| ghosts.returns(keys[probe.key as usize].hash().to_bits()))
    }

    /// Copies an entry on flash to RAM, taking room from blocks if needed; returns whether it was short enough.
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
            // The shard's table may have grown.
            blocks.give_way(0);
        }
        kept
    }

    /// Evicts copies of entries from shards above their share until the blocks have room; returns whether they have.
    pub fn make_room_for_blocks(&self, blocks: &Blocks) -> bool {
        let fits = || self.pool.used() + blocks.bytes_allocated() <= self.pool.bytes();
        for protected in [Protected::Fresh, Protected::Nothing] {
            for _ in 0..SHARDS_ASKED_FOR_ROOM {
                if fits() {
                    return true;
                }
                let shard = self.shard_in_turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
                let aim = ShrinkTarget { shard: self.pool.share(), pool: 0, protected };
                let memory = &mut self.lock_shard(shard).memory;
                memory.shrink(aim, self.time(), |_| Eviction::Keep);
                memory.release_spare();
            }
        }
        fits()
    }

    /// Notes what time it is.
    pub fn note_time(&self, now: u32) {
        // The time may go back: a clock that was ahead for a moment has no lasting effect.
        if self.now.load(Ordering::Relaxed) != now {
            self.now.store(now, Ordering::Relaxed);
        }
    }

    /// The last time noted.
    pub fn time(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }
}
