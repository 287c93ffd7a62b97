//! Delivers completed reads to the keys that wait for them.

use super::opening::open_reads;
use super::waiting::{LiftedKey, Read, Tables};
use crate::drive::blocking::fetch_long;
use crate::drive::io::Io;
use crate::flash::Flash;
use crate::framing::block::{blocks_spanned, copy_payloads, payload_size};
use crate::key::Key;
use crate::limits::{LOOKUP_ROUNDS_MAX, SIDE_BY_SIDE};
use crate::lookup::{ArrivedBlock, FalsePositive, LongEntry, Lookup, Outcome, Probe, ReadBlocks, Scratch};
use crate::partition_state::PartitionState;
use granary_log::Extent;
use granary_log::sync::atomic::{AtomicBool, Ordering};

/// Handles completed reads of one partition.
pub(super) struct Arriving<'a> {
    shared: &'a PartitionState,
    flash: &'a Flash,
    now: u32,
    tables: &'a mut Tables,
    /// Reads to begin.
    opened: &'a mut Vec<u32>,
}

impl<'a> Arriving<'a> {
    /// For the partition of `shared`.
    pub fn new(
        shared: &'a PartitionState,
        now: u32,
        tables: &'a mut Tables,
        opened: &'a mut Vec<u32>,
    ) -> Self {
        let flash = shared.flash.as_ref().expect("what is read is on flash");
        Self { shared, flash, now, tables, opened }
    }

    /// Delivers the blocks of a completed read, except those at the `unread` offsets.
    pub fn arrive(
        &mut self,
        io: &mut Io,
        scratch: &mut Scratch,
        id: u32,
        (bytes, unread): (&[u8], &[u64]),
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        let read = self.tables.take(id);
        if let Some(len) = read.record_len {
            self.arrive_record(scratch, &read, len, bytes, sink);
            self.has_come(scratch, &read.probes, sink);
            return self.tables.close(id, read);
        }
        let geometry = self.flash.log.geometry();
        for same in read.probes.chunk_by(|a, b| a.block == b.block) {
            let offset = geometry.offset(same[0].block);
            let at = (offset - read.extent.offset) as usize;
            let bytes = bytes.get(at..at + geometry.block_size()).filter(|_| !unread.contains(&offset));
            let blocks = std::iter::once(read.blocks).chain(std::iter::repeat(ReadBlocks::AlreadyReported));
            for (some, blocks) in same.chunks(SIDE_BY_SIDE).zip(blocks) {
                self.arrive_block(io, scratch, (&read, blocks), some, bytes, sink);
                self.has_come(scratch, some, sink);
            }
        }
        self.tables.close(id, read);
    }

