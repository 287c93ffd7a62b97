//! Which segment is cleaned, and when. Pure functions.

/// How the segment to be cleaned is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The one with the fewest live blocks.
    Greedy,
    /// The one with the greatest benefit for its cost: (1 - u) * age / (1 + u), u being how much of it is alive.
    #[default]
    CostBenefit,
}

/// How much there is to clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// There are enough free segments.
    Idle,
    /// Free segments become few.
    Background,
    /// Writes will have to wait.
    Urgent,
}

/// The number of free segments below which cleaning begins.
pub fn background_from(segments: u64, reserved: u64) -> u64 {
    reserved + (segments / 32).clamp(3, 64)
}

/// What there is to do.
pub fn work(free: u64, reserved: u64, segments: u64) -> Work {
    if free <= reserved + 1 {
        Work::Urgent
    } else if free < background_from(segments, reserved) {
        Work::Background
    } else {
        Work::Idle
    }
}

/// Chooses among (slot, live blocks, age); `None`: nothing can be won.
pub fn choose(
    candidates: impl Iterator<Item = (u32, u32, u64)>,
    blocks_per_segment: u32,
    policy: Policy,
) -> Option<u32> {
    let all = f64::from(blocks_per_segment);
    let benefit = |live: u32, age: u64| {
        let used = f64::from(live) / all;
        match policy {
            Policy::Greedy => 1.0 - used,
            Policy::CostBenefit => (1.0 - used) * age as f64 / (1.0 + used),
        }
    };
    candidates
        .filter(|(_, live, _)| *live < blocks_per_segment)
        .max_by(|a, b| benefit(a.1, a.2).total_cmp(&benefit(b.1, b.2)))
        .map(|(slot, ..)| slot)
}
