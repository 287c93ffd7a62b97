//! The second step for blocks in write buffers and in the RAM tier: they are searched at once.

use super::deliver::search_block;
use super::order::order;
use super::outcome::{Outcome, Tier};
use super::probe::{FalsePositive, OnDevice, Probe};
use super::scratch::Scratch;
use super::{Lookup, ReadBlocks};
use crate::blocks::{Blocks, Find, Saving};
use crate::flash::Flash;
use crate::framing::block::{self, payload_size};
use crate::framing::{Records, is_settled, records_in};
use crate::limits::LOCKED_BLOCKS;
use crate::memory::entry::cost as entry_cost;
use crate::policy::Promotion;
use crate::record::{Record, parse};
use granary_log::{Location, Segment, SegmentReader};

impl<'a, S: FnMut(usize, Outcome<'_>)> Lookup<'a, S> {
    /// Sorts the probes by block, and answers those in write buffers or in blocks of the RAM tier; notes which are on
    /// the device.
    pub fn fetch_buffered(&mut self, flash: &Flash, scratch: &mut Scratch) {
        let geometry = flash.log.geometry();
        order(&mut scratch.probes, &mut scratch.sorting);
        scratch.on_device.clear();
        let mut probes = std::mem::take(&mut scratch.probes);
        let blocks = self.blocks_for(&probes);
        let (mut start, mut kept) = (0, 0);
        while start < probes.len() {
            let slot = geometry.slot_of_block(probes[start].block);
            let is_same_slot = |probe: &Probe| geometry.slot_of_block(probe.block) == slot;
            let end = start + probes[start..].iter().take_while(|probe| is_same_slot(probe)).count();
            let location = flash.log.locate(probes[start].block);
            let first = kept;
            while start < end {
                let rest = &probes[start..end];
                let (searched, are_answered) = match (&location, blocks) {
                    (Location::WriteBuffer(segment), _) => {
                        let searched = self.search_buffer(flash, segment, rest, scratch);
                        self.deliver_answers(scratch);
                        (searched, true)
                    }
                    (Location::Device { sequence }, Some(blocks)) => {
                        let same = of_one_block(rest);
                        (same.len(), self.search_ram_block(flash, blocks, *sequence, same, scratch))
                    }
                    (Location::Device { .. }, None) => (rest.len(), false),
                };
                let next = start + searched;
                if !are_answered {
                    probes.copy_within(start..next, kept);
                    kept += next - start;
                }
                start = next;
            }
            if let Location::Device { sequence } = location
                && kept > first
            {
                scratch.on_device.push(OnDevice { range: first..kept, sequence });
            }
        }
        probes.truncate(kept);
        scratch.probes = probes;
    }

    /// The blocks of the RAM tier, if these sorted probes need no more of them than it keeps.
    fn blocks_for(&mut self, probes: &[Probe]) -> Option<&'a Blocks> {
        let blocks = self.shared.blocks.as_ref()?;
        let capacity = blocks.capacity();
        let are_many = |probes: &[Probe]| probes.chunk_by(|a, b| a.block == b.block).count() > capacity;
        let is_crowd = probes.len() > capacity && are_many(probes);
        self.read_blocks = if is_crowd { ReadBlocks::Noted } else { ReadBlocks::Offered };
        (!is_crowd).then_some(blocks)
    }

    /// Searches a block of the RAM tier for the probes' keys; `false`: it is not in RAM, or an entry reaches beyond it.
    fn search_ram_block(
        &mut self,
        flash: &Flash,
        blocks: &Blocks,
        sequence: u64,
        probes: &[Probe],
        scratch: &mut Scratch,
    ) -> bool {
        let block_number = probes[0].block;
        let Scratch { answers, false_positives, search, record, .. } = scratch;
        let (mut promoted, mut reaches_beyond, mut entry_bytes) = (None, false, 0);
        record.clear();
        let is_ghost = || self.shared.are_ghosts(self.keys, probes);
        let find = blocks.find(block_number, sequence, is_ghost, |bytes, promotion| {
            let count = block::noted(bytes).count;
            let found = search_block(self.keys, block::payload(bytes), count, probes, search);
            for (i, probe) in probes.iter().enumerate() {
                let Some(entry) = found.found(i) else {
                    false_positives.push(FalsePositive { key: probe.key, block: block_number, sequence });
                    continue;
                };
                if !entry.is_whole() {
                    reaches_beyond = true;
                } else if self.resolve(probe.key) {
                    answers.entry(probe.key, Tier::Block, entry.value(), entry.expires_at);
                    entry_bytes += entry_cost(entry.len());
                    if promotion == Promotion::Promote && probe.is_found && promoted.is_none() {
                        record.extend_from_slice(entry.as_bytes());
                        promoted = Some(*probe);
                    }
                }
            }
        });
        if let Some(Find { counted_anew, is_new_visit }) = find {
            let misses = &mut self.counts.of_blocks;
            misses.ghost_entries -= i64::from(counted_anew != Saving::NotEntries);
            misses.ghost_blocks += u64::from(counted_anew == Saving::EntriesOrBlocks);
            if is_new_visit && promoted.is_none() {
                self.shared.note_as_ghosts(self.keys, probes, entry_bytes);
            }
        }
        self.deliver_answers(scratch);
        if let Some(probe) = promoted
            && let Some(Record::Entry(entry)) = parse(&scratch.record)
        {
            self.promote(flash, probe, sequence, &entry);
        }
        find.is_some() && !reaches_beyond
    }

    /// Copies the probes' entries from blocks of a write buffer while that is locked. Returns how many probes were
    /// looked up: those of whole blocks, until there are many copies.
    fn search_buffer(
        &self,
        flash: &Flash,
        segment: &Segment<Records>,
        probes: &[Probe],
        scratch: &mut Scratch,
    ) -> usize {
        let segment = segment.read();
        let mut searched = 0;
        for same in probes.chunk_by(|a, b| a.block == b.block).take(LOCKED_BLOCKS) {
            self.search_buffered_block(flash, &segment, same, scratch);
            searched += same.len();
            if scratch.answers.are_many() {
                break;
            }
        }
        searched
    }

    fn search_buffered_block(
        &self,
        flash: &Flash,
        segment: &SegmentReader<'_, Records>,
        probes: &[Probe],
        scratch: &mut Scratch,
    ) {
        let geometry = flash.log.geometry();
        let (size, payload) = (geometry.block_size(), payload_size(geometry));
        let Scratch { answers, false_positives, record, search, .. } = scratch;
        let block_number = probes[0].block;
        let Some((count, bytes)) = records_in(segment, block_number) else {
            let untrue = |probe: &Probe| FalsePositive { key: probe.key, block: block_number, sequence: 0 };
            return false_positives.extend(probes.iter().map(untrue));
        };
        // The block being filled may hold the key a moment later: a miss there is no collision.
        let sequence = if is_settled(segment, block_number) { segment.sequence() } else { 0 };
        let payload = &block::payload(bytes)[..payload];
        let block = search_block(self.keys, payload, count, probes, search);
        for (i, probe) in probes.iter().enumerate() {
            let Some(entry) = block.found(i) else {
                false_positives.push(FalsePositive { key: probe.key, block: block_number, sequence });
                continue;
            };
            if !self.resolve(probe.key) {
                continue;
            }
            if entry.is_whole() {
                answers.entry(probe.key, Tier::Buffer, entry.value(), entry.expires_at);
                continue;
            }
            record.clear();
            let payloads = bytes.chunks_exact(size).map(block::payload);
            payloads
                .take(entry.len().div_ceil(payload.len()))
                .for_each(|part| record.extend_from_slice(part));
            match parse(record) {
                Some(Record::Entry(entry)) => {
                    answers.entry(probe.key, Tier::Buffer, entry.value(), entry.expires_at);
                }
                _ => answers.miss(probe.key),
            }
        }
    }
}

/// The leading probes of sorted ones that are of the same block.
fn of_one_block(probes: &[Probe]) -> &[Probe] {
    let block_number = probes[0].block;
    &probes[..probes.iter().take_while(|probe| probe.block == block_number).count()]
}
