//! Lookups that go on while their thread does other things: what is in RAM is answered at once, reads of the
//! rest are begun, and each is delivered when it has come.
//!
//! A key on its way is planned, checked and delivered by the code of [`Cache::get_many`], as a batch of its own.

use super::fetch::{Arrived, OnDevice};
use super::io::Scratch;
use super::waiting::{Read, Tables, Waiting};
use super::{Counts, Io, Lookup, Outcome, Tried, Want};
use crate::cache::{Cache, Flash, Shared};
use crate::key::Key;
use crate::limits::{LOOKUP_ROUNDS_MAX, SIDE_BY_SIDE};
use crate::stats::add;
use granary_log::{Engine, Extent, Flights};
use std::os::fd::BorrowedFd;

/// The lookups of one thread that wait for the device. Dropping it waits for reads in flight, and forgets
/// what they were for.
pub struct Pending {
    /// For entries over several blocks, which are waited for, and room to plan in.
    io: Io,
    /// `None`: everything is in RAM.
    flights: Option<Flights>,
    tables: Tables,
    /// Reads to begin.
    opened: Vec<u32>,
}

impl Pending {
    /// For this cache and no other.
    pub fn new(cache: &Cache) -> Self {
        Self::with_engine(cache, Engine::Ring)
    }

    /// With this engine, or the next best.
    pub fn with_engine(cache: &Cache, engine: Engine) -> Self {
        let block_size = cache.shared.flash.as_ref().map(|flash| flash.log.geometry().block_size());
        let flights = block_size.map(|size| Flights::new(engine, Io::extent_bytes_max(size)));
        Self { io: Io::with_engine(engine), flights, tables: Tables::default(), opened: Vec::new() }
    }

    /// Readable after reads have come that [`Cache::go_on`] delivers: to be watched for changes (edges), not to
    /// be read. It may tell of nothing. `None`: nothing is ever waited for.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.flights.as_ref()?.event()
    }

    /// Keys that have no outcome yet.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether all keys have their outcome.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Cache {
    /// Looks up a batch as [`get_many`](Self::get_many) does, but waits for nothing: `sink(i, outcome)` is called
    /// for keys that need no read; of the others `ticket(i)` is asked, which [`go_on`](Self::go_on) gives with
    /// their outcome. Both are true of some moment in between. Neither may call the cache.
    pub fn begin_many(
        &self,
        pending: &mut Pending,
        keys: &[Key<'_>],
        now: u32,
        mut ticket: impl FnMut(usize) -> u64,
        sink: impl FnMut(usize, Outcome<'_>),
    ) {
        assert!(u32::try_from(keys.len()).is_ok(), "a batch has fewer than 2^32 keys");
        let Pending { io, tables, opened, .. } = pending;
        let mut scratch = std::mem::take(&mut io.scratch);
        let watched_below = self.shared.begin_lookup(now);
        let counts = Counts::default();
        let mut lookup = Lookup { shared: &self.shared, keys, now, sink, counts, watched_below };
        lookup.plan(&mut scratch);
        if let Some(flash) = &self.shared.flash
            && !scratch.wants.is_empty()
        {
            let admit = |tables: &mut Tables, i: u32| tables.admit(keys[i as usize], ticket(i as usize));
            lookup.open_reads(flash, &mut scratch, tables, opened, 1, admit);
        }
        lookup.count();
        io.scratch = scratch;
    }

    /// Sends reads on their way and delivers what has come: `sink(ticket, outcome)`, which must not call the
    /// cache. To be called after `begin_many`, and whenever [`Pending::event`] tells.
    pub fn go_on(&self, pending: &mut Pending, now: u32, mut sink: impl FnMut(u64, Outcome<'_>)) {
        let Pending { io, flights, tables, opened } = pending;
        let (Some(flash), Some(flights)) = (&self.shared.flash, flights) else { return };
        let mut scratch = std::mem::take(&mut io.scratch);
        let watched_below = self.shared.begin_lookup(now);
        let mut going =
            Going { shared: &self.shared, flash, now, watched_below, counts: Counts::default(), tables };
        loop {
            for id in opened.drain(..) {
                flights.begin(going.tables.reads[id as usize].extent, u64::from(id));
            }
            flights.land(flash.log.device(), |id, result| {
                let bytes = result.unwrap_or(&[]);
                going.arrive(io, &mut scratch, opened, id as u32, bytes, &mut sink);
            });
            if opened.is_empty() {
                break;
            }
        }
        going.count();
        io.scratch = scratch;
    }
}

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Answers what lies in write buffers, and opens reads of what lies on the device, for keys that begin to
    /// wait (`admit`).
    fn open_reads(
        &mut self,
        flash: &Flash,
        scratch: &mut Scratch,
        tables: &mut Tables,
        opened: &mut Vec<u32>,
        first_round: usize,
        mut admit: impl FnMut(&mut Tables, u32) -> u32,
    ) {
        let mut ids = std::mem::take(&mut scratch.ids);
        ids.clear();
        ids.resize(self.keys.len(), None);
        for round in first_round.. {
            let (wants, on_device) = self.fetch_from_buffers(flash, scratch);
            for OnDevice { range, sequence } in on_device {
                let wants = wants[range].iter().filter(|want| !scratch.resolved[want.key as usize]);
                let mut of_segment = Opening { shared: self.shared, flash, sequence, read: None };
                for want in wants {
                    let id = *ids[want.key as usize].get_or_insert_with(|| admit(tables, want.key));
                    tables.waiting[id as usize].reads += 1;
                    tables.waiting[id as usize].round = round;
                    of_segment.add(Want { key: id, ..*want }, tables, opened);
                }
            }
            scratch.wants = wants;
            // Those that wait are planned again when their reads have come; the others now.
            scratch.tried.retain(|tried| match ids[tried.key as usize] {
                Some(id) => {
                    tables.waiting[id as usize].tried.push(Tried { key: 0, ..*tried });
                    false
                }
                None => true,
            });
            self.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
            if scratch.wants.is_empty() {
                break;
            }
        }
        scratch.ids = ids;
    }
}

/// Reads of one segment that are being opened: neighbouring blocks share one.
struct Opening<'a> {
    shared: &'a Shared,
    flash: &'a Flash,
    sequence: u64,
    read: Option<u32>,
}

