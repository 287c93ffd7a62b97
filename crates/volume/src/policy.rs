//! Decides which segments are cleaned, and when: pure functions.

use crate::limits::{BLOCKS_LOCKED_MAX, CLEAN_DIVISOR, CLEAN_MAX, CLEAN_MIN};
use std::cmp::Ordering;

/// The choice of the best victim among the segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The one with the fewest live blocks: best where all blocks are overwritten equally often.
    #[default]
    Greedy,
    /// The one with the greatest benefit by cost, (1 - *u*) × *age* / (1 + *u*) with *u* the live share
    /// (Rosenblum and Ousterhout, 1992): better where some blocks are overwritten much more often.
    CostBenefit,
}

/// A segment that may be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The slot that the segment is in.
    pub slot: u32,
    /// The number of its live blocks.
    pub live: u32,
    /// Its age in any unit, such as segments written since.
    pub age: u64,
}

/// Chooses the slot of the segment to clean, or `None` if all candidates have at least `blocks_per_segment` live
/// blocks, the number that cleaning fills a segment with.
///
/// A segment without live blocks comes first under either policy: it costs nothing. Among equals, the oldest one does.
pub fn choose(
    candidates: impl Iterator<Item = Candidate>,
    blocks_per_segment: u32,
    policy: Policy,
) -> Option<u32> {
    candidates
        .filter(|candidate| candidate.live < blocks_per_segment)
        .max_by(|a, b| {
            let fewer_live = b.live.cmp(&a.live);
            let better = match policy {
                Policy::CostBenefit if a.live > 0 && b.live > 0 => benefit(a, b, blocks_per_segment),
                Policy::Greedy | Policy::CostBenefit => fewer_live,
            };
            better.then(fewer_live).then(a.age.cmp(&b.age))
        })
        .map(|candidate| candidate.slot)
}

/// Compares (1 - u) × age / (1 + u) of two segments, exactly.
fn benefit(a: &Candidate, b: &Candidate, blocks: u32) -> Ordering {
    // Ages of up to 62 bits: the products fit 127 bits.
    let age = |candidate: &Candidate| u128::from(candidate.age.min((1 << 62) - 1));
    let dead = |candidate: &Candidate| u128::from(blocks - candidate.live);
    let cost = |candidate: &Candidate| u128::from(blocks) + u128::from(candidate.live);
    (dead(a) * age(a) * cost(b)).cmp(&(dead(b) * age(b) * cost(a)))
}

/// The write amplification of greedy cleaning where all blocks are overwritten equally often, in a large log of which
/// the share `utilisation` is alive.
///
/// With segments many and large, all are cleaned at the same age, and the victim's live share *v* solves *v* =
/// exp(-(1 - *v*) / *utilisation*) (Bux and Iliadis, "Performance of greedy garbage collection in flash-based
/// solid-state drives", 2010; Desnoyers, "Analytic modeling of SSD write performance", 2012): 1 / (1 - *v*).
pub fn greedy_write_amplification(utilisation: f64) -> f64 {
    let mut victim_live = 0.0;
    for _ in 0..GREEDY_STEPS {
        victim_live = f64::exp(-(1.0 - victim_live) / utilisation);
    }
    1.0 / (1.0 - victim_live)
}

/// More steps than the equation of [`greedy_write_amplification`] needs to converge, up to a log that is 99 % live.
const GREEDY_STEPS: u32 = 100_000;

/// Whether a checkpoint of `map_blocks` blocks writes less for each of the `waiting` segments that it frees than moving
/// the `live` blocks of a victim writes for each segment that this frees.
///
/// Segments that keep a few live blocks do not count, though the victim may have many more. With a small hot set they
/// are always the emptier ones: the dead blocks of old segments, which all writes elsewhere leave, would never be
/// reused, and the new ones would be moved before they have died (1.7 blocks written for one on a full volume, where
/// 1.2 are).
pub fn is_checkpoint_cheaper(map_blocks: u64, waiting: u64, live: u64, blocks_per_segment: u64) -> bool {
    let dead = blocks_per_segment.saturating_sub(live);
    // By segment: map_blocks / waiting, and live × (blocks per segment / dead).
    let [map_blocks, waiting, live, dead, all] =
        [map_blocks, waiting, live, dead, blocks_per_segment].map(u128::from);
    map_blocks * dead < live * all * waiting
}

/// The number of live blocks from which on a segment is not cleaned, with `free` slots free, `reserved` of which are
/// for the blocks that cleaning moves.
///
/// A segment with fewer than `fits_below` live blocks fits into another one with all the footers that commits add
/// meanwhile: its move takes one slot and gives one back. Others may take two. They are moved only as long as the
/// reserve is whole, so that it lasts: a kill in the middle of a move costs a slot of it until both halves are moved
/// ([`blocks_locked`]).
pub fn live_to_clean(free: u64, reserved: u64, gains_below: u64, fits_below: u64) -> u64 {
    match free {
        0 => 0,
        free if free > reserved => gains_below,
        _ => gains_below.min(fits_below),
    }
}

/// The most blocks of the `live` ones of a segment that are moved under one hold of the log's writer lock, with `free`
/// slots free, `reserved` of which are for moves.
///
/// Of a move that is committed in the middle, a kill leaves two halves, each in a slot. Once that has cost the reserve
/// a slot, all of a segment is moved under one hold, before which no commit sees any of it: however many kills follow,
/// they cost no second slot, and what is left is room to move both halves into.
pub fn blocks_locked(free: u64, reserved: u64, live: usize) -> usize {
    if free < reserved { live } else { BLOCKS_LOCKED_MAX }
}

/// The number of segments to free if `free` of `total` are free, `reserved` of which are for the blocks that cleaning
/// moves.
pub fn segments_to_free(free: u32, reserved: u32, total: u32) -> u32 {
    let wanted = reserved.saturating_add((total / CLEAN_DIVISOR).clamp(CLEAN_MIN, CLEAN_MAX));
    wanted.saturating_sub(free)
}
