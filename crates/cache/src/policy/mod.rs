//! Policies, as pure functions: which entries are kept, and in RAM or on flash.

pub mod division;

use crate::limits::{
    DRAM_FIRST_MEMORY_DIVISOR, DRAM_FIRST_PARTITION_DIVISOR, FOUND_TURNOVER_DIVISOR, SHARDS,
};

/// The fate of live entries when their segment is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinsertion {
    /// FIFO: they leave.
    None,
    /// Entries that were found since they were written are appended again, up to half of each segment.
    Read,
}

/// The fate of one live entry of a segment that is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Drop,
    Reinsert,
}

/// `is_found`: found since it was written; `kept_bytes` of `segment_bytes` are kept so far.
pub(crate) fn fate(policy: Reinsertion, is_found: bool, kept_bytes: u64, segment_bytes: u64) -> Fate {
    match policy {
        Reinsertion::Read if is_found && kept_bytes < segment_bytes / 2 => Fate::Reinsert,
        _ => Fate::Drop,
    }
}

/// Whether an entry goes to the RAM tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promotion {
    Promote,
    Leave,
}

/// An entry on flash is copied when it was found lately, too: one find tells little, and copying every find churns the
/// tier. As long as no other entry has to leave for it, the first find is enough.
pub(crate) fn promotion(memory_bytes: u64, found_before: bool, has_room: bool) -> Promotion {
    if memory_bytes > 0 && (found_before || has_room) { Promotion::Promote } else { Promotion::Leave }
}

/// The part of all found marks that are cleared when an entry takes `bytes` of the `share` bytes that others had: two
/// finds tell less the longer they are apart.
pub fn found_marks_cleared(reinsertion: Reinsertion, bytes: u64, share: u64) -> f64 {
    match reinsertion {
        Reinsertion::None => (FOUND_TURNOVER_DIVISOR * bytes) as f64 / share.max(1) as f64,
        // Marks also tell which entries are reinserted, much later.
        Reinsertion::Read => 0.0,
    }
}

/// Whether a new entry gets a copy in RAM. It is put because a client asks for it, and will be asked for again soon or
/// never; entries read since they came to RAM are evicted after those that were not.
pub(crate) fn placement(memory_bytes: u64) -> Promotion {
    if memory_bytes > 0 { Promotion::Promote } else { Promotion::Leave }
}

/// DRAM first, longer entries do not wait in the RAM of a partition, which has `memory_bytes` as one of `partitions`
/// parts.
pub(crate) fn large_bytes(memory_bytes: u64, partitions: u64) -> u64 {
    let of_all = (memory_bytes / DRAM_FIRST_MEMORY_DIVISOR).saturating_mul(partitions);
    of_all.min(memory_bytes / DRAM_FIRST_PARTITION_DIVISOR)
}

/// Limits of a shard's bytes, in the order in which they are imposed until all shards together take no more than `most`
/// bytes. Shards above the first limit shrink first; the later ones reach all shards.
pub(crate) fn shard_limits(most: u64) -> [u64; 5] {
    let share = most / SHARDS as u64;
    [share, share / 2, share / 4, share / 8, 0]
}