    /// Notes for the keys of `probes` that a read of theirs has completed.
    fn has_come(&mut self, scratch: &mut Scratch, probes: &[Probe], sink: &mut dyn FnMut(u64, Outcome<'_>)) {
        for probe in probes {
            let waiting = &mut self.tables.waiting[probe.key as usize];
            waiting.reads -= 1;
            match waiting.reads {
                0 if waiting.answered => self.tables.dismiss(probe.key),
                0 => self.look_again(scratch, probe.key, sink),
                _ => {}
            }
        }
    }

    /// Delivers a block's entries of some waiting keys.
    fn arrive_block(
        &mut self,
        io: &mut Io,
        scratch: &mut Scratch,
        (read, blocks): (&Read, ReadBlocks),
        same: &[Probe],
        bytes: Option<&[u8]>,
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        let waiting = &self.tables.waiting;
        let of = |i: usize| &waiting[same[i.min(same.len() - 1)].key as usize];
        let keys: [Key<'_>; SIDE_BY_SIDE] = std::array::from_fn(|i| of(i).key());
        let probes: [Probe; SIDE_BY_SIDE] =
            std::array::from_fn(|i| Probe { key: i as u32, ..same[i.min(same.len() - 1)] });
        let resolved: [AtomicBool; SIDE_BY_SIDE] = std::array::from_fn(|i| AtomicBool::new(of(i).answered));
        let sink = |i, outcome: Outcome<'_>| sink(of(i).ticket, outcome);
        let mut lookup = Lookup::new(self.shared, &keys[..same.len()], &resolved, self.now, sink);
        lookup.read_blocks = blocks;
        scratch.begin();
        let block = ArrivedBlock { bytes, instance: read.instance, sequence: read.sequence };
        lookup.take_block(self.flash, block, &probes[..same.len()], scratch);
        let geometry = self.flash.log.geometry();
        let longest = granary_log::Io::extent_bytes_max(geometry.block_size());
        let is_too_long =
            |entry: &mut LongEntry| blocks_spanned(geometry, entry.len) * geometry.block_size() > longest;
        let mut long = std::mem::take(&mut scratch.long);
        // Entries longer than any read are waited for.
        scratch.long.extend(long.extract_if(.., is_too_long));
        fetch_long(&mut lookup, self.flash, io, scratch);
        lookup.count();
        for LongEntry { probe, sequence, len } in long.drain(..) {
            if resolved[probe.key as usize].load(Ordering::Relaxed) {
                continue;
            }
            let blocks = blocks_spanned(geometry, len);
            let extent = Extent { offset: geometry.offset(probe.block), len: blocks * geometry.block_size() };
            let opening = self.tables.open(extent, sequence, read.instance);
            self.opened.push(opening);
            let id = same[probe.key as usize].key;
            self.tables.waiting[id as usize].reads += 1;
            let read = &mut self.tables.reads[opening as usize];
            read.record_len = Some(len);
            read.probes.push(Probe { key: id, ..probe });
        }
        scratch.long = long;
        for (probe, resolved) in same.iter().zip(resolved) {
            self.tables.waiting[probe.key as usize].answered = resolved.into_inner();
        }
        for false_positive in &scratch.false_positives {
            let waiting = &mut self.tables.waiting[same[false_positive.key as usize].key as usize];
            waiting.false_positives.push(FalsePositive { key: 0, ..*false_positive });
        }
    }

    /// Delivers an entry over several blocks, all of which were read.
    fn arrive_record(
        &mut self,
        scratch: &mut Scratch,
        read: &Read,
        len: usize,
        bytes: &[u8],
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        let probe = read.probes[0];
        let waiting = &self.tables.waiting[probe.key as usize];
        if waiting.answered {
            return;
        }
        let geometry = self.flash.log.geometry();
        let mut record = std::mem::take(&mut scratch.record);
        let blocks = blocks_spanned(geometry, len);
        record.resize(blocks * payload_size(geometry), 0);
        let of = (read.instance, probe.block, read.sequence);
        let is_whole = copy_payloads(geometry, bytes, of, &mut record) == blocks;
        let (keys, resolved) = ([waiting.key()], [AtomicBool::new(false)]);
        let sink = |_, outcome: Outcome<'_>| sink(waiting.ticket, outcome);
        let mut lookup = Lookup::new(self.shared, &keys, &resolved, self.now, sink);
        scratch.begin();
        let entry = LongEntry { probe: Probe { key: 0, ..probe }, sequence: read.sequence, len };
        lookup.take_long(self.flash, entry, is_whole.then_some(&record[..len]), scratch);
        lookup.count();
        scratch.record = record;
        let [resolved] = resolved;
        let waiting = &mut self.tables.waiting[probe.key as usize];
        waiting.answered = resolved.into_inner();
        waiting.false_positives.append(&mut scratch.false_positives);
    }

    /// Plans a key again that was not found where the index pointed.
    fn look_again(&mut self, scratch: &mut Scratch, id: u32, sink: &mut dyn FnMut(u64, Outcome<'_>)) {
        scratch.begin();
        // Taken out of the table while it is planned, for it may begin to wait again.
        let LiftedKey { ticket, bytes, hash, round } = self.tables.lift(id, &mut scratch.false_positives);
        let keys = [Key::hashed(hash, &bytes)];
        let resolved = [AtomicBool::new(false)];
        let sink = |_, outcome: Outcome<'_>| sink(ticket, outcome);
        let mut lookup = Lookup::new(self.shared, &keys, &resolved, self.now, sink);
        lookup.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
        if !scratch.probes.is_empty() {
            open_reads(&mut lookup, self.flash, scratch, self.tables, self.opened, round + 1, |_, _| id);
        }
        lookup.count();
        self.tables.put_back(id, bytes);
    }
}
