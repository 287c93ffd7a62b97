//! The bucket that an entry goes to, both in a table in use and in one that is rebuilt.

use super::bucket::BucketEntry;
use super::shape::Shape;

/// Chooses the first or the second of an entry's buckets: the one with fewer entries, by `taken`. If both have `slots`
/// entries, the first one from which `make_room` moves an entry out; `None`: there is no room.
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
    /// The first entry of a full bucket whose other bucket has room: its slot, the entry as it will be there, and that
    /// bucket.
    pub fn movable(
        &self,
        bucket: usize,
        mut entries: impl Iterator<Item = (usize, BucketEntry)>,
        has_room: impl Fn(usize) -> bool,
    ) -> Option<(usize, BucketEntry, usize)> {
        entries.find_map(|(slot, entry)| {
            let target = self.other(bucket, entry.tag);
            let moved = BucketEntry { other: !entry.other, ..entry };
            (target != bucket && has_room(target)).then_some((slot, moved, target))
        })
    }
}
