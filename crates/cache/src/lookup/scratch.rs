//! Scratch space of lookups.

use super::answers::Answers;
use super::order::Sorting;
use super::probe::{FalsePositive, LongEntry, OnDevice, PlannedRead, Probe};
use super::search::Search;
use crate::batch::KeysByShard;
use crate::memory::Candidates;
use granary_log::Extent;
use granary_log::sync::atomic::AtomicBool;

/// The scratch space of a lookup, which allocates nothing once it has grown to the size of the batches, but for a
/// stable sort of many probes (`order.rs`).
#[derive(Default)]
pub(crate) struct Scratch {
    pub by_shard: KeysByShard,
    pub answers: Answers,
    /// Candidate entries in RAM of the present group of keys and of the next one.
    pub candidates: [Candidates; 2],
    pub probes: Vec<Probe>,
    pub sorting: Sorting,
    pub false_positives: Vec<FalsePositive>,
    pub on_device: Vec<OnDevice>,
    pub reads: Vec<PlannedRead>,
    pub extents: Vec<Extent>,
    /// Entries over several blocks that are to be read.
    pub long: Vec<LongEntry>,
    pub record: Vec<u8>,
    pub search: Search,
    /// For background lookups: the numbers under which keys of the batch wait.
    pub ids: Vec<Option<u32>>,
}

impl Scratch {
    /// Begins a lookup without probes.
    pub fn begin(&mut self) {
        self.probes.clear();
        self.false_positives.clear();
    }
}

/// A batch's scratch space, and which of its keys are resolved; two threads have their own scratch space and share the
/// latter.
#[derive(Default)]
pub(crate) struct Workspace {
    pub scratch: Scratch,
    pub resolved: Vec<AtomicBool>,
}
