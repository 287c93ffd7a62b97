//! One segment in RAM: a write buffer that is filled, sealed once, and read all along.

use crate::buffer::AlignedBuffer;
use crate::framing::{Framing, SealedBlocks, SegmentId};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{RwLock, RwLockReadGuard};
use std::ops::Range;

/// A segment that is being filled, or waits for the device.
pub struct Segment<F: Framing> {
    id: SegmentId,
    content: RwLock<SegmentContent<F>>,
    /// The blocks from the segment's beginning that are on the device already. Commits, one at a time, note them
    /// without the lock: to wait for it would keep readers out for as long as the segment is being written.
    written: AtomicUsize,
    /// The blocks from the segment's beginning that are durable.
    synced: AtomicUsize,
}

struct SegmentContent<F: Framing> {
    memory: AlignedBuffer,
    builder: F::Builder,
}

impl<F: Framing> Segment<F> {
    pub(crate) fn new(framing: &F, id: SegmentId, memory: AlignedBuffer) -> Self {
        let content = RwLock::new(SegmentContent { memory, builder: framing.begin(&id) });
        Self { id, content, written: AtomicUsize::new(0), synced: AtomicUsize::new(0) }
    }

    /// The sequence number.
    pub fn sequence(&self) -> u64 {
        self.id.sequence
    }

    /// The first block, counted from the log's beginning.
    pub fn first_block(&self) -> u64 {
        self.id.first_block
    }

    /// The bytes of RAM that the segment takes.
    pub(crate) fn bytes_allocated(&self) -> u64 {
        let content = self.lock();
        (content.memory.len() + F::bytes_allocated(&content.builder)) as u64
    }

    fn lock(&self) -> RwLockReadGuard<'_, SegmentContent<F>> {
        self.content.read().expect("no panic under the lock")
    }

    /// Passes the segment to `put` under the write lock: no one reads it meanwhile.
    pub(crate) fn fill<R>(&self, put: impl FnOnce(&SegmentId, &mut F::Builder, &mut [u8]) -> R) -> R {
        let mut content = self.content.write().expect("no panic under the lock");
        let SegmentContent { memory, builder } = &mut *content;
        put(&self.id, builder, memory)
    }

    /// The segment for reading, as long as the guard is held: nothing is added meanwhile.
    pub fn read(&self) -> SegmentReader<'_, F> {
        SegmentReader { id: &self.id, content: self.lock() }
    }

    pub(crate) fn summarize(&self, framing: &F) -> F::Summary {
        framing.summarize(&self.id, &self.lock().builder)
    }

    /// Completes the segment. The returned data range omits the blocks that are on the device already.
    pub(crate) fn seal(&self, framing: &F) -> SealedBlocks {
        let mut content = self.content.write().expect("no panic under the lock");
        let SegmentContent { memory, builder } = &mut *content;
        framing.note_synced(builder, self.synced.load(Ordering::Acquire));
        let mut sealed = framing.seal(&self.id, builder, memory);
        sealed.data.start = self.written.load(Ordering::Acquire).min(sealed.data.end);
        sealed
    }

    /// Completes what was added so far. Returns the blocks that are not on the device yet, and a copy of their bytes.
    /// `None`: the segment can only be sealed.
    pub(crate) fn commit(&self, framing: &F) -> Option<(Range<usize>, AlignedBuffer)> {
        let mut content = self.content.write().expect("no panic under the lock");
        let SegmentContent { memory, builder } = &mut *content;
        framing.note_synced(builder, self.synced.load(Ordering::Acquire));
        let end = framing.commit(&self.id, builder, memory)?;
        let written = self.written.load(Ordering::Acquire);
        let (blocks, size) = (written..end.max(written), self.id.geometry.block_size());
        let bytes = &memory[blocks.start * size..blocks.end * size];
        let mut copy = AlignedBuffer::zeroed(bytes.len().max(size));
        copy[..bytes.len()].copy_from_slice(bytes);
        Some((blocks, copy))
    }

    /// Notes that blocks that [`commit`](Self::commit) gave are on the device.
    pub(crate) fn note_written(&self, blocks: &Range<usize>) {
        if self.written.load(Ordering::Acquire) >= blocks.start {
            self.written.fetch_max(blocks.end, Ordering::AcqRel);
        }
    }

    /// Notes that the blocks before `position` that [`commit`](Self::commit) gave are durable.
    pub(crate) fn note_synced(&self, position: usize) {
        self.synced.fetch_max(position, Ordering::AcqRel);
    }

    /// From here on a next process finds the segment, if its memory outlives this process.
    pub(crate) fn begin(&self) {
        self.lock().memory.begin(self.id.sequence);
    }

    /// The segment is on the device, or is about to be lost: the next process must not find it in RAM.
    pub(crate) fn end(&self) {
        self.lock().memory.end();
    }

    /// Takes the memory back for the next segment, zeroed.
    pub(crate) fn into_memory(self, framing: &F) -> AlignedBuffer {
        let mut content = self.content.into_inner().expect("no panic under the lock");
        let size = self.id.geometry.block_size();
        for used in framing.used(&self.id.geometry, &content.builder) {
            content.memory[used.start * size..used.end * size].fill(0);
        }
        content.memory
    }
}

/// Read access to a segment in RAM.
pub struct SegmentReader<'a, F: Framing> {
    id: &'a SegmentId,
    content: RwLockReadGuard<'a, SegmentContent<F>>,
}

impl<F: Framing> SegmentReader<'_, F> {
    /// The sequence number.
    pub fn sequence(&self) -> u64 {
        self.id.sequence
    }

    /// The first block, counted from the log's beginning.
    pub fn first_block(&self) -> u64 {
        self.id.first_block
    }

    /// The builder of the segment.
    pub fn builder(&self) -> &F::Builder {
        &self.content.builder
    }

    /// The bytes from a block to the segment's end. The block is counted from the log's beginning.
    pub fn bytes_from(&self, block: u64) -> &[u8] {
        let at = (block - self.id.first_block) as usize;
        &self.content.memory[at * self.id.geometry.block_size()..]
    }

    /// The bytes of a range of blocks, counted from the segment's first.
    pub(crate) fn bytes(&self, blocks: Range<usize>) -> &[u8] {
        let size = self.id.geometry.block_size();
        &self.content.memory[blocks.start * size..blocks.end * size]
    }
}
