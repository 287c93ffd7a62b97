//! Keys that wait for reads, and reads that keys wait for: two tables whose slots are reused.

use crate::key::{Key, KeyHash};
use crate::lookup::{FalsePositive, Probe, ReadBlocks};
use granary_log::Extent;

/// A key that waits for reads.
#[derive(Default)]
pub(super) struct PendingKey {
    /// The caller's identifier.
    pub ticket: u64,
    pub bytes: Vec<u8>,
    pub hash: KeyHash,
    /// Pending reads that may have its entry. It is planned again if none of them had it.
    pub reads: u32,
    /// The number of times that the key was planned.
    pub round: usize,
    /// The outcome was delivered.
    pub answered: bool,
    pub false_positives: Vec<FalsePositive>,
}

impl PendingKey {
    pub fn key(&self) -> Key<'_> {
        Key::hashed(self.hash, &self.bytes)
    }
}

/// A key that is planned again.
pub(super) struct LiftedKey {
    pub ticket: u64,
    pub bytes: Vec<u8>,
    pub hash: KeyHash,
    pub round: usize,
}

/// A read of neighbouring blocks of one segment.
#[derive(Default)]
pub(super) struct Read {
    pub extent: Extent,
    pub sequence: u64,
    pub instance: u64,
    /// The RAM tier's use of its blocks.
    pub blocks: ReadBlocks,
    /// In order of their blocks; their keys are indexes of [`PendingKey`].
    pub probes: Vec<Probe>,
    /// The length of the record in bytes, if the read is of all blocks of one entry.
    pub record_len: Option<usize>,
}

#[derive(Default)]
pub(super) struct Tables {
    pub waiting: Vec<PendingKey>,
    waiting_free: Vec<u32>,
    pub reads: Vec<Read>,
    reads_free: Vec<u32>,
}

impl Tables {
    /// Keys that wait.
    pub fn len(&self) -> usize {
        self.waiting.len() - self.waiting_free.len()
    }

    /// Adds a waiting key.
    pub fn admit(&mut self, key: Key<'_>, ticket: u64) -> u32 {
        let id = self.waiting_free.pop().unwrap_or_else(|| {
            self.waiting.push(PendingKey::default());
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

    /// Takes out a key whose reads have all completed, to be planned again under the same number, and moves its false
    /// positives to `false_positives`.
    pub fn lift(&mut self, id: u32, false_positives: &mut Vec<FalsePositive>) -> LiftedKey {
        let PendingKey { ticket, bytes, hash, round, .. } = &mut self.waiting[id as usize];
        let lifted = LiftedKey { ticket: *ticket, bytes: std::mem::take(bytes), hash: *hash, round: *round };
        false_positives.append(&mut self.waiting[id as usize].false_positives);
        lifted
    }

    /// Puts back the bytes of a key that was lifted: it waits for other reads now, or has its outcome.
    pub fn put_back(&mut self, id: u32, bytes: Vec<u8>) {
        let waiting = &mut self.waiting[id as usize];
        waiting.bytes = bytes;
        if waiting.reads == 0 {
            self.dismiss(id);
        }
    }

    /// Removes a key that has its outcome and no read in flight.
    pub fn dismiss(&mut self, id: u32) {
        self.waiting_free.push(id);
    }

    /// Adds a read of neighbouring blocks.
    pub fn open(&mut self, extent: Extent, sequence: u64, instance: u64) -> u32 {
        let id = self.reads_free.pop().unwrap_or_else(|| {
            self.reads.push(Read::default());
            self.reads.len() as u32 - 1
        });
        let read = &mut self.reads[id as usize];
        read.probes.clear();
        (read.record_len, read.blocks) = (None, ReadBlocks::Offered);
        (read.extent, read.sequence, read.instance) = (extent, sequence, instance);
        id
    }

    /// Takes out a completed read; [`close`](Self::close) puts it back.
    pub fn take(&mut self, id: u32) -> Read {
        std::mem::take(&mut self.reads[id as usize])
    }

    pub fn close(&mut self, id: u32, read: Read) {
        self.reads[id as usize] = read;
        self.reads_free.push(id);
    }
}
