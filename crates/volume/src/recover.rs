//! Opening: the checkpoint of the map, and the changes since.

mod missing;

use crate::framing::{Blocks, Entry, Summary, checksum, content_hash};
use crate::map::{Place, mapped};
use crate::running::{Running, SlotUse};
use granary_log::{AlignedBuffer, Recovered};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

impl Running {
    /// Replays the log's changes since the checkpoint, and counts live blocks. `progress` is called with segments:
    /// done, all. Returns whether the log refers to blocks that never reached the device, or has missing or unsealed
    /// segments.
    ///
    /// # Errors
    /// A synced segment is missing or incomplete, or the map points beyond the log; the text tells what is damaged.
    pub fn recover(
        &self,
        recovered: &Recovered<Blocks>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<bool, String> {
        let from = self.checkpointed.load(Ordering::Acquire);
        let newest = recovered.segments.iter().map(|summary| summary.synced).max().unwrap_or(0);
        // Everything in the checkpoint was synced before it was published.
        let synced = newest.max(from.saturating_sub(1));
        self.note_synced(Some(synced));
        let geometry = self.log.geometry();
        let mut buffer = AlignedBuffer::zeroed(geometry.segment_bytes() as usize);
        let all = recovered.segments.len() as u64;
        let mut any_damaged = missing::check(&recovered.segments, from, synced, recovered.durable_sequence)?;
        for (done, summary) in (0..).zip(&recovered.segments) {
            progress(done, all);
            let slot = self.slot_of_block(summary.first_block);
            slot.set_usage(SlotUse::Used);
            if summary.sequence < from {
                continue;
            }
            if !summary.is_sealed && summary.sequence <= synced {
                return Err(format!("the summary of segment {} is damaged", summary.sequence));
            }
            any_damaged |= !summary.is_sealed;
            self.replayed.fetch_add(1, Ordering::Relaxed);
            let summary = self.with_entries(summary)?;
            let damaged =
                if summary.sequence > synced { self.damaged(&summary, &mut buffer) } else { HashSet::new() };
            any_damaged |= !damaged.is_empty();
            self.repeat(&summary, &damaged);
        }
        progress(all, all);
        for (lba, place) in mapped(&*self.map, 0..self.map.blocks()) {
            let block = u64::from(place.block());
            if block >= geometry.blocks() {
                return Err(format!("block {lba} is said to lie beyond the log"));
            }
            let slot = self.slot_of(place);
            if slot.usage() == SlotUse::Free {
                // The slot has no valid segment. Reads of it fail, and it is not overwritten.
                tracing::error!(
                    volume = self.files.name(),
                    block,
                    "a segment is gone that holds live blocks"
                );
                slot.set_usage(SlotUse::Used);
                self.log.retire_slot(geometry.slot_of_block(block));
            }
            slot.live.fetch_add(1, Ordering::Relaxed);
        }
        Ok(any_damaged)
    }

    /// Reads a summary again, now with its entries: all entries at once would take too much RAM.
    fn with_entries(&self, found: &Summary) -> Result<Summary, String> {
        let again = self.summary_of(self.log.geometry().slot_of_block(found.first_block));
        let is_same = |again: &Summary| {
            again.is_read && (again.sequence, again.is_sealed) == (found.sequence, found.is_sealed)
        };
        again
            .filter(is_same)
            .ok_or_else(|| format!("the summary of segment {} cannot be read again", found.sequence))
    }

    /// Replays the entries of a segment, except for blocks that never reached the device; those keep their older place.
    fn repeat(&self, summary: &Summary, damaged: &HashSet<u32>) {
        for (position, entry) in &summary.entries {
            match *entry {
                Entry::Block { lba, .. } if lba < self.map.blocks() && !damaged.contains(position) => {
                    let place = Place::of_block((summary.first_block + u64::from(*position)) as u32);
                    self.map.set(lba, place.expect("the log has fewer blocks than places"));
                }
                Entry::Block { .. } | Entry::Footer { .. } => {}
                Entry::Zeroes { lba, count } => {
                    mapped(&*self.map, lba..lba.saturating_add(count)).for_each(|(lba, _)| {
                        self.map.remove(lba);
                    });
                }
            }
        }
    }

    /// The positions of blocks whose content never reached the device. Unreadable blocks are not included: they may
    /// have been synced, so their reads must fail.
    fn damaged(&self, summary: &Summary, buffer: &mut AlignedBuffer) -> HashSet<u32> {
        let (geometry, size) = (self.log.geometry(), self.block_size());
        let mut unreadable: HashSet<u32> = HashSet::new();
        if self.log.device().read_at(geometry.offset(summary.first_block), buffer).is_err() {
            // One bad sector must not cost the others.
            for (position, bytes) in (0u32..).zip(buffer.chunks_exact_mut(size)) {
                let block = summary.first_block + u64::from(position);
                if self.log.device().read_at(geometry.offset(block), bytes).is_err() {
                    bytes.fill(0);
                    unreadable.insert(position);
                }
            }
        }
        let blocks = buffer.chunks_exact(size);
        let hashes: Vec<u64> = blocks.map(content_hash).collect();
        summary
            .entries
            .iter()
            .filter_map(|(position, entry)| match *entry {
                Entry::Block { lba, checksum: expected } => {
                    let hash = hashes[*position as usize];
                    let right = checksum(self.log.instance(), summary.sequence, lba, hash) == expected;
                    // A synced block reached the device: a wrong checksum is damage, and the map keeps pointing there.
                    let may_be_lost = *position >= summary.synced_position && !unreadable.contains(position);
                    (!right && may_be_lost).then_some(*position)
                }
                _ => None,
            })
            .collect()
    }
}
