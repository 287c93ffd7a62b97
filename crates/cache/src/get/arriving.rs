//! What reads bring to keys that wait for them.

use super::fetch::Arrived;
use super::room::Scratch;
use super::waiting::{Read, Tables, Waiting};
use super::{Counts, FalsePositive, Io, Lookup, Outcome, Probe};
use crate::key::Key;
use crate::limits::{LOOKUP_ROUNDS_MAX, SIDE_BY_SIDE};
use crate::partition::{Flash, Shared};
use granary_log::sync::sync::atomic::AtomicBool;

/// Keys whose reads have come.
pub(super) struct Arriving<'a> {
    shared: &'a Shared,
    flash: &'a Flash,
    now: u32,
    sample_threshold: u64,
    counts: Counts,
    tables: &'a mut Tables,
}

impl<'a> Arriving<'a> {
    /// Of one partition's.
    pub fn new(shared: &'a Shared, now: u32, tables: &'a mut Tables) -> Self {
        let flash = shared.flash.as_ref().expect("what is read is on flash");
        let sample_threshold = shared.begin_lookup(now);
        Self { shared, flash, now, sample_threshold, counts: Counts::default(), tables }
    }

    /// Delivers what a read has brought.
    pub fn arrive(
        &mut self,
        io: &mut Io,
        scratch: &mut Scratch,
        opened: &mut Vec<u32>,
        id: u32,
        bytes: &[u8],
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        let read = self.tables.take(id);
        let size = self.flash.log.geometry().block_size();
        for same in read.probes.chunk_by(|a, b| a.place == b.place) {
            let at = (self.flash.log.geometry().offset(same[0].place) - read.extent.offset) as usize;
            for some in same.chunks(SIDE_BY_SIDE) {
                self.arrive_block(io, scratch, &read, some, bytes.get(at..at + size), sink);
                for want in some {
                    let waiting = &mut self.tables.waiting[want.key as usize];
                    waiting.reads -= 1;
                    match waiting.reads {
                        0 if waiting.answered => self.tables.dismiss(want.key),
                        0 => self.look_again(scratch, opened, want.key, sink),
                        _ => {}
                    }
                }
            }
        }
        self.tables.close(id, read);
    }

    /// Finds up to [`SIDE_BY_SIDE`] keys in a block.
    fn arrive_block(
        &mut self,
        io: &mut Io,
        scratch: &mut Scratch,
        read: &Read,
        same: &[Probe],
        bytes: Option<&[u8]>,
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        let waiting = &self.tables.waiting;
        let of = |i: usize| &waiting[same[i.min(same.len() - 1)].key as usize];
        let keys: [Key<'_>; SIDE_BY_SIDE] = std::array::from_fn(|i| of(i).key());
        let probes: [Probe; SIDE_BY_SIDE] =
            std::array::from_fn(|i| Probe { key: i as u32, ..same[i.min(same.len() - 1)] });
        scratch.false_positives.clear();
        let resolved: [AtomicBool; SIDE_BY_SIDE] = std::array::from_fn(|i| AtomicBool::new(of(i).answered));
        let mut lookup = Lookup {
            shared: self.shared,
            keys: &keys[..same.len()],
            resolved: &resolved,
            now: self.now,
            sink: |i, outcome: Outcome<'_>| sink(of(i).ticket, outcome),
            counts: std::mem::take(&mut self.counts),
            sample_threshold: self.sample_threshold,
        };
        let mut long = Vec::new();
        let block = Arrived { bytes, instance: read.instance, sequence: read.sequence };
        lookup.take_block(self.flash, block, &probes[..same.len()], scratch, &mut long);
        for long in long {
            lookup.deliver_long(self.flash, io, long.want, long.sequence, scratch);
        }
        self.counts = lookup.counts;
        for (want, resolved) in same.iter().zip(resolved) {
            self.tables.waiting[want.key as usize].answered = resolved.into_inner();
        }
        for false_positives in &scratch.false_positives {
            let waiting = &mut self.tables.waiting[same[false_positives.key as usize].key as usize];
            waiting.false_positives.push(FalsePositive { key: 0, ..*false_positives });
        }
    }

    /// Plans a key again that was not where it should be.
    fn look_again(
        &mut self,
        scratch: &mut Scratch,
        opened: &mut Vec<u32>,
        id: u32,
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        // Out of the table while it is planned, for it may begin to wait again.
        let Waiting { ticket, bytes, hash, round, false_positives, .. } = self.tables.lift(id);
        scratch.false_positives.clear();
        scratch.false_positives.extend_from_slice(&false_positives);
        let keys = [Key::hashed(hash, &bytes)];
        let mut lookup = Lookup {
            shared: self.shared,
            keys: &keys,
            resolved: &[AtomicBool::new(false)],
            now: self.now,
            sink: |_, outcome: Outcome<'_>| sink(ticket, outcome),
            counts: std::mem::take(&mut self.counts),
            sample_threshold: self.sample_threshold,
        };
        lookup.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
        if !scratch.probes.is_empty() {
            lookup.open_reads(self.flash, scratch, self.tables, opened, round + 1, |_, _| id);
        }
        self.counts = lookup.counts;
        self.tables.put_back(id, ticket, bytes, hash);
    }

    pub fn count(self) {
        let Arriving { shared, now, sample_threshold, counts, .. } = self;
        Lookup {
            shared,
            keys: &[],
            resolved: &[],
            now,
            sink: |_, _: Outcome<'_>| (),
            counts,
            sample_threshold,
        }
        .count();
    }
}