impl Opening<'_> {
    /// Adds a want; their places ascend.
    fn add(&mut self, want: Want, tables: &mut Tables, opened: &mut Vec<u32>) {
        let geometry = self.flash.log.geometry();
        let (offset, size) = (geometry.offset(want.place), geometry.block_size());
        let counters = &self.shared.counters;
        if let Some(read) = self.read.map(|id| &mut tables.reads[id as usize]) {
            let end = read.extent.offset + read.extent.len as u64;
            let is_next = end == offset && read.extent.len + size <= Io::extent_bytes_max(size);
            if is_next || end == offset + size as u64 {
                read.wants.push(want);
                if is_next {
                    read.extent.len += size;
                    add(&counters.block_reads, 1);
                    add(&counters.bytes_read, size as u64);
                }
                return;
            }
        }
        let id = tables.open(Extent { offset, len: size }, self.sequence, self.flash.log.instance());
        tables.reads[id as usize].wants.push(want);
        self.read = Some(id);
        opened.push(id);
        add(&counters.reads, 1);
        add(&counters.block_reads, 1);
        add(&counters.bytes_read, size as u64);
    }
}

/// Keys whose reads have come.
struct Going<'a> {
    shared: &'a Shared,
    flash: &'a Flash,
    now: u32,
    watched_below: u64,
    counts: Counts,
    tables: &'a mut Tables,
}

impl Going<'_> {
    /// Delivers what a read has brought.
    fn arrive(
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
        for same in read.wants.chunk_by(|a, b| a.place == b.place) {
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
        same: &[Want],
        bytes: Option<&[u8]>,
        sink: &mut dyn FnMut(u64, Outcome<'_>),
    ) {
        let waiting = &self.tables.waiting;
        let of = |i: usize| &waiting[same[i.min(same.len() - 1)].key as usize];
        let keys: [Key<'_>; SIDE_BY_SIDE] = std::array::from_fn(|i| of(i).key());
        let wants: [Want; SIDE_BY_SIDE] =
            std::array::from_fn(|i| Want { key: i as u32, ..same[i.min(same.len() - 1)] });
        scratch.tried.clear();
        scratch.resolved.clear();
        scratch.resolved.extend((0..same.len()).map(|i| of(i).answered));
        let mut lookup = Lookup {
            shared: self.shared,
            keys: &keys[..same.len()],
            now: self.now,
            sink: |i, outcome: Outcome<'_>| sink(of(i).ticket, outcome),
            counts: std::mem::take(&mut self.counts),
            watched_below: self.watched_below,
        };
        let mut long = Vec::new();
        let block = Arrived { bytes, instance: read.instance, sequence: read.sequence };
        lookup.take_block(self.flash, block, &wants[..same.len()], scratch, &mut long);
        for long in long {
            lookup.deliver_long(self.flash, io, long.want, long.sequence, scratch);
        }
        self.counts = lookup.counts;
        for (want, resolved) in same.iter().zip(&scratch.resolved) {
            self.tables.waiting[want.key as usize].answered = *resolved;
        }
        for tried in &scratch.tried {
            let waiting = &mut self.tables.waiting[same[tried.key as usize].key as usize];
            waiting.tried.push(Tried { key: 0, ..*tried });
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
        let Waiting { ticket, bytes, hash, round, tried, .. } = self.tables.lift(id);
        scratch.resolved.clear();
        scratch.resolved.push(false);
        scratch.tried.clear();
        scratch.tried.extend_from_slice(&tried);
        let keys = [Key::hashed(hash, &bytes)];
        let mut lookup = Lookup {
            shared: self.shared,
            keys: &keys,
            now: self.now,
            sink: |_, outcome: Outcome<'_>| sink(ticket, outcome),
            counts: std::mem::take(&mut self.counts),
            watched_below: self.watched_below,
        };
        lookup.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
        if !scratch.wants.is_empty() {
            lookup.open_reads(self.flash, scratch, self.tables, opened, round + 1, |_, _| id);
        }
        self.counts = lookup.counts;
        self.tables.put_back(id, ticket, bytes, hash);
    }

    fn count(self) {
        let Going { shared, now, watched_below, counts, .. } = self;
        Lookup { shared, keys: &[], now, sink: |_, _: Outcome<'_>| (), counts, watched_below }.count();
    }
}
