//! Keys that wait for reads, and reads that keys wait for: two tables whose places are used again.

use crate::key::{Key, KeyHash};
use crate::lookup::{FalsePositive, Probe, ReadBlocks};
use granary_log::Extent;

/// A key whose lookup goes on.
#[derive(Default)]
pub(super) struct Waiting {
    /// What its asker calls it.
    pub ticket: u64,
    pub bytes: Vec<u8>,
    pub hash: KeyHash,
    /// Reads that may bring it. It is planned again when all have come and none did.
    pub reads: u32,
    /// How often it was planned.
    pub round: usize,
    /// It has its outcome.
    pub answered: bool,
    pub false_positives: Vec<FalsePositive>,
}

impl Waiting {
    pub fn key(&self) -> Key<'_> {
        Key::hashed(self.hash, &self.bytes)
    }
}

/// A read of neighbouring blocks of one segment.
#[derive(Default)]
pub(super) struct Read {
    pub extent: Extent,
    pub sequence: u64,
    pub instance: u64,
    /// What becomes of its blocks.
    pub blocks: ReadBlocks,
    /// By place; their keys are numbers of [`Waiting`].
    pub probes: Vec<Probe>,
    /// It is of all blocks of one entry, whose record has so many bytes.
    pub record_len: Option<usize>,
}

#[derive(Default)]
pub(super) struct Tables {
    pub waiting: Vec<Waiting>,
    waiting_free: Vec<u32>,
    pub reads: Vec<Read>,
    reads_free: Vec<u32>,
}

impl Tables {
    /// Keys that wait.
    pub fn len(&self) -> usize {
        self.waiting.len() - self.waiting_free.len()
    }

    /// A key begins to wait.
    pub fn admit(&mut self, key: Key<'_>, ticket: u64) -> u32 {
        let id = self.waiting_free.pop().unwrap_or_else(|| {
            self.waiting.push(Waiting::default());
            self.waiting.len() as u32 - 1
        });
        let waiting = &mut self.waiting[id as usize];
        waiting.bytes.clear();
        waiting.bytes.extend_from_slice(key.bytes());
        waiting.false_positives.clear();
        (waiting.ticket, waiting.hash) = (ticket, key.hash());
        (waiting.reads, waiting.round, waiting.answered) = (0, 0, false);
        id
    }

    /// A key whose reads have all come is taken out, to be planned again under the same number.
    pub fn lift(&mut self, id: u32) -> Waiting {
        std::mem::take(&mut self.waiting[id as usize])
    }

    /// A key that was lifted is back: it waits for other reads now, or has its outcome.
    pub fn put_back(&mut self, id: u32, ticket: u64, bytes: Vec<u8>, hash: KeyHash) {
        let waiting = &mut self.waiting[id as usize];
        (waiting.ticket, waiting.bytes, waiting.hash) = (ticket, bytes, hash);
        if waiting.reads == 0 {
            self.dismiss(id);
        }
    }

    /// A key has its outcome, and no read of it is under way.
    pub fn dismiss(&mut self, id: u32) {
        self.waiting_free.push(id);
    }

    /// A read of neighbouring blocks.
    pub fn open(&mut self, extent: Extent, sequence: u64, instance: u64) -> u32 {
        let id = self.reads_free.pop().unwrap_or_else(|| {
            self.reads.push(Read::default());
            self.reads.len() as u32 - 1
        });
        let read = &mut self.reads[id as usize];
        read.probes.clear();
        (read.record_len, read.blocks) = (None, ReadBlocks::Kept);
        (read.extent, read.sequence, read.instance) = (extent, sequence, instance);
        id
    }

    /// A read has come; it goes back by [`close`](Self::close).
    pub fn take(&mut self, id: u32) -> Read {
        std::mem::take(&mut self.reads[id as usize])
    }

    pub fn close(&mut self, id: u32, read: Read) {
        self.reads[id as usize] = read;
        self.reads_free.push(id);
    }
}
