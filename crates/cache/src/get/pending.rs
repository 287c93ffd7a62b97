//! Lookups that go on while their thread does other things: what is in RAM is answered at once, reads of the
//! rest are begun, and each is delivered when it has come.
//!
//! A key on its way is planned, checked and delivered by the code of [`Cache::get_many`], as a batch of its own.

use super::arriving::Arriving;
use super::waiting::Tables;
use super::{Counts, Io, Lookup, Outcome};
use crate::cache::Cache;
use crate::key::Key;
use crate::partition::{Flash, Partition};
use granary_log::{Engine, Flights};
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
        let block_size = cache.flash_of(0).map(|flash| flash.log.geometry().block_size());
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

impl Partition {
    /// See [`Cache`](crate::Cache).
    pub fn begin_many(
        &self,
        pending: &mut Pending,
        keys: &[Key<'_>],
        now: u32,
        mut ticket: impl FnMut(usize) -> u64,
        sink: impl FnMut(usize, Outcome<'_>),
    ) {
        let Pending { io, tables, opened, .. } = pending;
        let (mut scratch, resolved) = io.begin(keys);
        let sample_threshold = self.shared.begin_lookup(now);
        let counts = Counts::default();
        let mut lookup =
            Lookup { shared: &self.shared, keys, resolved: &resolved, now, sink, counts, sample_threshold };
        scratch.begin();
        lookup.plan(&mut scratch, 0..keys.len());
        if let Some(flash) = &self.shared.flash
            && !scratch.probes.is_empty()
        {
            let admit = |tables: &mut Tables, i: u32| tables.admit(keys[i as usize], ticket(i as usize));
            lookup.open_reads(flash, &mut scratch, tables, opened, 1, admit);
        }
        lookup.count();
        io.end((scratch, resolved));
    }
}

impl Cache {
    /// Sends reads on their way and delivers what has come: `sink(ticket, outcome)`, which must not call the
    /// cache. To be called after `begin_many`, and whenever [`Pending::event`] tells.
    pub fn go_on(&self, pending: &mut Pending, now: u32, mut sink: impl FnMut(u64, Outcome<'_>)) {
        let Pending { io, flights, tables, opened } = pending;
        let (Some(flash), Some(flights)) = (self.flash_of(0), flights) else { return };
        let mut scratch = std::mem::take(io.scratch());
        loop {
            for id in opened.drain(..) {
                flights.begin(tables.reads[id as usize].extent, u64::from(id));
            }
            // All partitions are on one device.
            flights.poll(flash.log.device(), |id, result| {
                let (id, bytes) = (id as u32, result.unwrap_or(&[]));
                let offset = tables.reads[id as usize].extent.offset;
                let partition = offset / flash.log.geometry().file_bytes();
                let shared = &self.partitions[partition as usize].shared;
                let mut arriving = Arriving::new(shared, now, tables);
                arriving.arrive(io, &mut scratch, opened, id, bytes, &mut sink);
                arriving.count();
            });
            if opened.is_empty() {
                break;
            }
        }
        *io.scratch() = scratch;
    }

    fn flash_of(&self, partition: usize) -> Option<&Flash> {
        self.partitions[partition].shared.flash.as_ref()
    }
}
