//! One partition of a cache: shards over one log.

use crate::blocks::{Blocks, Plan};
use crate::codec::{Codecs, DictionaryUser, StoredValue};
use crate::dram_first::DramFirst;
use crate::flash::Flash;
use crate::framing::{Log, Records};
use crate::index::{Capacity, Growth};
use crate::key::{Key, KeyHasher};
use crate::limits::SHARDS;
use crate::memory::shared::{Arena, PartitionMemory};
use crate::memory::{Memory, Pool, Role};
use crate::options::Options;
use crate::partition_state::PartitionState;
use crate::policy;
use crate::shard::Shard;
use crate::shard_index::ShardIndex;
use crate::stats::{Counters, Stats};
use granary_log::Geometry;
use granary_log::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use granary_log::sync::thread::{self, JoinHandle};
use granary_log::sync::{Arc, Mutex};
use std::io;
use std::time::Instant;

/// A partition, which is a cache of its own. Dropping it stops it cleanly.
pub(crate) struct Partition {
    pub(crate) shared: Arc<PartitionState>,
    flusher: Option<JoinHandle<()>>,
    evictor: Option<JoinHandle<()>>,
}

/// The methods are documented at [`Cache`](crate::Cache).
impl Partition {
    /// A partition without flash.
    pub fn in_memory(options: &Options, codecs: Arc<Codecs>) -> Self {
        let capacity = Capacity::new(0, 0, Some(0), Growth::Quick);
        let shared = Self::shared(options, capacity, None, KeyHasher::random(), None, codecs);
        Self::of(Arc::new(shared))
    }

    /// A partition whose threads are not started.
    fn of(shared: Arc<PartitionState>) -> Self {
        let user: Arc<dyn DictionaryUser> = Arc::<PartitionState>::clone(&shared);
        shared.codecs.add_user(Arc::downgrade(&user));
        Self { shared, flusher: None, evictor: None }
    }

    fn shared(
        options: &Options,
        capacity: Capacity,
        flash: Option<Flash>,
        hasher: KeyHasher,
        arena: Option<std::sync::Arc<Arena>>,
        codecs: Arc<Codecs>,
    ) -> PartitionState {
        let pool = Pool::new(options.memory_bytes, options.memory_entries);
        let entries = options.entries_of_shard();
        // DRAM first, entries may be in RAM only, and the evictor needs all of the RAM.
        let with_blocks = flash.as_ref().filter(|flash| flash.dram_first.is_none());
        let plan = with_blocks
            .and_then(|flash| Plan::new(options.memory_division, &pool, entries, flash.log.geometry()));
        let pool = std::sync::Arc::new(match plan.as_ref().and_then(Plan::entry_ghosts) {
            Some(ghosts) => pool.with_ghosts(ghosts),
            None => pool,
        });
        let blocks = plan.map(|plan| Blocks::new(plan, std::sync::Arc::clone(&pool), arena.clone()));
        let role = if flash.is_some() { Role::InFrontOfFlash } else { Role::Alone };
        let shard = |number| {
            let pool = std::sync::Arc::clone(&pool);
            let memory = Memory::new(pool, entries, role, hasher, number, arena.clone());
            Mutex::new(Shard { index: ShardIndex::new(capacity), memory })
        };
        PartitionState {
            shards: (0..SHARDS).map(shard).collect(),
            flash,
            memory_bytes: options.memory_bytes,
            hasher,
            arena,
            large_bytes: policy::large_bytes(options.memory_bytes, options.partitions()),
            now: AtomicU32::new(0),
            pool,
            blocks,
            shard_in_turn: AtomicUsize::new(0),
            counters: Counters::default(),
            helpers: options.helpers.clone(),
            codecs,
        }
    }

