//! The cache's reaction when the log reuses or loses a segment.

mod readmission;

use crate::flash::Flash;
use crate::framing::{Records, Summary, block, note_look_alikes};
use crate::key::{RecordKind, parse_summary_entry};
use crate::limits::SHARDS;
use crate::partition_state::PartitionState;
use crate::policy::{Fate, Reinsertion, fate};
use crate::record::newest_entries;
use crate::stats::add;
use granary_log::sync::atomic::Ordering;
use granary_log::{Consumer, OnWriteError};
use std::io;
use std::ops::Range;

impl Consumer<Records> for PartitionState {
    fn reclaim(&self, segment: &Summary) {
        if let Some(flash) = &self.flash {
            if flash.dram_first.is_some() {
                self.take_back(flash, segment);
            } else if flash.reinsertion != Reinsertion::None {
                self.reinsert(flash, segment);
            }
        }
        let evicted = self.remove_segment(segment);
        add(&self.counters.evicted_flash, evicted);
        add(&self.counters.segments_evicted, u64::from(evicted > 0));
    }

    fn reclaim_unread(&self, blocks: Range<u64>) {
        self.note_unindexed();
        for shard in 0..SHARDS {
            let mut shard = self.lock_shard(shard);
            let before = shard.index.table.len();
            shard.index.table.remove_blocks(&blocks);
            add(&self.counters.lost, (before - shard.index.table.len()) as u64);
        }
    }

    fn on_write_error(&self, segment: &Summary, _: &io::Error) -> OnWriteError {
        if self.flash.as_ref().is_some_and(|flash| flash.retries_writes.load(Ordering::Acquire)) {
            return OnWriteError::Retry;
        }
        self.note_unindexed();
        let lost = self.remove_segment(segment);
        add(&self.counters.lost, lost);
        self.flash.iter().for_each(|flash| add(&flash.refused_entries, lost));
        OnWriteError::Drop
    }
}

impl PartitionState {
    /// Notes that flash may have entries that the index does not know: [`Flash::note_unindexed`].
    pub fn note_unindexed(&self) {
        self.flash.iter().for_each(Flash::note_unindexed);
    }

    /// Removes the entries of a segment from the index, unless newer versions are there by now; returns how many left
    /// the cache.
    fn remove_segment(&self, segment: &Summary) -> u64 {
        let mut removed = 0;
        for (block_number, summary_entry) in segment.iter() {
            if let (hash, RecordKind::Entry) = parse_summary_entry(summary_entry) {
                let mut shard = self.shard(hash);
                let is_removed = shard.index.remove(hash, block_number);
                // DRAM first, RAM may have received a copy meanwhile, which is the only one from here on.
                let is_left_in_ram = is_removed && self.is_dram_first() && shard.memory.detach(hash);
                removed += u64::from(is_removed && !is_left_in_ram);
            }
        }
        removed
    }

    /// Appends the entries of a segment again that the policy keeps.
    fn reinsert(&self, flash: &Flash, segment: &Summary) {
        let segment_bytes = flash.log.geometry().segment_bytes();
        let mut kept_bytes = 0;
        let mut last_block = None;
        for (block_number, summary_entry) in segment.iter() {
            let (hash, RecordKind::Entry) = parse_summary_entry(summary_entry) else { continue };
            let mark = self.shard(hash).index.at(hash, block_number);
            let Some(is_found) = mark else { continue };
            if last_block == Some(block_number)
                || fate(flash.reinsertion, is_found, kept_bytes, segment_bytes) == Fate::Drop
            {
                continue;
            }
            // One read serves all entries of the block that are worth keeping.
            last_block = Some(block_number);
            kept_bytes += self.reinsert_block(flash, block_number, segment.sequence, kept_bytes);
        }
    }

    fn reinsert_block(&self, flash: &Flash, block_number: u64, sequence: u64, kept_before: u64) -> u64 {
        let geometry = flash.log.geometry();
        let mut bytes = granary_log::AlignedBuffer::zeroed(geometry.block_size());
        if flash.log.device().read_at(geometry.offset(block_number), &mut bytes).is_err() {
            return 0;
        }
        let Some(header) = block::check(&bytes, flash.log.instance(), block_number) else { return 0 };
        let entries = newest_entries(block::payload(&bytes), header.count);
        let Some(mut tombstones) = flash.tombstones_unless_awaited() else { return 0 };
        let mut writer = flash.log.writer();
        if !tombstones.retry(&mut writer) {
            return 0;
        }
        let (mut kept, now) = (0, self.time());
        for entry in entries {
            let hash = self.hasher.hash(entry.key);
            let mut shard = self.shard(hash);
            let mark = shard.index.at(hash, block_number);
            if header.sequence != sequence || !entry.is_whole() || mark.is_none() || entry.is_expired(now) {
                continue;
            }
            let before = kept_before + kept;
            if fate(flash.reinsertion, mark == Some(true), before, geometry.segment_bytes()) == Fate::Drop {
                continue;
            }
            let appended = flash.append_entry(&mut writer, hash, &[entry.as_bytes()], entry.value());
            let Some(placed) = appended else {
                break;
            };
            shard.index.relocate(hash, block_number, placed.block);
            if shard.index.count(hash) > 1 {
                // It stays beside its look-alikes.
                note_look_alikes(&mut writer, hash.summary_entry(RecordKind::Entry), placed);
            }
            kept += entry.len() as u64;
            add(&self.counters.reinserted, 1);
        }
        kept
    }
}
