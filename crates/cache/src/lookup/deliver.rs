//! The third step: a block that was read is checked, searched for the keys, and their entries are delivered.

use super::begun_reads::BegunReads;
use super::outcome::{Outcome, Tier};
use super::probe::{FalsePositive, LongEntry, Probe};
use super::reads::BlocksOfRead;
use super::scratch::Scratch;
use super::search::Search;
use super::{Lookup, ReadBlocks};
use crate::blocks::{Block, Saving};
use crate::flash::Flash;
use crate::framing::block::{self, BlockHeader};
use crate::key::Key;
use crate::memory::entry::cost as entry_cost;
use crate::policy::{Promotion, found_marks_cleared, promotion};
use crate::record::{EntryRecord, Record, find_last, parse};
use crate::shard::Shard;
use crate::stats::add;
use granary_log::Extent;
use granary_log::prefetch::prefetch;

/// A block from the device, with the instance and segment that it should be of.
pub(crate) struct ArrivedBlock<'a> {
    /// `None`: it could not be read.
    pub bytes: Option<&'a [u8]>,
    pub instance: u64,
    pub sequence: u64,
}

/// The reason why a block is invalid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bad {
    /// Another block has been written there.
    Overwritten,
    /// It could not be read; a later read may succeed.
    Unread,
}

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Delivers the blocks of the `read`-th planned read, except those at the `unread` offsets. Entries over several
    /// blocks are noted in [`Scratch::long`].
    pub fn take_read(
        &mut self,
        flash: &Flash,
        begun: &BegunReads,
        (read, extent): (usize, Extent),
        (bytes, unread): (&[u8], &[u64]),
        scratch: &mut Scratch,
    ) {
        let size = flash.log.geometry().block_size();
        let instance = flash.log.instance();
        let probes = std::mem::take(&mut scratch.probes);
        let on_device = std::mem::take(&mut scratch.on_device);
        let mut blocks = BlocksOfRead::new(&probes, &on_device, scratch.reads[read]);
        for at in (0..extent.len).step_by(size) {
            let offset = extent.offset + at as u64;
            let Some((probes, sequence)) = blocks.take_probes(flash, offset) else { continue };
            // Blocks whose read began before all keys were planned may have been overwritten meanwhile: the keys are
            // looked up again.
            if read < begun.extents.len() && !begun.covers(offset, sequence) {
                continue;
            }
            let bytes = bytes.get(at..at + size).filter(|_| !unread.contains(&offset));
            self.take_block(flash, ArrivedBlock { bytes, instance, sequence }, probes, scratch);
        }
        (scratch.probes, scratch.on_device) = (probes, on_device);
    }

    /// Checks a block, and delivers its entries of the probes' keys.
    pub fn take_block(
        &mut self,
        flash: &Flash,
        ArrivedBlock { bytes, instance, sequence }: ArrivedBlock<'_>,
        probes: &[Probe],
        scratch: &mut Scratch,
    ) {
        let block_number = probes[0].block;
        match bytes.and_then(|bytes| Some((block::check(bytes, instance, block_number)?, bytes))) {
            Some((header, bytes)) if header.sequence == sequence => {
                let long = scratch.long.len();
                self.deliver_block(flash, header, block::payload(bytes), probes, scratch);
                if scratch.long.len() == long {
                    self.keep_block(bytes, sequence, probes);
                }
            }
            // Another block is there, or zeros that recovery wrote: the expected one is gone for good.
            Some(_) => self.bad_block(flash, probes, sequence, Bad::Overwritten, scratch),
            None if bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) => {
                self.bad_block(flash, probes, sequence, Bad::Overwritten, scratch);
            }
            None => self.bad_block(flash, probes, sequence, Bad::Unread, scratch),
        }
    }

    /// Counts a block that was not in RAM, and has the RAM tier keep it.
    fn keep_block(&mut self, bytes: &[u8], sequence: u64, probes: &[Probe]) {
        let Some(blocks) =
            self.shared.blocks.as_ref().filter(|_| self.read_blocks != ReadBlocks::AlreadyReported)
        else {
            return;
        };
        let block_number = probes[0].block;
        let misses = &mut self.counts.of_blocks;
        misses.reads += 1;
        let saving = match (self.shared.entries_return(self.keys, probes), blocks.returns(block_number)) {
            (true, false) => Saving::Entries,
            (true, true) => Saving::EntriesOrBlocks,
            (false, returns) => {
                misses.ghost_blocks += u64::from(returns);
                Saving::NotEntries
            }
        };
        misses.ghost_entries += i64::from(saving != Saving::NotEntries);
        if self.read_blocks == ReadBlocks::Noted {
            blocks.note(block_number);
        } else {
            let block = Block { block_number, sequence, bytes, saving };
            blocks.keep(block, || self.shared.make_room_for_blocks(blocks));
        }
    }

    fn deliver_block(
        &mut self,
        flash: &Flash,
        BlockHeader { sequence, count }: BlockHeader,
        payload: &[u8],
        probes: &[Probe],
        scratch: &mut Scratch,
    ) {
        let Scratch { false_positives, search, long, .. } = scratch;
        let block = search_block(self.keys, payload, count, probes, search);
        for (i, probe) in probes.iter().enumerate() {
            let Some(entry) = block.found(i) else {
                add(&self.shared.counters.false_finds, 1);
                false_positives.push(FalsePositive { key: probe.key, block: probe.block, sequence });
                continue;
            };
            if !entry.is_whole() {
                long.push(LongEntry { probe: *probe, sequence, len: entry.len() });
            } else if self.resolve(probe.key) {
                self.deliver_stored(flash, *probe, sequence, &entry);
            }
        }
    }

    /// Delivers an entry over several blocks; `record` is `None` if it could not be read.
    pub fn take_long(
        &mut self,
        flash: &Flash,
        LongEntry { probe, sequence, .. }: LongEntry,
        record: Option<&[u8]>,
        scratch: &mut Scratch,
    ) {
        let Some(record) = record else {
            return self.bad_block(flash, &[probe], sequence, Bad::Unread, scratch);
        };
        if !self.resolve(probe.key) {
            return;
        }
        let blocks = block::blocks_spanned(flash.log.geometry(), record.len()) as u64;
        add(&self.shared.counters.block_reads, blocks);
        add(&self.shared.counters.bytes_read, blocks * flash.log.geometry().block_size() as u64);
        match parse(record) {
            Some(Record::Entry(entry)) => self.deliver_stored(flash, probe, sequence, &entry),
            _ => self.miss(probe.key),
        }
    }

    fn deliver_stored(&mut self, flash: &Flash, probe: Probe, sequence: u64, entry: &EntryRecord<'_>) {
        self.deliver(probe.key, Tier::Flash, entry.value(), entry.expires_at);
        self.promote(flash, probe, sequence, entry);
    }

    /// Copies an entry just read to the RAM tier if it belongs there, and if it is still the current one: the index has
    /// it there, and its segment was not overwritten meanwhile.
    pub(super) fn promote(&self, flash: &Flash, probe: Probe, sequence: u64, entry: &EntryRecord<'_>) {
        let promoted =
            |has_room| promotion(self.shared.memory_bytes, probe.is_found, has_room) == Promotion::Promote;
        // Most entries are left without the shard's lock.
        let may_have_room = self.shared.may_have_room();
        if !promoted(may_have_room) {
            return;
        }
        let key = self.keys[probe.key as usize];
        let mut shard = self.shared.shard(key.hash());
        let has_room = may_have_room && shard.memory.has_room(entry.len());
        if promoted(has_room)
            && flash.log.sequence_of(probe.block) == sequence
            && self.shared.has_room_for_copy(flash, entry.len() as u64)
            && shard.index.at(key.hash(), probe.block).is_some()
            // Another lookup, or the same key before in this one, may have copied it meanwhile.
            && !shard.memory.contains(key)
        {
            let Shard { index, memory } = &mut *shard;
            let kept = self.shared.copy_to_memory(memory, key, entry.value(), entry.expires_at);
            add(&self.shared.counters.promoted, u64::from(kept));
            if kept && !has_room && !self.shared.is_dram_first() {
                let bytes = entry_cost(entry.len());
                let part = found_marks_cleared(flash.reinsertion, bytes, self.shared.pool.share());
                index.table.clear_found_marks(part);
            }
        }
    }

    /// Handles a block that is not the one in the index: it was overwritten, or is damaged.
    fn bad_block(&mut self, flash: &Flash, probes: &[Probe], sequence: u64, bad: Bad, scratch: &mut Scratch) {
        // The index forgets blocks before they are overwritten, and all before the cache is cleared: only a block that
        // it still has is damaged.
        let mut damaged = false;
        for probe in probes {
            damaged |= self.remove_block(flash, self.keys[probe.key as usize], probe.block, sequence, bad);
            scratch.false_positives.push(FalsePositive { key: probe.key, block: probe.block, sequence: 0 });
        }
        add(&self.shared.counters.corrupt_blocks, u64::from(damaged));
    }

    /// Removes an invalid block of segment `sequence` from the index. Returns whether the index had it.
    fn remove_block(&self, flash: &Flash, key: Key<'_>, block_number: u64, sequence: u64, bad: Bad) -> bool {
        let mut shard = self.shared.shard(key.hash());
        // Checked under the lock: entries of the slot's next segment must stay.
        let removed =
            flash.log.sequence_of(block_number) == sequence && shard.index.remove(key.hash(), block_number);
        if removed && bad == Bad::Unread {
            // Under the lock, too: the next change of the key must know that the entry may be there.
            flash.note_unindexed();
        }
        add(&self.shared.counters.lost, u64::from(removed));
        removed
    }
}

