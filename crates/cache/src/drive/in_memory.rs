//! The part of a lookup that needs no device.

#[cfg(feature = "async")]
use super::io::Io;
use crate::key::Key;
use crate::lookup::{Lookup, Outcome, Workspace};
use crate::partition_state::PartitionState;

/// The state that one thread keeps between lookups in RAM: buffers, and no way to the device.
#[derive(Default)]
pub struct MemoryLookups(Option<Box<Workspace>>);

/// Delivers the outcomes of keys that are in the RAM tier, or nowhere. The others are left, uncounted, to a later full
/// lookup.
#[cfg(feature = "async")]
pub(crate) fn get_many_in_memory(
    shared: &PartitionState,
    io: &mut Io,
    keys: &[Key<'_>],
    now: u32,
    sink: impl FnMut(usize, Outcome<'_>),
) {
    look_up(shared, &mut io.workspace, keys, now, sink);
}

/// Like [`get_many_in_memory`], for one key.
pub(crate) fn get_in_memory(
    shared: &PartitionState,
    lookups: &mut MemoryLookups,
    key: Key<'_>,
    now: u32,
    mut sink: impl FnMut(Outcome<'_>),
) {
    look_up(shared, &mut lookups.0, &[key], now, |_, outcome: Outcome<'_>| sink(outcome));
}

fn look_up(
    shared: &PartitionState,
    own: &mut Option<Box<Workspace>>,
    keys: &[Key<'_>],
    now: u32,
    sink: impl FnMut(usize, Outcome<'_>),
) {
    let mut workspace = shared.helpers.lend(own, keys.len());
    let Workspace { scratch, resolved } = &mut *workspace;
    let mut lookup = Lookup::new(shared, keys, resolved, now, sink);
    // The later full lookup sets the found marks.
    lookup.sets_found_marks = false;
    scratch.begin();
    lookup.plan(scratch, 0..keys.len());
    lookup.count();
    shared.helpers.take_back(own, workspace);
}
