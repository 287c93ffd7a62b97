//! Makes room in RAM ahead of the putting threads: the oldest entries that were not read leave, to flash or for good,
//! as the policy decides.

use crate::admission::{Candidate, Decision};
use crate::dram_first::DramFirst;
use crate::flash::Flash;
use crate::framing::{Records, append};
use crate::headroom::{Headroom, spare_bytes};
use crate::key::{Key, KeyHash, RecordKind};
use crate::limits::{
    FOUND_PERCENT_MAX, RECORD_COST_BYTES, SAME_HASH_MAX, SAVE_PASSES_MAX, SAVE_TIMEOUT, SHARDS,
};
use crate::memory::{Eviction, Protected, ShrinkTarget, Victim};
use crate::partition_state::PartitionState;
use crate::policy::shard_limits;
use crate::record::HeaderBytes;
use crate::shard::{Shard, point};
use crate::shard_index::{LookAlikes, ShardIndex};
use crate::stats::{Counters, add};
use granary_log::Writer;
use granary_log::sync::atomic::Ordering;
use std::io;
use std::time::Instant;

/// Whether the policy is asked about entries that leave RAM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Policy,
    /// All go to flash: the cache is being closed.
    Nobody,
}

impl PartitionState {
    /// Evicts until the cache is closed; run it on a thread of its own.
    pub fn run_evictor(&self, flash: &Flash, dram_first: &DramFirst) {
        loop {
            let mut requests = dram_first.requests.lock().expect("no panic under the lock");
            while !requests.wanted && !requests.stop {
                requests = dram_first.requested.wait(requests).expect("no panic under the lock");
            }
            if requests.stop {
                return;
            }
            requests.wanted = false;
            drop(requests);
            self.evict_shards(flash, dram_first, 0, Headroom::Enough);
        }
    }

    /// Makes room, from shard `first` on, until `wanted` is reached or the device is too far behind.
    pub fn evict_shards(&self, flash: &Flash, dram_first: &DramFirst, first: usize, wanted: Headroom) {
        let budget = self.pool.bytes();
        let most = budget - spare_bytes(flash, budget);
        for shard_most in shard_limits(most) {
            for shard in (first..SHARDS).chain(0..first) {
                if Headroom::of(flash, &self.pool) >= wanted {
                    return;
                }
                let aim = ShrinkTarget { shard: shard_most, pool: most, protected: Protected::Fresh };
                if self.lock_shard(shard).memory.bytes_allocated() as u64 > shard_most
                    && !self.evict(flash, dram_first, shard, aim, Ask::Policy)
                {
                    return;
                }
            }
        }
    }

