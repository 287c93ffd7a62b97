//! What is cleaned, and when: pure functions.

use crate::limits::{
    CLEAN_BACKGROUND_DIVISOR, CLEAN_BACKGROUND_MAX, CLEAN_URGENT_DIVISOR, CLEAN_URGENT_MAX, WRITE_DELAY_MAX,
};
use std::cmp::Ordering;
use std::time::Duration;

/// Which segment is the best victim.
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

/// Chooses the slot of the segment to clean, or `None` if no candidate has a dead block.
///
/// A segment without live blocks comes first under either policy: it is free for the taking. Among equals,
/// the oldest does.
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

/// The write amplification of greedy cleaning where all blocks are overwritten equally often, in a large log of which the
/// share `utilisation` is alive.
///
/// With segments many and large, all are cleaned at the same age, and the victim's live share *v* solves *v* = exp(-(1 -
/// *v*) / *utilisation*) (Bux and Iliadis, "Performance of greedy garbage collection in flash-based solid-state drives",
/// 2010; Desnoyers, "Analytic modeling of SSD write performance", 2012): 1 / (1 - *v*).
pub fn greedy_write_amplification(utilisation: f64) -> f64 {
    let mut victim_live = 0.0;
    for _ in 0..GREEDY_STEPS {
        victim_live = f64::exp(-(1.0 - victim_live) / utilisation);
    }
    1.0 / (1.0 - victim_live)
}

/// More than the equation of [`greedy_write_amplification`] takes to settle, up to a log that is 99 % alive.
const GREEDY_STEPS: u32 = 100_000;

/// How much is to be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// Nothing: enough segments are free.
    Idle,
    /// Segments to free while nobody waits.
    Background(u32),
    /// Segments to free at once: writers are slowed down or stopped.
    Urgent(u32),
}

/// Free segments below which cleaning begins, and below which it is urgent.
fn marks(reserved: u32, total: u32) -> (u32, u32) {
    let urgent = reserved.saturating_add((total / CLEAN_URGENT_DIVISOR).clamp(1, CLEAN_URGENT_MAX));
    let background = urgent.saturating_add((total / CLEAN_BACKGROUND_DIVISOR).clamp(1, CLEAN_BACKGROUND_MAX));
    (background, urgent)
}

/// Says how much is to be cleaned where `free` of `total` segments are free, `reserved` of which are for
/// cleaning itself to move blocks to.
pub fn cleaning(free: u32, reserved: u32, total: u32) -> Cleaning {
    let (background, urgent) = marks(reserved, total);
    match background.saturating_sub(free) {
        0 => Cleaning::Idle,
        missing if free > urgent => Cleaning::Background(missing),
        missing => Cleaning::Urgent(missing),
    }
}

/// Whether a write may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// At once.
    Go,
    /// After a delay, which grows as free segments go short.
    Delay(Duration),
    /// When cleaning has freed a segment: what is left is reserved for it.
    Wait,
}

/// Says whether a write may go on where `free` of `total` segments are free and `reserved` are for cleaning.
pub fn throttle(free: u32, reserved: u32, total: u32) -> Throttle {
    let (_, urgent) = marks(reserved, total);
    if free > urgent {
        Throttle::Go
    } else if free > reserved {
        // From a part of the longest delay at the mark to all of it at the last segment.
        Throttle::Delay(WRITE_DELAY_MAX * (urgent - free + 1) / (urgent - reserved))
    } else {
        Throttle::Wait
    }
}
