//! Lookups in the background of their thread: keys in RAM are answered at once, reads of the others are begun, and each
//! is delivered when it has completed.
//!
//! A waiting key is planned, checked and delivered by the same steps as in any other lookup, as a batch of its own.

mod arriving;
mod opening;
mod waiting;

use super::by_block::{Usable, or_by_block};
use super::io::Io;
use crate::flash::Flash;
use crate::key::Key;
use crate::lookup::{Lookup, Outcome, Workspace};
use crate::partition_state::PartitionState;
use arriving::Arriving;
use granary_log::{Engine, ReadQueue};
use opening::open_reads;
use std::os::fd::BorrowedFd;
use waiting::Tables;

/// The lookups of one thread that wait for the device. Dropping it waits for reads in flight, and cancels their
/// lookups.
pub struct Pending {
    /// For entries longer than a read, which are waited for, and for its workspace.
    io: Io,
    /// `None`: everything is in RAM.
    queue: Option<ReadQueue>,
    tables: Tables,
    /// Reads to begin.
    opened: Vec<u32>,
}

impl Pending {
    /// For a cache with flash part `flash`, with `engine` or the next best.
    pub(crate) fn over(flash: Option<&Flash>, engine: Engine) -> Self {
        let block_size = flash.map(|flash| flash.log.geometry().block_size());
        let queue = block_size.map(|size| ReadQueue::new(engine, granary_log::Io::extent_bytes_max(size)));
        Self { io: Io::with_engine(engine), queue, tables: Tables::default(), opened: Vec::new() }
    }

    /// Readable after reads have completed that [`Cache::poll`](crate::Cache::poll) delivers. Watch it
    /// edge-triggered, and do not read it. It may be spurious. `None`: no lookup ever waits.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.queue.as_ref()?.event()
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

/// Begins lookups of a batch in one partition: [`Cache::begin_many`](crate::Cache::begin_many).
pub(crate) fn begin_many(
    shared: &PartitionState,
    pending: &mut Pending,
    keys: &[Key<'_>],
    now: u32,
    mut ticket: impl FnMut(usize) -> u64,
    sink: impl FnMut(usize, Outcome<'_>),
) {
    let Pending { io, tables, opened, .. } = pending;
    let mut workspace = shared.helpers.lend(&mut io.workspace, keys.len());
    let Workspace { scratch, resolved } = &mut *workspace;
    let mut lookup = Lookup::new(shared, keys, resolved, now, sink);
    scratch.begin();
    lookup.plan(scratch, 0..keys.len());
    if let Some(flash) = &shared.flash
        && !scratch.probes.is_empty()
    {
        let admit = |tables: &mut Tables, i: u32| tables.admit(keys[i as usize], ticket(i as usize));
        open_reads(&mut lookup, flash, scratch, tables, opened, 1, admit);
    }
    lookup.count();
    shared.helpers.take_back(&mut io.workspace, workspace);
}

/// Delivers what has been read: [`Cache::poll`](crate::Cache::poll). `partition` gives the partitions by their numbers;
/// all are on one device.
pub(crate) fn poll<'a>(
    partition: impl Fn(usize) -> &'a PartitionState,
    pending: &mut Pending,
    now: u32,
    mut sink: impl FnMut(u64, Outcome<'_>),
) {
    let Pending { io, queue, tables, opened } = pending;
    let (Some(flash), Some(queue)) = (&partition(0).flash, queue) else { return };
    let mut workspace = io.workspace.take().unwrap_or_default();
    loop {
        for id in opened.drain(..) {
            queue.begin(tables.reads[id as usize].extent, u64::from(id));
        }
        queue.poll(flash.log.device(), |id, result| {
            let id = id as u32;
            let read = &tables.reads[id as usize];
            let extent = read.extent;
            let usable = if read.record_len.is_some() { Usable::AllOrNothing } else { Usable::EachBlock };
            let shared = partition((extent.offset / flash.log.geometry().file_bytes()) as usize);
            let mut again = None;
            let (bytes, unread) = or_by_block(&flash.log, extent, usable, result, &mut again);
            Arriving::new(shared, now, tables, opened).arrive(
                io,
                &mut workspace.scratch,
                id,
                (bytes, &unread),
                &mut sink,
            );
        });
        if opened.is_empty() {
            break;
        }
    }
    io.workspace = Some(workspace);
}
