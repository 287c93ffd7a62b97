//! A lookup on one thread, which waits for its reads.

use super::by_block::{Usable, read_by_block};
use super::io::Io;
use super::long_reads::LongRecord;
use crate::flash::Flash;
use crate::key::Key;
use crate::limits::{LONG_BYTES_AT_ONCE, LOOKUP_ROUNDS_MAX};
use crate::lookup::{BegunReads, LongEntry, Lookup, Outcome, ReadSpan, Scratch, Workspace};
use crate::partition_state::PartitionState;
use granary_log::ReadAhead;

/// Looks up a batch in one partition: [`Cache::get_many`](crate::Cache::get_many).
pub(crate) fn get_many(
    shared: &PartitionState,
    io: &mut Io,
    keys: &[Key<'_>],
    now: u32,
    sink: impl FnMut(usize, Outcome<'_>),
) {
    let mut workspace = shared.helpers.lend(&mut io.workspace, keys.len());
    let Workspace { scratch, resolved } = &mut *workspace;
    let mut lookup = Lookup::new(shared, keys, resolved, now, sink);
    scratch.begin();
    lookup.plan(scratch, 0..keys.len());
    finish(&mut lookup, io, scratch, 1);
    lookup.count();
    shared.helpers.take_back(&mut io.workspace, workspace);
}

/// Fetches the entries of all probes, and plans moved ones again, until no probe is left.
pub(super) fn finish<S: FnMut(usize, Outcome<'_>)>(
    lookup: &mut Lookup<'_, S>,
    io: &mut Io,
    scratch: &mut Scratch,
    first_round: usize,
) {
    let Some(flash) = &lookup.shared.flash else { return };
    for round in first_round.. {
        if scratch.probes.is_empty() {
            return;
        }
        fetch(lookup, flash, io, scratch);
        lookup.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
    }
}

/// Reads the probes' blocks and delivers their entries.
pub(super) fn fetch<S: FnMut(usize, Outcome<'_>)>(
    lookup: &mut Lookup<'_, S>,
    flash: &Flash,
    io: &mut Io,
    scratch: &mut Scratch,
) {
    let reads = io.reads.read_ahead(flash.log.device(), &[]);
    fetch_with(lookup, flash, reads, &BegunReads::default(), scratch);
    fetch_long(lookup, flash, io, scratch);
}

/// Reads the probes' blocks and delivers their entries, when some reads have already begun. Entries over several blocks
/// are noted for [`fetch_long`].
pub(super) fn fetch_with<S: FnMut(usize, Outcome<'_>)>(
    lookup: &mut Lookup<'_, S>,
    flash: &Flash,
    reads: ReadAhead<'_>,
    begun: &BegunReads,
    scratch: &mut Scratch,
) {
    lookup.fetch_buffered(flash, scratch);
    let longest = granary_log::Io::extent_bytes_max(flash.log.geometry().block_size());
    lookup.plan_reads(flash, begun, (ReadSpan::Segments, longest), scratch);
    let extents = std::mem::take(&mut scratch.extents);
    let mut failed = Vec::new();
    reads.read_many(&extents, |read, bytes| match bytes {
        Ok(bytes) => lookup.take_read(flash, begun, (read, extents[read]), (bytes, &[]), scratch),
        Err(_) => failed.push(read),
    });
    for read in failed {
        let (bytes, unread) = read_by_block(&flash.log, extents[read], Usable::EachBlock, |_| true);
        lookup.take_read(flash, begun, (read, extents[read]), (&bytes, &unread), scratch);
    }
    scratch.extents = extents;
}

/// Reads and delivers the entries over several blocks whose first block was seen, many at a time.
pub(super) fn fetch_long<S: FnMut(usize, Outcome<'_>)>(
    lookup: &mut Lookup<'_, S>,
    flash: &Flash,
    io: &mut Io,
    scratch: &mut Scratch,
) {
    while !scratch.long.is_empty() {
        let (mut long, mut records) =
            (std::mem::take(&mut scratch.long), std::mem::take(&mut scratch.record));
        let mut bytes = 0;
        let fits = |entry: &&LongEntry| {
            bytes += entry.len;
            bytes <= LONG_BYTES_AT_ONCE
        };
        let first = long.len() - long.iter().rev().take_while(fits).count().max(1);
        let read = long[first..].iter().map(|LongEntry { probe, sequence, len }| LongRecord {
            block: probe.block,
            sequence: *sequence,
            len: *len,
        });
        io.long.read(&mut io.reads, &flash.log, read, &mut records, |i, record| {
            lookup.take_long(flash, long[first + i], record, scratch);
        });
        long.truncate(first);
        (scratch.long, scratch.record) = (long, records);
    }
}
