//! The state in RAM of one shard's keys. It knows no lock: the caller has exclusive access.

use crate::flash::Flash;
use crate::framing::Placed;
use crate::key::Key;
use crate::memory::{Memory, Stored};
use crate::shard_index::{InsertOutcome, LookAlikes, ShardIndex};
use crate::stats::{Counters, add};
use granary_log::sync::atomic::AtomicU64;

/// The state in RAM of one shard's keys: index and RAM tier change together.
pub(crate) struct Shard {
    pub index: ShardIndex,
    pub memory: Memory,
}

impl Shard {
    /// The entry of a key in the RAM tier, which counts as read.
    #[inline]
    pub fn read(&mut self, key: Key<'_>) -> Option<Stored<'_>> {
        let candidate = self.memory.candidate(key.hash())?;
        self.memory.get(key, candidate)
    }

    /// Makes all versions of a key unreachable for readers.
    pub fn unpublish(&mut self, flash: &Flash, key: Key<'_>, counters: &Counters) {
        self.memory.remove(key);
        add(&counters.taken_over_unsure, self.index.remove_key(&flash.log, key));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.index.clear();
        self.memory.clear();
    }
}

/// Points a key at its new block only. `None`: that block is about to be overwritten. `taken_over` counts replaced
/// entries that are not known to hold this key.
pub(crate) fn point(
    index: &mut ShardIndex,
    flash: &Flash,
    key: Key<'_>,
    placed: Placed,
    look_alikes: LookAlikes,
    counters: &Counters,
    taken_over: &AtomicU64,
) -> Option<InsertOutcome> {
    // A chunk longer than a very small file overwrites its own beginning.
    if !flash.log.may_index(placed.sequence) {
        flash.note_unindexed();
        return None;
    }
    let inserted = index.point(&flash.log, key, placed, look_alikes);
    if inserted.evicted {
        add(&counters.evicted_index, 1);
    }
    if inserted.evicted || inserted.unsure > 0 {
        // DRAM first, a start would find displaced entries of other keys again.
        flash.note_unindexed();
    }
    add(taken_over, inserted.unsure);
    Some(inserted)
}
