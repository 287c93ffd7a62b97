//! What is known in RAM of the keys of one shard. It knows no lock: whoever has it may change it.

use crate::flash::Flash;
use crate::framing::Placed;
use crate::key::Key;
use crate::memory::{Memory, Stored};
use crate::shard_index::{LookAlikes, Pointed, ShardIndex};
use crate::stats::{Counters, add};
use granary_log::sync::sync::atomic::AtomicU64;

/// Everything about the keys of one shard that is in RAM: what the index says and what the RAM tier holds change
/// together.
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

    /// Lets readers find no version of a key.
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

/// Points a key at its block, and no longer at older ones; `None`: that is to be overwritten already. Entries that are
/// taken over and not known to hold this key are counted by `taken_over`.
pub(crate) fn point(
    index: &mut ShardIndex,
    flash: &Flash,
    key: Key<'_>,
    placed: Placed,
    look_alikes: LookAlikes,
    counters: &Counters,
    taken_over: &AtomicU64,
) -> Option<Pointed> {
    // A chunk longer than a very small file overwrites its own beginning.
    if !flash.log.keeps(placed.sequence) {
        flash.note_unindexed();
        return None;
    }
    let pointed = index.point(&flash.log, key, placed, look_alikes);
    if pointed.evicted {
        add(&counters.evicted_index, 1);
    }
    if pointed.evicted || pointed.unsure > 0 {
        // DRAM first, a start finds again what was another key's.
        flash.note_unindexed();
    }
    add(taken_over, pointed.unsure);
    Some(pointed)
}
