//! Write buffers in the file, which outlive the process. Their directory has 16 bytes for each: first 8 bytes with the
//! sequence number of its segment, or 0. Behind it, in the same format, is the first segment that a change under way
//! may be in.

use super::arena::Arena;
use super::directory::ENTRY_SIZE;
use granary_log::{AlignedBuffer, BufferOwner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A change that is under way, until this is dropped: segments may have it while RAM has the older state.
pub(crate) struct UnderWay<'a>(&'a Arena);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way().store(0, Ordering::Release);
    }
}

/// A write buffer in use. When dropped, it is free again unless it holds a segment: then the next process finds it.
struct Buffer {
    arena: Arc<Arena>,
    number: u64,
}

impl Arena {
    /// Notes that a change is under way whose records go to segment `first_sequence` and later ones. There is one at a
    /// time.
    pub fn begin_change(&self, first_sequence: u64) -> UnderWay<'_> {
        self.under_way().store(first_sequence.to_le(), Ordering::Release);
        // Before anything of the change is in a write buffer.
        fence(Ordering::SeqCst);
        UnderWay(self)
    }

    /// Notes that everything the last process left was taken over.
    pub fn end_taking_over(&self) {
        self.under_way().store(0, Ordering::Release);
    }

    fn under_way(&self) -> &AtomicU64 {
        self.mapping.words(self.layout.under_way_at() as usize)[0]
    }

    /// Takes a zeroed write buffer of `bytes` bytes, or `None` if none is free.
    pub fn take_buffer(self: &Arc<Self>, bytes: usize) -> Option<AlignedBuffer> {
        if bytes as u64 != self.layout.buffers.bytes {
            return None;
        }
        let number = self.free_buffers.lock().expect("no panic under the lock").pop_first()?;
        match self.claim.reserve(self.bytes_of_buffer(number)) {
            Ok(()) => Some(self.buffer(number)),
            Err(error) => {
                self.free_buffers.lock().expect("no panic under the lock").insert(number);
                if !self.is_short.swap(true, Ordering::Relaxed) {
                    let path = self.claim.path().display();
                    tracing::warn!(%path, %error, "no room for a write buffer: what is in it dies with the process");
                }
                None
            }
        }
    }

    /// The write buffers of the last process, with the sequence numbers of their segments. The pages of the others are
    /// given back.
    pub fn found_buffers(self: &Arc<Self>) -> Vec<(u64, AlignedBuffer)> {
        let mut found = Vec::new();
        for number in 0..self.layout.buffers.number {
            let sequence = u64::from_le(self.sequence(number).load(Ordering::Acquire));
            // The last process has reserved these pages.
            if sequence != 0 && self.claim.reserve(self.bytes_of_buffer(number)).is_ok() {
                self.free_buffers.lock().expect("no panic under the lock").remove(&number);
                found.push((sequence, self.buffer(number)));
            } else {
                self.sequence(number).store(0, Ordering::Release);
                let _ = self.claim.release(self.bytes_of_buffer(number));
            }
        }
        found
    }

    fn buffer(self: &Arc<Self>, number: u64) -> AlignedBuffer {
        let owner = Box::new(Buffer { arena: Arc::clone(self), number });
        let at = self.layout.buffer_at(number) as usize;
        self.mapping.buffer(at, self.layout.buffers.bytes as usize, owner)
    }

    fn bytes_of_buffer(&self, number: u64) -> std::ops::Range<u64> {
        self.layout.buffer_at(number)..self.layout.buffer_at(number + 1)
    }

    fn sequence(&self, number: u64) -> &AtomicU64 {
        let at = self.layout.buffer_directory_at() as usize + number as usize * ENTRY_SIZE;
        self.mapping.words(at)[0]
    }
}

impl BufferOwner for Buffer {
    fn begin(&self, sequence: u64) {
        self.arena.before_store();
        self.arena.sequence(self.number).store(sequence.to_le(), Ordering::Release);
    }

    fn end(&self) {
        self.arena.before_store();
        self.arena.sequence(self.number).store(0, Ordering::Release);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Self { arena, number } = self;
        // The next user of the buffer gets zeros.
        if arena.sequence(*number).load(Ordering::Acquire) == 0
            && arena.claim.release(arena.bytes_of_buffer(*number)).is_ok()
        {
            arena.free_buffers.lock().expect("no panic under the lock").insert(*number);
        }
    }
}
