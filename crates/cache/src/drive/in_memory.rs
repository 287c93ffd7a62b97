//! The part of a lookup that needs no device.

use super::io::Io;
use crate::key::Key;
use crate::lookup::{Lookup, Outcome, Workspace};
use crate::partition_state::PartitionState;

/// Delivers the outcomes of keys that are in the RAM tier, or nowhere. The others are left, uncounted, to a later full
/// lookup.
pub(crate) fn get_many_in_memory(
    shared: &PartitionState,
    io: &mut Io,
    keys: &[Key<'_>],
    now: u32,
    sink: impl FnMut(usize, Outcome<'_>),
) {
    let mut workspace = shared.helpers.lend(&mut io.workspace, keys.len());
    let Workspace { scratch, resolved } = &mut *workspace;
    let mut lookup = Lookup::new(shared, keys, resolved, now, sink);
    // The later full lookup sets the found marks.
    lookup.sets_found_marks = false;
    scratch.begin();
    lookup.plan(scratch, 0..keys.len());
    lookup.count();
    shared.helpers.take_back(&mut io.workspace, workspace);
}
