//! A large batch looked up by two threads: each plans half of the keys, then reads half of the blocks. It takes half
//! the time, and no block is read twice.
//!
//! The blocks to read are known when both have planned. Meanwhile each begins at one end of the file to read blocks
//! that the first keys need, so that the device is busy.

mod ahead;
mod meeting;

use super::blocking::{fetch, fetch_long, fetch_with, finish};
use super::helpers::{Help, Working};
use super::io::Io;
use crate::key::Key;
use crate::limits::{FIRST_KEYS_DIVISOR, SHARED_KEYS_MIN};
use crate::lookup::{FalsePositive, Lookup, Outcome, Scratch, Workspace, order};
use crate::partition_state::PartitionState;
pub(super) use ahead::Ahead;
use ahead::DeviceEnd;
use meeting::{Meeting, Side};
use std::ops::Range;

/// Looks up a batch that is large enough for two threads:
/// [`Cache::get_many_parallel`](crate::Cache::get_many_parallel).
pub(crate) fn get_many_parallel<S: FnMut(usize, Outcome<'_>) + Send>(
    shared: &PartitionState,
    io: &mut Io,
    keys: &[Key<'_>],
    now: u32,
    [sink, other_sink]: [S; 2],
) {
    let working = shared.helpers.begin();
    let mut workspace = shared.helpers.lend(&mut io.workspace, keys.len());
    let Workspace { scratch, resolved } = &mut *workspace;
    let mut pair = Pair {
        mine: Lookup::new(shared, keys, resolved, now, sink),
        theirs: Lookup::new(shared, keys, resolved, now, other_sink),
    };
    scratch.begin();
    // Without a RAM tier all threads wait for the device, so reads should begin early.
    let waits = shared.memory_bytes == 0 && shared.flash.is_some();
    match if waits { working.help() } else { working.help_to_compute() } {
        Some(help) => pair.look_up(&help, io, scratch),
        None => pair.plan_alone(&working, io, scratch),
    }
    pair.mine.count();
    pair.theirs.count();
    shared.helpers.take_back(&mut io.workspace, workspace);
}

/// One batch, as two lookups with a sink each.
struct Pair<'a, S> {
    mine: Lookup<'a, S>,
    theirs: Lookup<'a, S>,
}

impl<S: FnMut(usize, Outcome<'_>) + Send> Pair<'_, S> {
    fn look_up(&mut self, help: &Help<'_>, io: &mut Io, scratch: &mut Scratch) {
        let Self { mine, theirs } = self;
        let (half, all) = (mine.keys.len() / 2, mine.keys.len());
        let meeting = Meeting::default();
        let ((), mut false_positives) = help.both(
            || look_half_up(mine, 0..half, (&meeting, Side::Lower), io, scratch),
            |io| {
                in_own_workspace(io, |io, scratch| {
                    look_half_up(theirs, half..all, (&meeting, Side::Upper), io, scratch);
                })
            },
        );
        scratch.false_positives.append(&mut false_positives);
        mine.plan_again(scratch, false);
        finish(mine, io, scratch, 2);
    }

    /// Plans alone, and reads with help if there are many probes.
    fn plan_alone(&mut self, working: &Working<'_>, io: &mut Io, scratch: &mut Scratch) {
        let Self { mine, theirs } = self;
        mine.plan(scratch, 0..mine.keys.len());
        let help = if scratch.probes.len() < SHARED_KEYS_MIN { None } else { working.help() };
        let (Some(help), Some(flash)) = (help, &mine.shared.flash) else {
            return finish(mine, io, scratch, 1);
        };
        order(&mut scratch.probes, &mut scratch.sorting);
        // Probes of one block stay together.
        let middle = scratch.probes[scratch.probes.len() / 2].block;
        let lower = scratch.probes.partition_point(|probe| probe.block < middle);
        let mut upper = std::mem::take(&mut scratch.sorting.spare);
        upper.clear();
        upper.extend(scratch.probes.drain(lower..));
        let ((), mut false_positives) = help.both(
            || fetch(mine, flash, io, scratch),
            |io| {
                in_own_workspace(io, |io, scratch| {
                    scratch.probes.extend_from_slice(&upper);
                    fetch(theirs, flash, io, scratch);
                })
            },
        );
        scratch.sorting.spare = upper;
        scratch.false_positives.append(&mut false_positives);
        mine.plan_again(scratch, false);
        finish(mine, io, scratch, 2);
    }
}

/// Plans half of the keys, and reads half of the blocks that both halves need.
fn look_half_up<S: FnMut(usize, Outcome<'_>)>(
    lookup: &mut Lookup<'_, S>,
    keys: Range<usize>,
    (meeting, side): (&Meeting, Side),
    io: &mut Io,
    scratch: &mut Scratch,
) {
    let Some(flash) = &lookup.shared.flash else { return lookup.plan(scratch, keys) };
    let _attendance = meeting.attend(side);
    let first_end = keys.start + keys.len() / FIRST_KEYS_DIVISOR;
    lookup.plan(scratch, keys.start..first_end);
    let Io { reads, ahead, .. } = &mut *io;
    let middle = meeting.middle(ahead.middle_of(&scratch.probes));
    let end = if side == Side::Lower { DeviceEnd::Low } else { DeviceEnd::High };
    ahead.choose(flash, &scratch.probes, end, middle);
    let reads = reads.read_ahead(flash.log.device(), &ahead.begun.extents);
    ahead.begun.truncate(reads.begun());
    lookup.plan(scratch, first_end..keys.end);
    let mut for_other = std::mem::take(&mut scratch.sorting.spare);
    for_other.clear();
    for_other.extend(scratch.probes.extract_if(.., |probe| (probe.block < middle) != (side == Side::Lower)));
    let mut from_other = meeting.exchange(side, for_other);
    scratch.probes.append(&mut from_other);
    scratch.sorting.spare = from_other;
    fetch_with(lookup, flash, reads, &ahead.begun, scratch);
    fetch_long(lookup, flash, io, scratch);
}

/// Has a helping thread look up in its own workspace; returns the false positives.
fn in_own_workspace(io: &mut Io, look_up: impl FnOnce(&mut Io, &mut Scratch)) -> Vec<FalsePositive> {
    let mut workspace = io.workspace.take().unwrap_or_default();
    workspace.scratch.begin();
    look_up(io, &mut workspace.scratch);
    let false_positives = std::mem::take(&mut workspace.scratch.false_positives);
    io.workspace = Some(workspace);
    false_positives
}
