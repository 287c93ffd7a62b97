//! Takes over the RAM tier of the last process at the start, beside the content of flash.
//!
//! A valid entry in RAM is the newest of its key: a later put or deletion ended it there before it was acknowledged. So
//! RAM wins, except, write-through, for a change that was under way. docs/format.md, "The RAM tier", has the cases.

use super::reread_summaries;
use crate::codec::{OwnedValue, StoredValue};
use crate::entry::StoredEntry;
use crate::flash::Flash;
use crate::framing::Records;
use crate::key::{KeyHash, parse_summary_entry};
use crate::limits::{PUT_CHUNK, WRITE_AGAIN_SECONDS_MAX};
use crate::memory::shared::FoundChunk;
use crate::memory::{Adopted, FlashCopy};
use crate::partition_state::PartitionState;
use crate::shard::Shard;
use crate::stats::add;
use granary_log::Recovered;
use granary_log::parallel::each_in_parallel;
use granary_log::sync::Mutex;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// A copy of an entry in RAM.
struct Copied {
    key: Vec<u8>,
    value: Option<OwnedValue>,
    expires_at: u32,
}

impl PartitionState {
    /// Takes over the chunks found, by shard. Call it once the index is recovered from flash; `under_way` is the result
    /// of [`under_way`](Self::under_way).
    pub fn adopt_memory(&self, found: Vec<Vec<FoundChunk>>, under_way: Option<&HashSet<KeyHash>>) {
        if !found.iter().all(Vec::is_empty) {
            self.take_over_chunks(found, under_way);
        }
        self.arena.iter().for_each(|arena| arena.end_taking_over());
    }

    fn take_over_chunks(&self, found: Vec<Vec<FoundChunk>>, under_way: Option<&HashSet<KeyHash>>) {
        let begun = Instant::now();
        let taken = Mutex::new(Adopted::default());
        let shards = found.into_iter().enumerate().collect();
        each_in_parallel(shards, |(shard, chunks)| {
            let of_shard = self.take_over_shard(shard, chunks, under_way);
            *taken.lock().expect("no panic under the lock") += of_shard;
        });
        let Adopted { entries, torn_chunks } = taken.into_inner().expect("no panic under the lock");
        add(&self.counters.taken_over, entries);
        let milliseconds = begun.elapsed().as_millis() as u64;
        tracing::info!(
            entries,
            torn_chunks,
            milliseconds,
            "the RAM tier of the process before is taken over"
        );
    }

    /// Write-through, the hashes of records in the segments that the change under way may be in: RAM may have their
    /// older state. `None`: the segments can no longer be read. Call it before they are replayed.
    pub fn under_way(&self, recovered: &Recovered<Records>) -> Option<HashSet<KeyHash>> {
        let Some(flash) = self.flash.as_ref().filter(|flash| flash.dram_first.is_none()) else {
            return Some(HashSet::new());
        };
        let Some(first) = self.arena.as_ref().and_then(|arena| arena.under_way_from()) else {
            return Some(HashSet::new());
        };
        let mut hashes = HashSet::new();
        for segment in recovered.segments.iter().filter(|segment| segment.sequence >= first) {
            let again =
                if segment.is_whole() { None } else { Some(reread_summaries::whole(flash, segment)?) };
            let entries = &again.as_ref().unwrap_or(segment).entries;
            hashes.extend(entries.iter().map(|entry| parse_summary_entry(entry).0));
        }
        Some(hashes)
    }

    fn take_over_shard(
        &self,
        shard: usize,
        chunks: Vec<FoundChunk>,
        under_way: Option<&HashSet<KeyHash>>,
    ) -> Adopted {
        let mut locked = self.lock_shard(shard);
        let Shard { index, memory } = &mut *locked;
        let is_dram_first = self.dram_first().is_some();
        memory.adopt(chunks, |hash| match is_dram_first {
            false if under_way.is_none_or(|hashes| hashes.contains(&hash)) => FlashCopy::Superseded,
            // Write-through, RAM has only copies; lost entries are written again.
            false => FlashCopy::Present,
            // A look-alike is on flash. If it is another key's, this entry leaves RAM too early.
            true if index.any(hash) => FlashCopy::AsFlagged,
            true => FlashCopy::Absent,
        })
    }

    /// Write-through: writes entries in RAM again whose summary entries are given and whose segments did not reach the
    /// device.
    pub fn write_again(&self, flash: &Flash, summary_entries: Vec<u64>) {
        if flash.dram_first.is_some() || self.arena.is_none() {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(WRITE_AGAIN_SECONDS_MAX);
        let mut hashes: Vec<_> =
            summary_entries.into_iter().map(|summary_entry| parse_summary_entry(summary_entry).0).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let mut copied = Vec::new();
        let mut bytes = 0;
        for hash in hashes {
            let shard = self.shard(hash);
            let Some(entry) = shard.memory.find_hash(hash) else { continue };
            bytes += entry.len() as u64;
            let value = entry.value().map(StoredValue::to_owned);
            let key = entry.key.to_vec();
            copied.push(Copied { key, value, expires_at: entry.expires_at });
            drop(shard);
            if bytes > flash.log.geometry().segment_bytes() / 4 || copied.len() == PUT_CHUNK {
                self.write_copied(flash, &copied, deadline);
                copied.clear();
                bytes = 0;
            }
        }
        self.write_copied(flash, &copied, deadline);
    }

    fn write_copied(&self, flash: &Flash, copied: &[Copied], deadline: Instant) {
        flash.log.wait_for_room(deadline);
        let entries: Vec<StoredEntry<'_>> = copied
            .iter()
            .map(|Copied { key, value, expires_at }| StoredEntry {
                key: self.hasher.key(key),
                value: value.as_ref().map(OwnedValue::as_stored),
                expires_at: *expires_at,
            })
            .collect();
        let mut refused = 0;
        self.put_through(flash, &entries, &mut |_, _| refused += 1);
        add(&self.counters.puts_dropped, refused);
    }
}
