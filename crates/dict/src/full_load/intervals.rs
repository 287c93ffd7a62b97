//! Interval trees, searched for the intervals that contain a value.

/// The numbers from `low` to `high`, both included. Intervals in the order of `low` are a tree: the middle one is the
/// root of those before and those after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub low: u64,
    pub high: u64,
    /// The greatest `high` in the tree with this root.
    reach: u64,
    /// The item that the interval belongs to.
    pub item: u32,
}

impl Interval {
    /// `None`: nothing lies in it.
    pub fn new(low: u64, high: u64, item: u32) -> Option<Interval> {
        (low <= high).then_some(Interval { low, high, reach: high, item })
    }
}

/// Makes a tree of intervals that are in the order of `low`.
pub(super) fn make_tree(intervals: &mut [Interval]) {
    debug_assert!(intervals.is_sorted_by_key(|interval| interval.low));
    set_reach(intervals);
}

/// Makes a tree of intervals in any order.
pub(super) fn make_tree_of(intervals: &mut [Interval]) {
    intervals.sort_unstable_by_key(|interval| interval.low);
    make_tree(intervals);
}

/// Sets the reach of all nodes, and returns the root's. The depth is the logarithm of the tree's size.
fn set_reach(tree: &mut [Interval]) -> u64 {
    let Some((before, [root, behind @ ..])) = tree.split_at_mut_checked(tree.len() / 2) else { return 0 };
    root.reach = root.high.max(set_reach(before)).max(set_reach(behind));
    root.reach
}

/// The index of the first interval that ends at `value` or later.
pub(super) fn first_reaching(tree: &[Interval], value: u64) -> Option<usize> {
    let (before, [root, behind @ ..]) = tree.split_at(tree.len() / 2) else { return None };
    if root.reach < value {
        return None;
    }
    first_reaching(before, value)
        .or_else(|| (root.high >= value).then_some(before.len()))
        .or_else(|| first_reaching(behind, value).map(|at| before.len() + 1 + at))
}

/// The index of the last such interval among the first `count`.
pub(super) fn last_reaching(tree: &[Interval], count: usize, value: u64) -> Option<usize> {
    let (before, [root, behind @ ..]) = tree.split_at(tree.len() / 2) else { return None };
    if root.reach < value {
        return None;
    }
    let Some(count_behind) = count.checked_sub(before.len() + 1) else {
        return last_reaching(before, count, value);
    };
    last_reaching(behind, count_behind, value)
        .map(|at| before.len() + 1 + at)
        .or_else(|| (root.high >= value).then_some(before.len()))
        .or_else(|| last_reaching(before, before.len(), value))
}

/// Visits the items of the intervals that contain `value`.
pub(super) fn each_with(tree: &[Interval], value: u64, visit: &mut impl FnMut(u32)) {
    let (before, [root, behind @ ..]) = tree.split_at(tree.len() / 2) else { return };
    if root.reach < value {
        return;
    }
    each_with(before, value, visit);
    // Intervals after the root begin no earlier.
    if root.low <= value {
        if root.high >= value {
            visit(root.item);
        }
        each_with(behind, value, visit);
    }
}
