//! Where an entry goes: a table that is in use and one whose entries are dealt out place them alike.

use super::bucket::Slot;
use super::shape::Shape;

/// Which of an entry's two buckets it goes to, the first or the second: the one with fewer entries, of which `taken` says
/// how many there are and `slots` how many there may be. Where that is full, the first in which `make_room` moves an entry
/// out; `None`: there is no room.
#[inline]
pub(super) fn choose(
    slots: usize,
    taken: [usize; 2],
    make_room: impl FnMut(&usize) -> bool,
) -> Option<usize> {
    let emptier = usize::from(taken[1] < taken[0]);
    if taken[emptier] < slots { Some(emptier) } else { (0..2).find(make_room) }
}

impl Shape {
    /// The first of a full bucket's entries whose other bucket has room: its slot, the entry as it is there, that bucket.
    pub fn movable(
        &self,
        bucket: usize,
        mut entries: impl Iterator<Item = (usize, Slot)>,
        has_room: impl Fn(usize) -> bool,
    ) -> Option<(usize, Slot, usize)> {
        entries.find_map(|(slot, entry)| {
            let target = self.other(bucket, entry.tag);
            let moved = Slot { other: !entry.other, ..entry };
            (target != bucket && has_room(target)).then_some((slot, moved, target))
        })
    }
}
