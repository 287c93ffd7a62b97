//! Storing and deleting: into the write buffer, then the journal, then the index (`publish.rs`).

use crate::batch::KeysByShard;
use crate::entry::{OnRefusal, Refusal, StoredEntry};
use crate::flash::Flash;
use crate::framing::{Placed, Records, note_look_alikes};
use crate::key::{Key, RecordKind};
use crate::limits::{PUT_CHUNK, SHARDS, STOP_WAITS_FOR_ROOM, TOMBSTONES_MAX};
use crate::partition_state::PartitionState;
use crate::record::{HEADER_SIZE_MAX, HeaderBytes};
use crate::shard::Shard;
use crate::stats::add;
use crate::tombstones::TombstoneQueue;
use granary_log::Writer;
use granary_log::sync::MutexGuard;
use granary_log::sync::atomic::Ordering;
use std::collections::HashSet;
use std::io;
use std::time::Instant;

impl PartitionState {
    /// Appends entries to the log, and copies them to RAM; `refused` is called for those that find no room.
    pub fn put_through(&self, flash: &Flash, entries: &[StoredEntry<'_>], refused: &mut OnRefusal<'_>) {
        let mut coming = [0; SHARDS];
        entries.iter().for_each(|entry| coming[entry.key.hash().shard()] += 1);
        for (chunk, first) in entries.chunks(PUT_CHUNK).zip((0..).step_by(PUT_CHUNK)) {
            self.put_chunk(flash, chunk, &mut coming, &mut |i, why| refused(first + i, why));
        }
    }

    /// `coming`: the entries of each shard still to come in the batch, including these.
    fn put_chunk(
        &self,
        flash: &Flash,
        entries: &[StoredEntry<'_>],
        coming: &mut [usize; SHARDS],
        refused: &mut OnRefusal<'_>,
    ) {
        let mut tombstones = flash.tombstones.lock().expect("no panic under the lock");
        let mut writer = flash.log.writer();
        let under_way = self.arena.as_ref().map(|arena| arena.begin_change(writer.next_sequence()));
        // Waiting deletions first: no later record may be found without them.
        let room = tombstones.retry(&mut writer);
        if entries.iter().map(StoredEntry::bytes).sum::<usize>() as u64
            <= flash.log.geometry().segment_bytes() / 2
        {
            // Notes below about a segment that is sealed meanwhile must reach it before it is written.
            writer.defer_flush();
        }
        let mut placed: Vec<Option<Placed>> = vec![None; entries.len()];
        let mut bytes = 0;
        for (i, (entry, placed)) in entries.iter().zip(&mut placed).enumerate() {
            let key = entry.key.bytes();
            let value = entry.value.map_or(&[][..], |value| value.bytes);
            let len = HEADER_SIZE_MAX + entry.bytes();
            if !flash.fits(key.len(), len) {
                refused(i, Refusal::TooLong);
                continue;
            }
            let header = HeaderBytes::entry(key, entry.value, entry.expires_at);
            if room {
                let parts = [header.as_slice(), key, value];
                *placed = flash.append_entry(&mut writer, entry.key.hash(), &parts, entry.value);
            }
            match placed {
                Some(_) => bytes += header.as_slice().len() + entry.bytes(),
                None => refused(i, Refusal::NoRoom),
            }
        }
        let written = placed.iter().flatten().count() as u64;
        add(&self.counters.written_through, written);
        self.measure(written, bytes as u64);
        let changes = last_placed_or_refused(entries, &placed);
        if tombstones.len() == 0 {
            // Before the journal voids older versions: a kill in between leaves one of the two.
            writer.publish_deferred();
        }
        tombstones.journal(&mut writer, changes.into_iter().map(|i| (entries[i].key, placed[i])));
        if tombstones.len() > 0 {
            // As for deletions.
            tombstones.retry(&mut writer);
        }
        for i in self.publish_many(flash, entries, &placed, coming) {
            let summary_entry = entries[i].key.hash().summary_entry(RecordKind::Entry);
            placed[i].iter().for_each(|placed| note_look_alikes(&mut writer, summary_entry, *placed));
        }
        writer.resume_flush();
        tombstones.retry(&mut writer);
        // Ended while this thread still holds `tombstones`.
        drop(under_way);
        self.bound_tombstones(flash, tombstones, writer);
    }

    /// Notes that `records` records of the log take `bytes` bytes.
    pub fn measure(&self, records: u64, bytes: u64) {
        add(&self.counters.records_measured, records);
        add(&self.counters.bytes_measured, bytes);
    }

    /// Deletes keys; `then` is called with the index of each under its shard's lock.
    pub fn delete_chunk(&self, flash: &Flash, keys: &[Key<'_>], mut then: impl FnMut(&mut Shard, usize)) {
        let mut tombstones = flash.tombstones.lock().expect("no panic under the lock");
        let mut writer = flash.log.writer();
        let under_way = self.arena.as_ref().map(|arena| arena.begin_change(writer.next_sequence()));
        tombstones.retry(&mut writer);
        tombstones.journal(&mut writer, keys.iter().map(|key| (*key, None)));
        // Before readers see it: the segment open meanwhile may be found after a kill, and should have the deletion
        // then.
        tombstones.retry(&mut writer);
        for (shard, asked) in KeysByShard::of_batch(keys.iter().map(|key| key.hash())).shards() {
            let mut locked = self.lock_shard(shard);
            if flash.dram_first.is_none() {
                add(&self.counters.look_alikes_expected, locked.index.look_alikes_expected(asked.len()));
            }
            for asked in asked {
                locked.unpublish(flash, keys[asked.key as usize], &self.counters);
                then(&mut locked, asked.key as usize);
            }
        }
        tombstones.retry(&mut writer);
        // Ended while this thread still holds `tombstones`.
        drop(under_way);
        self.bound_tombstones(flash, tombstones, writer);
    }

    /// Deletes the hashes that recovery found to be void; the log's journal has the summary entries already.
    pub fn delete_lost(&self, flash: &Flash, summary_entries: Vec<u64>) {
        let mut tombstones = flash.tombstones.lock().expect("no panic under the lock");
        tombstones.replace(summary_entries);
        let mut writer = flash.log.writer();
        tombstones.retry(&mut writer);
    }

    /// With too many deletions waiting, forgetting everything is the cheaper way to be right.
    fn bound_tombstones(
        &self,
        flash: &Flash,
        mut tombstones: MutexGuard<'_, TombstoneQueue>,
        writer: Writer<'_, Records>,
    ) {
        if tombstones.len() > TOMBSTONES_MAX {
            let entries = |shard| {
                let shard = self.lock_shard(shard);
                (shard.index.table.len() + shard.memory.dirty()) as u64
            };
            add(&self.counters.lost, (0..SHARDS).map(entries).sum());
            drop(writer);
            tracing::error!("the device takes no writes: the cache starts over empty");
            if let Err(error) = self.reset(flash, &mut tombstones) {
                tracing::error!(%error, "cannot start over");
            }
        }
    }

    /// Forgets everything and starts another instance of the log.
    pub fn reset(&self, flash: &Flash, tombstones: &mut TombstoneQueue) -> io::Result<()> {
        let mut writer = flash.log.writer();
        // The old instance exists until the new one has begun: a change meanwhile needs a deletion, and so waits for
        // `tombstones`.
        flash.note_unindexed();
        for shard in 0..SHARDS {
            self.lock_shard(shard).clear();
        }
        tombstones.clear();
        flash.awaits_flusher.store(true, Ordering::Release);
        let cleared = writer.clear();
        flash.awaits_flusher.store(false, Ordering::Release);
        if let Some(blocks) = &self.blocks {
            blocks.clear();
        }
        if let (Ok(()), Some(dram_first)) = (&cleared, &flash.dram_first) {
            // The writer's lock is held, so nothing is on flash yet.
            dram_first.unindexed_until.store(0, Ordering::Release);
            let mut admitter = dram_first.admitter.lock().expect("no panic under the lock");
            admitter.set_free_bytes(flash.log.geometry().file_bytes());
        }
        cleared
    }

    /// Stops cleanly: all puts and deletions are on the device. If deletions find no room, they stay in the journal,
    /// and the stop counts as a kill.
    ///
    /// # Errors
    /// The operating system refuses, the next start will not find all that is on the device, or the stop was not clean.
    pub fn stop(&self, flash: &Flash) -> io::Result<()> {
        let mut tombstones = flash.tombstones.lock().expect("no panic under the lock");
        flash.awaits_flusher.store(true, Ordering::Release);
        let deadline = Instant::now() + STOP_WAITS_FOR_ROOM;
        for _ in 0..flash.log.geometry().segments().clamp(3, 1024) {
            if tombstones.retry(&mut flash.log.writer()) {
                // The RAM tier's entries are on flash, too, or need not outlive a stop.
                flash.log.stop()?;
                self.arena.iter().for_each(|arena| arena.remove());
                return flash.log.check_no_gap();
            }
            // If the device refuses, the next attempt will fail.
            let _ = flash.log.flush();
            flash.log.wait_for_room(deadline);
        }
        flash.log.abandon();
        Err(io::Error::other("the device took no deletions: the stop counts as a kill"))
    }
}

/// The indices of the entries to publish: all but refused entries whose key is placed by a later entry of the batch.
/// Their deletion would be appended behind that newer entry, and delete it at the next start.
fn last_placed_or_refused(entries: &[StoredEntry<'_>], placed: &[Option<Placed>]) -> Vec<usize> {
    let all_placed = placed.iter().all(Option::is_some);
    if all_placed || placed.iter().all(Option::is_none) {
        return (0..entries.len()).collect();
    }
    let mut placed_later = HashSet::new();
    let mut changes: Vec<usize> = (0..entries.len())
        .rev()
        .filter(|&i| {
            let hash = entries[i].key.hash().to_bits();
            if placed[i].is_some() {
                placed_later.insert(hash);
                return true;
            }
            !placed_later.contains(&hash)
        })
        .collect();
    changes.reverse();
    changes
}
