//! Room to plan a lookup in.

use super::answers::Answers;
use super::probe::{FalsePositive, LongEntry, OnDevice, PlannedRead, Probe};
use super::search::Search;
use crate::batch::ByShard;
use crate::memory::Candidates;
use granary_log::Extent;
use granary_log::sync::sync::atomic::AtomicBool;

/// What a lookup plans in. It allocates nothing once this has grown to the size of the batches.
#[derive(Default)]
pub(crate) struct Scratch {
    pub by_shard: ByShard,
    pub answers: Answers,
    /// Of the keys that are looked at and of those that come next, the entries in RAM that may be theirs.
    pub candidates: [Candidates; 2],
    pub probes: Vec<Probe>,
    /// Room to sort them in.
    pub spare: Vec<Probe>,
    pub false_positives: Vec<FalsePositive>,
    pub on_device: Vec<OnDevice>,
    pub reads: Vec<PlannedRead>,
    pub extents: Vec<Extent>,
    /// Entries over several blocks that are to be read.
    pub long: Vec<LongEntry>,
    pub record: Vec<u8>,
    pub search: Search,
    /// Of lookups that go on: the numbers under which keys of the batch wait.
    pub ids: Vec<Option<u32>>,
}

impl Scratch {
    /// Nothing is looked for yet.
    pub fn begin(&mut self) {
        self.probes.clear();
        self.false_positives.clear();
    }
}

/// A batch's scratch space, and which of its keys are resolved: lookups change the one and share the other.
#[derive(Default)]
pub(crate) struct Workspace {
    pub scratch: Scratch,
    pub resolved: Vec<AtomicBool>,
}
