//! The free RAM of a DRAM-first cache.

use crate::flash::Flash;
use crate::limits::SPARE_MEMORY_DIVISOR;
use crate::memory::Pool;

/// RAM that the evictor keeps free: room for a segment, or a quarter of a small tier, but at least
/// 1/[`SPARE_MEMORY_DIVISOR`].
pub(crate) fn spare_bytes(flash: &Flash, budget: u64) -> u64 {
    let segment = flash.log.geometry().segment_bytes();
    (budget / SPARE_MEMORY_DIVISOR).max(segment.min(budget / 4))
}

/// The amount of RAM that is free.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Headroom {
    /// The budget is exceeded.
    Exceeded,
    /// Less than half of what the evictor keeps free.
    BelowHalf,
    /// Less than the evictor keeps free.
    BelowTarget,
    Enough,
}

impl Headroom {
    /// The amount of RAM that is free.
    pub fn of(flash: &Flash, pool: &Pool) -> Self {
        Self::with_entry(flash, pool, 0)
    }

    /// The amount of RAM that would be free with another entry of `bytes` bytes.
    pub fn with_entry(flash: &Flash, pool: &Pool, bytes: u64) -> Self {
        let wanted = spare_bytes(flash, pool.bytes());
        match pool.bytes().checked_sub(pool.used() + bytes) {
            None => Self::Exceeded,
            Some(free) if free < wanted / 2 => Self::BelowHalf,
            Some(free) if free < wanted => Self::BelowTarget,
            Some(_) => Self::Enough,
        }
    }
}