    /// Evicts entries until RAM is within its budget, in shard `first` first, which has the newest entry. `leave`
    /// decides about entries that are in RAM only.
    pub fn relieve(&self, first: usize, mut leave: impl FnMut(Victim<'_>) -> Eviction) {
        let most = self.pool.bytes();
        let others = || (first + 1..SHARDS).chain(0..first);
        for shard_most in shard_limits(most) {
            for shard in std::iter::once(first).chain(others()) {
                if self.pool.used() <= most {
                    return;
                }
                let aim = ShrinkTarget { shard: shard_most, pool: most, protected: Protected::Fresh };
                self.lock_shard(shard).memory.shrink(aim, self.time(), &mut leave);
            }
        }
        if self.flash.is_some() {
            // Fresh entries go to flash once the device can take them.
            return;
        }
        // A few long entries are all fresh: the oldest leave, but not the newest of all.
        for shard_most in shard_limits(most) {
            for (shard, protected) in
                others().map(|shard| (shard, Protected::Nothing)).chain([(first, Protected::Newest)])
            {
                if self.pool.used() <= most {
                    return;
                }
                let aim = ShrinkTarget { shard: shard_most, pool: most, protected };
                self.lock_shard(shard).memory.shrink(aim, self.time(), &mut leave);
            }
        }
    }

    /// Evicts entries of a shard until `aim` is reached, or until the device is too far behind (`false`).
    ///
    /// An entry goes from RAM to flash under the shard's lock: no reader misses it, and it does not change meanwhile.
    /// An older version on flash was deleted when this one was put: look-alikes there are other keys', and stay in the
    /// index beside it. If these are too many, all are deleted.
    fn evict(
        &self,
        flash: &Flash,
        dram_first: &DramFirst,
        shard: usize,
        aim: ShrinkTarget,
        ask: Ask,
    ) -> bool {
        let mut tombstones = flash.tombstones.lock().expect("no panic under the lock");
        let mut writer = flash.log.writer();
        if !tombstones.retry(&mut writer) {
            return false;
        }
        let mut locked = self.lock_shard(shard);
        let mut admitter = dram_first.admitter.lock().expect("no panic under the lock");
        let now = dram_first.opened.elapsed().as_secs_f64();
        let second = self.time();
        let Shard { index, memory } = &mut *locked;
        let (mut admitted, mut admitted_bytes, mut rejected, mut behind) = (0, 0, 0, false);
        memory.shrink(aim, second, |Victim { hash, entry, reads, updates }| {
            if entry.is_expired(second) || !flash.fits(entry.key.len(), entry.len()) {
                return Eviction::Drop;
            }
            let key = Key::hashed(hash, entry.key);
            let bytes = (entry.len() + RECORD_COST_BYTES) as u64;
            let candidate = Candidate { key, bytes, reads, updates };
            if ask == Ask::Policy && admitter.decide(&candidate, now) == Decision::Drop {
                rejected += 1;
                return Eviction::Drop;
            }
            let mut keep = || {
                if ask == Ask::Policy {
                    admitter.refund(bytes);
                }
                behind = true;
                Eviction::Keep
            };
            if index.count(hash) >= SAME_HASH_MAX - 1
                && !delete_look_alikes(&mut writer, index, hash, &self.counters)
            {
                return keep();
            }
            let appended = flash.append_entry(&mut writer, hash, &[entry.as_bytes()], entry.value());
            let Some(placed) = appended else { return keep() };
            admitted += 1;
            admitted_bytes += entry.len() as u64;
            let (counters, look_alikes) = (&self.counters, LookAlikes::Others);
            match point(index, flash, key, placed, look_alikes, counters, &counters.displaced) {
                Some(_) => Eviction::Move,
                None => Eviction::Drop,
            }
        });
        let most = index.table.len() * FOUND_PERCENT_MAX / 100;
        index.table.bound_found_marks(most);
        add(&self.counters.admitted, admitted);
        self.measure(admitted, admitted_bytes);
        add(&self.counters.rejected, rejected);
        !behind
    }

    /// Writes entries in RAM only to flash, the oldest first: the cache is being closed. The oldest segments are reused
    /// for it, but no more of them than it fills.
    ///
    /// Entries that the device refuses stay in the write buffers, which may outlive the process.
    ///
    /// # Errors
    /// Some of it is not on the device.
    pub fn save_memory(&self, flash: &Flash, dram_first: &DramFirst) -> io::Result<()> {
        if !dram_first.writes {
            return Ok(());
        }
        flash.log.stop_reclaiming_ahead();
        let counts = || {
            let counters = [&self.counters.admitted, &self.counters.evicted_flash];
            counters.map(|counter| counter.load(Ordering::Relaxed))
        };
        let before = counts();
        let dirty = || (0..SHARDS).map(|shard| self.lock_shard(shard).memory.dirty()).sum::<usize>();
        // Hot entries of reused segments come back to RAM, also to shards that were saved before.
        for pass in 1..=SAVE_PASSES_MAX {
            dram_first.takes_back.store(pass < SAVE_PASSES_MAX, Ordering::Release);
            let is_done = (0..SHARDS).all(|shard| self.save_shard(flash, dram_first, shard));
            if !is_done || dirty() == 0 {
                break;
            }
        }
        // It also fails for what was lost before.
        let _ = flash.log.flush();
        let after = counts();
        let [admitted, evicted] = std::array::from_fn(|i| after[i] - before[i]);
        if dirty() > 0 || flash.log.newest_written() < flash.log.head() {
            let refusal = flash.log.write_failure().map_or_else(String::new, |error| format!(": {error}"));
            return Err(io::Error::other(format!(
                "the device did not take all that was in RAM only{refusal}"
            )));
        }
        tracing::info!(
            saved = admitted,
            evicted,
            "entries that were in RAM only are saved to flash, where others had to go"
        );
        Ok(())
    }

    /// Saves a shard; `false`: the device refuses writes, or has no room for what is left.
    fn save_shard(&self, flash: &Flash, dram_first: &DramFirst, shard: usize) -> bool {
        let aim = ShrinkTarget { shard: 0, pool: 0, protected: Protected::Nothing };
        let has_room = || flash.log.wait_for_room(Instant::now() + SAVE_TIMEOUT);
        while flash.log.write_failure().is_none() {
            if self.evict(flash, dram_first, shard, aim, Ask::Nobody) {
                return true;
            }
            if has_room() {
                continue;
            }
            // The stop waits for the device in any case.
            tracing::warn!("the device takes nothing: the stop waits for it, to save what is in RAM only");
            if flash.log.flush().is_err() || !has_room() {
                return false;
            }
        }
        false
    }
}

/// Deletes all look-alikes of this hash on flash; `false`: there is no room for the deletion now.
fn delete_look_alikes(
    writer: &mut Writer<'_, Records>,
    index: &mut ShardIndex,
    hash: KeyHash,
    counters: &Counters,
) -> bool {
    let summary_entry = hash.summary_entry(RecordKind::Deletion);
    let Some(placed) = append(writer, summary_entry, &[HeaderBytes::deletion(hash).as_slice()]) else {
        return false;
    };
    writer.journal(placed.sequence, &[summary_entry]);
    add(&counters.displaced, index.remove_look_alikes(hash));
    true
}
