//! The log's view of the file of a partition's RAM tier: it is bound to the log's content, and has room for its write
//! buffers.

use super::arena::{Arena, FoundChunk};
use super::file::Claim;
use granary_log::{AlignedBuffer, SharedMemory};
use std::fmt;
use std::sync::{Arc, Mutex};

/// The file, claimed and then opened with the log.
pub(crate) struct PartitionMemory {
    found: u64,
    state: Mutex<PartitionMemoryState>,
}

enum PartitionMemoryState {
    Claimed(Claim),
    Opened(Arc<Arena>, Vec<Vec<FoundChunk>>),
    /// It cannot be used.
    None,
}

impl PartitionMemory {
    pub fn new(claim: Claim) -> Self {
        Self { found: claim.memory_id(), state: Mutex::new(PartitionMemoryState::Claimed(claim)) }
    }

    /// Ends the claim, as the log was not opened. A file with content stays for the next attempt; a new one is removed.
    pub fn abandon(&self) {
        match &*self.state.lock().expect("no panic under the lock") {
            PartitionMemoryState::Claimed(claim) if self.found == 0 => claim.remove(),
            PartitionMemoryState::Opened(arena, _) if self.found == 0 => arena.remove(),
            _ => {}
        }
    }

    /// Returns the file and, once, the chunks found in it, or `None` if it cannot be used. Call it when the log is
    /// open.
    pub fn take_found(&self) -> Option<(Arc<Arena>, Vec<Vec<FoundChunk>>)> {
        match &mut *self.state.lock().expect("no panic under the lock") {
            PartitionMemoryState::Opened(arena, chunks) => Some((Arc::clone(arena), std::mem::take(chunks))),
            _ => None,
        }
    }
}

impl fmt::Debug for PartitionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionMemory").field("found", &self.found).finish_non_exhaustive()
    }
}

impl SharedMemory for PartitionMemory {
    fn previous_id(&self) -> u64 {
        self.found
    }

    fn open(&self, number: u64, salt: u64) -> Vec<(u64, AlignedBuffer)> {
        let mut state = self.state.lock().expect("no panic under the lock");
        match std::mem::replace(&mut *state, PartitionMemoryState::None) {
            PartitionMemoryState::Claimed(claim) => {
                let Some((arena, chunks)) = Arena::open(claim, number, salt) else { return Vec::new() };
                let buffers = arena.found_buffers();
                *state = PartitionMemoryState::Opened(arena, chunks);
                buffers
            }
            PartitionMemoryState::Opened(arena, _) => {
                tracing::warn!("the content is given up: the RAM tier of this process dies with it");
                arena.remove();
                Vec::new()
            }
            PartitionMemoryState::None => Vec::new(),
        }
    }

    fn buffer(&self, bytes: usize) -> Option<AlignedBuffer> {
        match &*self.state.lock().expect("no panic under the lock") {
            PartitionMemoryState::Opened(arena, _) => arena.take_buffer(bytes),
            _ => None,
        }
    }
}