    /// Starts a partition over a log, with its recovered content, and with that of the RAM tier's file. `options` holds
    /// the budgets of this partition.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        options: &Options,
        log: Log,
        mut recovered: granary_log::Recovered<Records>,
        memory: Option<std::sync::Arc<PartitionMemory>>,
        codecs: Arc<Codecs>,
    ) -> io::Result<Self> {
        let flash = options.flash.as_ref().expect("called for a cache on flash");
        let geometry = *log.geometry();
        let opening_entries = flash.opening_entries() / flash.partitions;
        let capacity = flash.capacity(&geometry);
        let dram_first = DramFirst::new(&flash.admission, &options.applications, &log, flash.bytes_per_day);
        let hasher = KeyHasher::with_seed(log.salt());
        let opened = memory.and_then(|memory| memory.take_found());
        let (arena, chunks) = opened.map_or((None, Vec::new()), |(arena, chunks)| (Some(arena), chunks));
        let flash = Flash::new(log, flash.reinsertion, dram_first);
        let shared = Arc::new(Self::shared(options, capacity, Some(flash), hasher, arena, codecs));
        let under_way = shared.under_way(&recovered);
        shared.recover(&mut recovered, opening_entries);
        if let Some(flash) = &shared.flash {
            // Recovered values may need any of the dictionaries.
            shared.codecs.ids().into_iter().for_each(|id| flash.dictionaries.note(id, flash.log.head()));
        }
        shared.adopt_memory(chunks, under_way.as_ref());
        // Before the flusher starts: if two threads emptied the same slots, the slower one would empty a slot in use
        // again.
        if let Some(flash) = &shared.flash {
            flash.log.reclaim_ahead(&*shared);
        }
        let mut this = Self::of(shared);
        match this.spawn_flusher() {
            Ok(flusher) => this.flusher = Some(flusher),
            Err(error) => return this.fail_start(error),
        }
        if let Some(flash) = &this.shared.flash {
            // Lost entries are deleted for good: their older versions must not come back at a later start.
            let lost: Vec<u64> = recovered.lost.into_values().flatten().collect();
            this.shared.delete_lost(flash, lost.clone());
            this.shared.write_again(flash, lost);
        }
        if this.shared.is_dram_first() {
            match this.spawn_evictor() {
                Ok(evictor) => this.evictor = Some(evictor),
                Err(error) => return this.fail_start(error),
            }
        }
        Ok(this)
    }

    fn spawn_flusher(&self) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let flush = move || {
            if let Some(flash) = &shared.flash {
                flash.log.run_flusher(&*shared);
            }
        };
        thread::Builder::new().name("granary-flush".into()).spawn(flush)
    }

    fn spawn_evictor(&self) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let evict = move || {
            if let Some((flash, dram_first)) = shared.dram_first() {
                shared.run_evictor(flash, dram_first);
            }
        };
        thread::Builder::new().name("granary-evict".into()).spawn(evict)
    }

    /// Ends a failed start as a kill would.
    fn fail_start(self, error: io::Error) -> io::Result<Self> {
        self.abandon();
        Err(error)
    }

    /// Visits the next victim of each shard's RAM.
    pub fn next_victim(&self, visit: &mut dyn FnMut(Key<'_>, Option<&[u8]>)) {
        let codecs = &self.shared.codecs;
        let mut decoder = codecs.decoder();
        for shard in 0..SHARDS {
            // A copy, so that the visitor holds no lock.
            let victim =
                self.shared.lock_shard(shard).memory.next_victim().map(|(hash, entry)| {
                    (hash, entry.key.to_vec(), entry.value().map(StoredValue::to_owned))
                });
            let Some((hash, key, value)) = victim else { continue };
            let value = value.as_ref().and_then(|value| codecs.decode(value.as_stored(), &mut decoder));
            visit(Key::hashed(hash, &key), value);
        }
        codecs.take_back(decoder);
    }

    pub fn flush(&self) -> io::Result<()> {
        self.shared.flash.as_ref().map_or(Ok(()), |flash| flash.log.flush())
    }

    /// Entries of segments that the device refused.
    pub fn refused_entries(&self) -> u64 {
        self.shared.flash.as_ref().map_or(0, |flash| flash.refused_entries.load(Ordering::Relaxed))
    }

    /// Returns once no loss of power undoes the changes before the call:
    /// [`Cache::sync_changes`](crate::Cache::sync_changes).
    pub fn sync_changes(&self) -> io::Result<()> {
        self.shared.flash.as_ref().map_or(Ok(()), |flash| flash.log.sync_journal())
    }

    /// Whether puts soon find no write buffer: [`Cache::is_behind`](crate::Cache::is_behind).
    pub fn is_behind(&self) -> bool {
        self.shared.flash.as_ref().is_some_and(|flash| self.needs_room(flash) && flash.log.is_behind())
    }

    /// Whether puts need room in a write buffer. DRAM first, an entry without room there stays in RAM, unless RAM is
    /// too small for it.
    fn needs_room(&self, flash: &Flash) -> bool {
        flash.dram_first.is_none()
            || self.shared.pool.entry_bytes_max() < flash.log.geometry().segment_bytes() / 2
    }

    /// Waits until the partition is not [behind](Self::is_behind), or until the deadline.
    pub fn wait_for_room(&self, deadline: Instant) {
        if let Some(flash) = &self.shared.flash
            && self.needs_room(flash)
        {
            flash.log.wait_for_room(deadline);
        }
    }

    /// The shape of the log; `None`: there is no flash.
    pub fn geometry(&self) -> Option<&Geometry> {
        self.shared.flash.as_ref().map(|flash| flash.log.geometry())
    }

    pub fn clear(&self) -> io::Result<()> {
        let Some(flash) = &self.shared.flash else {
            (0..SHARDS).for_each(|shard| self.shared.lock_shard(shard).memory.clear());
            return Ok(());
        };
        let mut tombstones = flash.tombstones.lock().expect("no panic under the lock");
        self.shared.reset(flash, &mut tombstones)
    }

    pub fn stats(&self) -> Stats {
        let mut stats = self.shared.counters.snapshot();
        let mut index_bytes = 0;
        for shard in 0..SHARDS {
            let shard = self.shared.lock_shard(shard);
            stats.entries += match self.shared.flash.is_some() {
                true => shard.index.table.len() + shard.memory.dirty(),
                false => shard.memory.len(),
            } as u64;
            stats.flash_entries += shard.index.table.len() as u64;
            stats.index_slots += shard.index.table.slots() as u64;
            stats.memory_entries += shard.memory.len() as u64;
            stats.memory_bytes += shard.memory.bytes_allocated() as u64;
            let evictions = shard.memory.evictions();
            stats.evicted_memory += evictions.evicted;
            stats.evicted_unfetched += evictions.evicted_unfetched;
            stats.expired_memory += evictions.expired;
            stats.expired_unfetched += evictions.expired_unfetched;
            index_bytes += shard.index.bytes_allocated() + size_of::<Mutex<Shard>>();
        }
        stats.index_bytes = index_bytes as u64;
        if let Some(blocks) = &self.shared.blocks {
            stats.block_bytes = blocks.bytes_allocated();
            stats.memory_bytes += stats.block_bytes;
        }
        stats.memory_file_bytes = self.shared.arena.as_ref().map_or(0, |arena| arena.bytes_reserved());
        if let Some(flash) = &self.shared.flash {
            let log = flash.log.stats();
            if let Some(dram_first) = &flash.dram_first {
                let admitter = dram_first.admitter.lock().expect("no panic under the lock");
                stats.policy_bytes = admitter.bytes_allocated() as u64;
            }
            let geometry = flash.log.geometry();
            stats.flash_bytes = geometry.file_bytes();
            stats.flash_segments = geometry.segments();
            stats.flash_segments_used = flash.log.segments_used();
            stats.buffer_bytes = log.buffer_bytes;
            stats.bytes_written = log.bytes_written;
            stats.segments_written = log.segments_written;
            stats.write_errors = log.write_errors;
        }
        stats
    }

    pub fn close(mut self) -> io::Result<()> {
        self.end()
    }

    /// Stops cleanly, once.
    fn end(&mut self) -> io::Result<()> {
        if self.flusher.is_none() {
            return Ok(());
        }
        self.stop_evictor();
        let Some(flash) = &self.shared.flash else {
            self.join();
            return Ok(());
        };
        flash.retries_writes.store(true, Ordering::Release);
        let saved = match &flash.dram_first {
            Some(dram_first) => self.shared.save_memory(flash, dram_first),
            None => Ok(()),
        };
        let stopped = match saved {
            Ok(()) => self.shared.stop(flash),
            Err(error) => {
                // A kill keeps all that is on flash, and what is in a file of the RAM tier.
                flash.log.abandon();
                let fate = match self.shared.arena.is_some() {
                    true => "it stays in the RAM tier's file for the next start, as through a kill",
                    false => "it is lost, as through a kill",
                };
                Err(io::Error::other(format!("{error}; {fate}")))
            }
        };
        self.join();
        stopped
    }

    pub fn abandon(mut self) {
        self.stop_evictor();
        if let Some(flash) = &self.shared.flash {
            flash.log.abandon();
        }
        self.join();
    }

    pub fn validate(&self) {
        let mut bytes = 0;
        for shard in 0..SHARDS {
            let shard = self.shared.lock_shard(shard);
            shard.index.table.validate();
            shard.memory.validate();
            bytes += shard.memory.bytes_allocated();
        }
        if let Some(blocks) = &self.shared.blocks {
            blocks.validate();
        }
        // The evictor may be running.
        if !self.shared.is_dram_first() {
            assert_eq!(bytes as u64, self.shared.pool.used(), "the pool knows what its shards take");
        }
    }

    fn stop_evictor(&mut self) {
        if let Some((_, dram_first)) = self.shared.dram_first() {
            dram_first.stop();
        }
        if let Some(evictor) = self.evictor.take() {
            // A panic was printed by its thread, as for the flusher.
            let _ = evictor.join();
        }
    }

    fn join(&mut self) {
        if let Some(flusher) = self.flusher.take() {
            // A panic of the flusher was printed by its thread; there is nothing to add.
            let _ = flusher.join();
        }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "the cache could not be stopped cleanly: it may start empty");
        }
    }
}