/// One checked block that keys were looked up in.
pub(super) struct SearchedBlock<'a> {
    payload: &'a [u8],
    found: Matches<'a>,
}

enum Matches<'a> {
    /// The entry of the only key.
    One(Option<EntryRecord<'a>>),
    Many(&'a Search),
}

/// Searches a block for the keys of `probes`.
#[inline]
pub(super) fn search_block<'b>(
    keys: &[Key<'_>],
    payload: &'b [u8],
    count: u16,
    probes: &[Probe],
    search: &'b mut Search,
) -> SearchedBlock<'b> {
    let key = |probe: &Probe| keys[probe.key as usize].bytes();
    if let [probe] = probes {
        return SearchedBlock { payload, found: Matches::One(find_last(payload, count, key(probe))) };
    }
    let digests = probes.iter().map(|probe| {
        // The key is compared when a record looks like it.
        prefetch(key(probe));
        probe.digest
    });
    search.run(payload, count, digests, |i| key(&probes[i]));
    SearchedBlock { payload, found: Matches::Many(search) }
}

impl<'a> SearchedBlock<'a> {
    /// The newest entry of the `i`-th probe's key.
    #[inline(always)]
    pub fn found(&self, i: usize) -> Option<EntryRecord<'a>> {
        match self.found {
            Matches::One(entry) => entry,
            Matches::Many(search) => search.found(self.payload, i),
        }
    }
}
