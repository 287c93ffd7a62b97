//! The part of a cache on flash.

use crate::codec::{Codec, DictionaryUses, StoredValue};
use crate::dram_first::DramFirst;
use crate::framing::block::payload_size;
use crate::framing::{Log, Placed, Records, append, record_bytes_max};
use crate::key::{KeyHash, RecordKind};
use crate::limits::VALUE_BYTES_MAX;
use crate::policy::Reinsertion;
use crate::record::HEADER_SIZE_MAX;
use crate::tombstones::TombstoneQueue;
use granary_log::Writer;
use granary_log::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use granary_log::sync::thread;
use granary_log::sync::{Mutex, MutexGuard};
use std::sync::TryLockError;

/// The part of a cache on flash.
pub(crate) struct Flash {
    pub log: Log,
    /// The longest record that fits a segment.
    pub record_bytes_max: usize,
    /// The deletions that wait to be appended. An appending thread holds its lock. Lock order: this, the log's writer,
    /// shard, segment.
    pub tombstones: Mutex<TombstoneQueue>,
    pub reinsertion: Reinsertion,
    /// The state of a DRAM-first cache.
    pub dram_first: Option<DramFirst>,
    /// Whether a segment that the device refuses stays in its buffer and is tried again: the cache is being closed, and
    /// a hole on the device would cost the next start what is before it.
    pub retries_writes: AtomicBool,
    /// Entries of segments that the device refused.
    pub refused_entries: AtomicU64,
    /// The dictionaries that the segments need.
    pub dictionaries: DictionaryUses,
    /// The thread that holds `tombstones` is waiting for the flusher, which therefore must not wait for `tombstones`.
    pub awaits_flusher: AtomicBool,
}

impl Flash {
    /// `dram_first`: the state of a DRAM-first cache.
    pub fn new(log: Log, reinsertion: Reinsertion, dram_first: Option<DramFirst>) -> Self {
        Self {
            record_bytes_max: record_bytes_max(log.geometry()),
            log,
            tombstones: Mutex::default(),
            reinsertion,
            dram_first,
            retries_writes: AtomicBool::new(false),
            refused_entries: AtomicU64::new(0),
            dictionaries: DictionaryUses::default(),
            awaits_flusher: AtomicBool::new(false),
        }
    }

    /// Whether a record of `len` bytes with a key of `key_len` bytes can be on flash.
    pub fn fits(&self, key_len: usize, len: usize) -> bool {
        key_len + HEADER_SIZE_MAX <= payload_size(self.log.geometry())
            && len <= self.record_bytes_max.min(VALUE_BYTES_MAX)
    }

    /// Appends an entry, made of `parts`, to the log; its segment needs the value's dictionary from now on. `None` as
    /// for [`append`].
    #[inline]
    pub fn append_entry(
        &self,
        writer: &mut Writer<'_, Records>,
        hash: KeyHash,
        parts: &[&[u8]],
        value: Option<StoredValue<'_>>,
    ) -> Option<Placed> {
        let placed = append(writer, hash.summary_entry(RecordKind::Entry), parts)?;
        if let Some(value) = value.filter(|value| value.codec != Codec::None) {
            self.dictionaries.note(value.dictionary(), placed.sequence);
        }
        Some(placed)
    }

    /// For the flusher: the lock of `tombstones`, or `None` if its holder waits for the flusher.
    pub fn tombstones_unless_awaited(&self) -> Option<MutexGuard<'_, TombstoneQueue>> {
        loop {
            match self.tombstones.try_lock() {
                Ok(tombstones) => return Some(tombstones),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) => {}
            }
            if self.awaits_flusher.load(Ordering::Acquire) {
                return None;
            }
            thread::yield_now();
        }
    }

    /// Notes that flash may hold entries from now on that the index does not know. Call it before the index forgets
    /// them, or under their shard's lock.
    pub fn note_unindexed(&self) {
        if let Some(dram_first) = &self.dram_first {
            let until = self.log.head() + self.log.geometry().segments();
            dram_first.unindexed_until.fetch_max(until, Ordering::AcqRel);
        }
    }

    /// Whether flash may hold entries that the index does not know. Call it under the shard's lock.
    pub fn has_unindexed(&self, dram_first: &DramFirst) -> bool {
        let until = dram_first.unindexed_until.load(Ordering::Acquire);
        // A loss of power may bring back what was overwritten and not synced.
        until > 0 && self.log.newest_safe() < until
    }
}
