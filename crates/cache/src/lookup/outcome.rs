//! The outcomes of lookups.

use crate::policy::division::Misses;

/// The outcome of one key's lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The value.
    Hit {
        /// The value.
        value: &'a [u8],
        /// Unix time in seconds after which it is expired; 0: never.
        expires_at: u32,
    },
    /// The source does not have this key.
    Negative {
        /// Unix time in seconds after which the entry is expired; 0: never.
        expires_at: u32,
    },
    /// The entry, which expired at `expires_at`.
    Expired {
        /// The value; `None`: the entry was negative.
        value: Option<&'a [u8]>,
        /// Unix time in seconds after which the entry was expired.
        expires_at: u32,
    },
    /// Nothing is known of this key.
    Miss,
}

/// The place where an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Memory,
    /// A block of the RAM tier.
    Block,
    Buffer,
    Flash,
}

/// Outcomes of a lookup, by kind.
#[derive(Default)]
pub(crate) struct OutcomeCounts {
    pub tiers: [u64; 4],
    pub expired: u64,
    pub negative: u64,
    /// Keys that were not found.
    pub misses: u64,
    /// Blocks that were not in RAM.
    pub of_blocks: Misses,
}
