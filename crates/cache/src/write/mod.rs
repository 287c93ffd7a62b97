//! Storing and deleting.
//!
//! Write-through, an entry goes to the write buffer, then its change to the journal, then the index points at it
//! (`through.rs`, `publish.rs`). DRAM first, it waits in RAM (`dram_first.rs`) until the evictor lets it go
//! (`evict.rs`).

mod dram_first;
mod evict;
mod publish;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests;
mod through;

use crate::entry::{OnRefusal, Refusal, StoredEntry};
use crate::key::Key;
use crate::limits::PUT_CHUNK;
use crate::memory::{EntryState, Eviction};
use crate::partition_state::PartitionState;
use crate::stats::add;

impl PartitionState {
    /// Stores the part of a batch that is this partition's: [`Cache::put_many_with`](crate::Cache::put_many_with).
    pub fn put_many(&self, entries: &[StoredEntry<'_>], mut refused: impl FnMut(usize, Refusal)) {
        add(&self.counters.puts, entries.len() as u64);
        add(&self.counters.bytes_put, entries.iter().map(StoredEntry::bytes).sum::<usize>() as u64);
        // Reported when no lock is held.
        let mut refusals = Vec::new();
        let mut refuse = |i, why| refusals.push((i, why));
        match &self.flash {
            None => self.put_without_flash(entries, &mut refuse),
            Some(flash) => match &flash.dram_first {
                Some(dram_first) => self.put_dram_first(flash, dram_first, entries, &mut refuse),
                None => self.put_through(flash, entries, &mut refuse),
            },
        }
        for (i, why) in refusals {
            match why {
                Refusal::NoRoom => add(&self.counters.puts_dropped, 1),
                Refusal::TooLong => add(&self.counters.puts_too_large, 1),
                Refusal::Superseded => unreachable!("values that are being made are the whole cache's"),
            }
            refused(i, why);
        }
    }

    /// Removes the keys of a batch that are this partition's: [`Cache::delete_many`](crate::Cache::delete_many).
    pub fn delete_many(&self, keys: &[Key<'_>]) {
        let Some(flash) = &self.flash else {
            for key in keys {
                self.shard(key.hash()).memory.remove(*key);
            }
            return;
        };
        match &flash.dram_first {
            Some(dram_first) => self.delete_dram_first(flash, dram_first, keys),
            None => {
                for chunk in keys.chunks(PUT_CHUNK) {
                    self.delete_chunk(flash, chunk, |_, _| {});
                }
            }
        }
    }

    /// Keeps entries in a cache in RAM only; `refused` is called for those that are too large.
    fn put_without_flash(&self, entries: &[StoredEntry<'_>], refused: &mut OnRefusal<'_>) {
        let now = self.time();
        for (i, entry) in entries.iter().enumerate() {
            let shard = entry.key.hash().shard();
            if !self.lock_shard(shard).memory.insert(
                entry.key,
                entry.value,
                entry.expires_at,
                EntryState::Clean,
                now,
            ) {
                refused(i, Refusal::TooLong);
            } else if self.pool.used() > self.pool.bytes() {
                self.relieve(shard, |_| Eviction::Keep);
            }
        }
    }
}
