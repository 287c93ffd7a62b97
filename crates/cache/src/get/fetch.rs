//! The second and third pass: read each block once, check it, find the keys, hand them over.

use super::ahead::Ahead;
use super::io::Io;
use super::order::order;
use super::room::Scratch;
use super::{FalsePositive, Lookup, Outcome, Probe, Tier};
use crate::framing::block::{self, payload_size};
use crate::framing::{Placed, Records, is_settled, records_in};
use crate::partition::Flash;
use crate::policy::{Promotion, promotion};
use crate::prefetch::prefetch;
use crate::record::{EntryRecord, Record, find_last};
use crate::search::Search;
use crate::stats::add;
use granary_log::{Extent, Location, ReadAhead, Segment};
use std::ops::Range;

/// Wants of one segment on the device: `probes[range]`, to be read as segment `sequence`.
pub(super) struct OnDevice {
    pub range: Range<usize>,
    pub sequence: u64,
}

/// An entry over several blocks whose first block has been seen.
pub(super) struct Long {
    pub want: Probe,
    pub sequence: u64,
}

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    pub(super) fn fetch(&mut self, flash: &Flash, io: &mut Io, scratch: &mut Scratch) {
        let long = self.fetch_with(flash, io.read_ahead(flash, &[]), &Ahead::default(), scratch);
        self.deliver_long_ones(flash, io, long, scratch);
    }

    /// The same where some reads were begun; gives the entries over several blocks, which are still to be read.
    pub(super) fn fetch_with(
        &mut self,
        flash: &Flash,
        reads: ReadAhead<'_>,
        ahead: &Ahead,
        scratch: &mut Scratch,
    ) -> Vec<Long> {
        let (probes, on_device) = self.fetch_from_buffers(flash, scratch);
        let long = self.fetch_stored(flash, reads, ahead, (&probes, &on_device), scratch);
        scratch.probes = probes;
        long
    }

    pub(super) fn deliver_long_ones(
        &mut self,
        flash: &Flash,
        io: &mut Io,
        long: Vec<Long>,
        scratch: &mut Scratch,
    ) {
        for Long { want, sequence } in long {
            self.deliver_long(flash, io, want, sequence, scratch);
        }
    }

    /// Sorts the wants by place, and answers those that lie in write buffers; gives all of them, and which
    /// are on the device.
    pub(super) fn fetch_from_buffers(
        &mut self,
        flash: &Flash,
        scratch: &mut Scratch,
    ) -> (Vec<Probe>, Vec<OnDevice>) {
        let geometry = flash.log.geometry();
        order(&mut scratch.probes, &mut scratch.spare);
        let probes = std::mem::take(&mut scratch.probes);
        let mut on_device: Vec<OnDevice> = Vec::new();
        let mut start = 0;
        for same in probes.chunk_by(|a, b| geometry.slot_of_block(a.place) == geometry.slot_of_block(b.place))
        {
            let range = start..start + same.len();
            start = range.end;
            match flash.log.locate(same[0].place) {
                Location::Memory(segment) => self.fetch_buffered(flash, &segment, same, scratch),
                Location::Device { sequence } => on_device.push(OnDevice { range, sequence }),
            }
        }
        (probes, on_device)
    }

    fn fetch_buffered(
        &mut self,
        flash: &Flash,
        segment: &Segment<Records>,
        probes: &[Probe],
        scratch: &mut Scratch,
    ) {
        let geometry = flash.log.geometry();
        let (size, payload) = (geometry.block_size(), payload_size(geometry));
        let segment = segment.read();
        let Scratch { false_positives, record, search, .. } = scratch;
        for same in probes.chunk_by(|a, b| a.place == b.place) {
            let Some((count, bytes)) = records_in(&segment, same[0].place) else {
                false_positives.extend(same.iter().map(|w| FalsePositive {
                    key: w.key,
                    place: w.place,
                    sequence: 0,
                }));
                continue;
            };
            let payload = &block::payload(bytes)[..payload];
            let block = self.search(payload, count, same, search);
            for (i, want) in same.iter().enumerate() {
                // What the block that is being filled does not hold, it may hold a moment later: that is no collision.
                let settled = is_settled(&segment, want.place);
                let sequence = if settled { segment.sequence() } else { 0 };
                let untrue = FalsePositive { key: want.key, place: want.place, sequence };
                let Some(entry) = block.found(i) else {
                    false_positives.push(untrue);
                    continue;
                };
                if !self.resolve(want.key) {
                    continue;
                }
                if entry.is_whole() {
                    self.deliver(want.key, Tier::Buffer, entry.value(), entry.expires_at);
                } else {
                    record.clear();
                    let payloads = bytes.chunks_exact(size).map(block::payload);
                    for part in payloads.take(entry.len().div_ceil(payload.len())) {
                        record.extend_from_slice(part);
                    }
                    self.deliver_record(want.key, Tier::Buffer, record);
                }
            }
        }
    }

    fn fetch_stored(
        &mut self,
        flash: &Flash,
        reads: ReadAhead<'_>,
        ahead: &Ahead,
        (probes, on_device): (&[Probe], &[OnDevice]),
        scratch: &mut Scratch,
    ) -> Vec<Long> {
        let geometry = *flash.log.geometry();
        let size = geometry.block_size();
        let longest = Io::extent_bytes_max(size);
        // `firsts[e]`: the first want of extent e, and its segment.
        let first = |extent: &Extent| {
            let at = probes.partition_point(|want| geometry.offset(want.place) < extent.offset);
            (at, on_device.partition_point(|segment| segment.range.end <= at))
        };
        let mut firsts: Vec<(usize, usize)> = ahead.extents().iter().map(first).collect();
        scratch.extents.clear();
        scratch.extents.extend_from_slice(ahead.extents());
        // Of the others, neighbouring blocks share a read.
        let begun = firsts.len();
        let mut blocks = ahead.blocks() as u64;
        for (s, segment) in on_device.iter().enumerate() {
            let mut at = segment.range.start;
            for same in probes[segment.range.clone()].chunk_by(|a, b| a.place == b.place) {
                let (offset, next) = (geometry.offset(same[0].place), at + same.len());
                if ahead.brings(offset, segment.sequence) {
                    at = next;
                    continue;
                }
                blocks += 1;
                match scratch.extents[begun..].last_mut() {
                    Some(last) if last.offset + last.len as u64 == offset && last.len + size <= longest => {
                        last.len += size;
                    }
                    _ => {
                        scratch.extents.push(Extent { offset, len: size });
                        firsts.push((at, s));
                    }
                }
                at = next;
            }
        }
        let counters = &self.shared.counters;
        add(&counters.block_reads, blocks);
        add(&counters.reads, scratch.extents.len() as u64);
        add(&counters.bytes_read, blocks * size as u64);
        let extents = std::mem::take(&mut scratch.extents);
        let mut long = Vec::new();
        let instance = flash.log.instance();
        reads.read_many(&extents, |e, result| {
            let (mut at, mut s) = firsts[e];
            let bytes = result.unwrap_or(&[]);
            for i in 0..extents[e].len / size {
                let (offset, start) = (extents[e].offset + (i * size) as u64, at);
                at += probes[at..].iter().take_while(|want| geometry.offset(want.place) == offset).count();
                s += on_device[s..].iter().take_while(|segment| segment.range.end <= start).count();
                // What was begun before the rest was planned may hold blocks that nobody wants, or not any more.
                let Some(segment) = on_device.get(s).filter(|segment| segment.range.contains(&start)) else {
                    continue;
                };
                let (same, sequence) = (&probes[start..at], segment.sequence);
                if same.is_empty() || e < begun && !ahead.brings(offset, sequence) {
                    continue;
                }
                let block = Arrived { bytes: bytes.get(i * size..(i + 1) * size), instance, sequence };
                self.take_block(flash, block, same, scratch, &mut long);
            }
        });
        scratch.extents = extents;
        long
    }

    /// Checks a block that keys are wanted of, and delivers what it has of them.
    pub(super) fn take_block(
        &mut self,
        flash: &Flash,
        Arrived { bytes, instance, sequence }: Arrived<'_>,
        probes: &[Probe],
        scratch: &mut Scratch,
        long: &mut Vec<Long>,
    ) {
        let place = probes[0].place;
        match bytes.and_then(|bytes| Some((block::check(bytes, instance, place)?, bytes))) {
            Some((header, bytes)) if header.sequence == sequence => {
                let block = Checked { payload: block::payload(bytes), count: header.count, sequence };
                self.deliver_block(flash, block, probes, scratch, long);
            }
            // Another block, or one that recovery wiped out, is there for good.
            Some(_) => self.bad_block(flash, probes, sequence, Bad::Overwritten, scratch),
            None if bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) => {
                self.bad_block(flash, probes, sequence, Bad::Overwritten, scratch);
            }
            None => self.bad_block(flash, probes, sequence, Bad::Unread, scratch),
        }
    }

    fn deliver_block(
        &mut self,
        flash: &Flash,
        Checked { payload, count, sequence }: Checked<'_>,
        probes: &[Probe],
        scratch: &mut Scratch,
        long: &mut Vec<Long>,
    ) {
        let Scratch { false_positives, search, .. } = scratch;
        let block = self.search(payload, count, probes, search);
        for (i, want) in probes.iter().enumerate() {
            let key = self.keys[want.key as usize];
            let Some(entry) = block.found(i) else {
                add(&self.shared.counters.false_finds, 1);
                false_positives.push(FalsePositive { key: want.key, place: want.place, sequence });
                continue;
            };
            if !entry.is_whole() {
                long.push(Long { want: *want, sequence });
                continue;
            }
            if !self.resolve(want.key) {
                continue;
            }
            self.deliver(want.key, Tier::Flash, entry.value(), entry.expires_at);
            if promotion(self.shared.memory_bytes, want.recent) == Promotion::Promote {
                let at = Placed { sequence, block: want.place };
                self.shared.promote(flash, key, at, entry.value(), entry.expires_at);
            }
        }
    }

    /// Looks a block through for the keys that are wanted of it.
    #[inline]
    fn search<'b>(
        &self,
        payload: &'b [u8],
        count: u16,
        probes: &[Probe],
        search: &'b mut Search,
    ) -> Block<'b> {
        let key = |want: &Probe| self.keys[want.key as usize].bytes();
        if let [want] = probes {
            return Block { payload, found: Found::One(find_last(payload, count, key(want))) };
        }
        let digests = probes.iter().map(|want| {
            // It is compared when a record looks like it.
            prefetch(key(want));
            want.digest
        });
        search.run(payload, count, digests, |i| key(&probes[i]));
        Block { payload, found: Found::Many(search) }
    }

    /// Not the block that the index spoke of: it was overwritten since, or it is damaged.
    fn bad_block(&mut self, flash: &Flash, probes: &[Probe], sequence: u64, bad: Bad, scratch: &mut Scratch) {
        let is_current = flash.log.sequence_of(probes[0].place) == sequence;
        if is_current && bad == Bad::Unread {
            flash.note_unindexed();
        }
        // The index forgets what is overwritten, and all when the cache is cleared, before the device does: only a block
        // that it still speaks of is damaged.
        let mut damaged = false;
        for want in probes {
            damaged |= is_current && self.shared.forget_place(self.keys[want.key as usize], want.place);
            scratch.false_positives.push(FalsePositive { key: want.key, place: want.place, sequence: 0 });
        }
        add(&self.shared.counters.corrupt_blocks, u64::from(damaged));
    }

    pub(super) fn deliver_long(
        &mut self,
        flash: &Flash,
        io: &mut Io,
        want: Probe,
        sequence: u64,
        scratch: &mut Scratch,
    ) {
        let mut record = std::mem::take(&mut scratch.record);
        if io.read_record(flash, want.place, sequence, &mut record).is_none() {
            self.bad_block(flash, &[want], sequence, Bad::Unread, scratch);
        } else if self.resolve(want.key) {
            let blocks = super::blocks_spanned(flash, record.len()) as u64;
            add(&self.shared.counters.block_reads, blocks);
            add(&self.shared.counters.bytes_read, blocks * flash.log.geometry().block_size() as u64);
            self.deliver_record(want.key, Tier::Flash, &record);
            if let Some(Record::Entry(entry)) = crate::record::parse(&record)
                && promotion(self.shared.memory_bytes, want.recent) == Promotion::Promote
            {
                let key = self.keys[want.key as usize];
                let at = Placed { sequence, block: want.place };
                self.shared.promote(flash, key, at, entry.value(), entry.expires_at);
            }
        }
        scratch.record = record;
    }

    fn deliver_record(&mut self, key: u32, tier: Tier, record: &[u8]) {
        match crate::record::parse(record) {
            Some(Record::Entry(entry)) => self.deliver(key, tier, entry.value(), entry.expires_at),
            _ => self.miss(key),
        }
    }
}

/// What is wrong with a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bad {
    /// What was there is gone.
    Overwritten,
    /// It could not be read, and may be the next time.
    Unread,
}

/// A block from the device: of which instance and segment it should be.
pub(super) struct Arrived<'a> {
    /// `None`: it could not be read.
    pub bytes: Option<&'a [u8]>,
    pub instance: u64,
    pub sequence: u64,
}

/// A block from the device that is what it should be.
struct Checked<'a> {
    payload: &'a [u8],
    count: u16,
    sequence: u64,
}

/// One checked block that keys were looked up in.
struct Block<'a> {
    payload: &'a [u8],
    found: Found<'a>,
}

enum Found<'a> {
    /// Of the only key.
    One(Option<EntryRecord<'a>>),
    Many(&'a Search),
}

impl<'a> Block<'a> {
    /// The newest entry of the `i`-th key.
    #[inline]
    fn found(&self, i: usize) -> Option<EntryRecord<'a>> {
        match &self.found {
            Found::One(entry) => *entry,
            Found::Many(search) => search.found(self.payload, i),
        }
    }
}
