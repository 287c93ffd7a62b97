//! Memory for the buffers of one batch of reads. Arenas are shared by the process: their number grows with the threads
//! that read at the same time, not with all threads that ever read.

use super::frames;
use crate::buffer::AlignedBuffer;
use crate::limits::{READ_BYTES_MAX, READ_DEPTH, SPARE_ARENAS_MAX};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Unused arenas, all of the usual size. The last one returned is lent first: its pages are resident.
static SPARE: Mutex<Vec<ReadArena>> = Mutex::new(Vec::new());

/// Bytes of all arenas.
static BYTES: AtomicUsize = AtomicUsize::new(0);

const USUAL_BYTES: usize = frames::bytes_each(READ_BYTES_MAX) * READ_DEPTH;

/// The memory that the reads of a ring go to.
pub(super) struct ReadArena(AlignedBuffer);

impl ReadArena {
    pub fn zeroed(bytes: usize) -> Self {
        BYTES.fetch_add(bytes, Ordering::Relaxed);
        Self(AlignedBuffer::zeroed(bytes))
    }
}

impl Deref for ReadArena {
    type Target = AlignedBuffer;

    fn deref(&self) -> &AlignedBuffer {
        &self.0
    }
}

impl DerefMut for ReadArena {
    fn deref_mut(&mut self) -> &mut AlignedBuffer {
        &mut self.0
    }
}

impl Drop for ReadArena {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// Bytes of the read buffers of the process's rings, those that wait for the next batch included.
pub fn read_buffer_bytes() -> u64 {
    BYTES.load(Ordering::Relaxed) as u64
}

pub(super) fn borrow(bytes: usize) -> ReadArena {
    let spare = (bytes == USUAL_BYTES).then(|| SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop());
    spare.flatten().unwrap_or_else(|| ReadArena::zeroed(bytes))
}

/// No read into the arena may be in flight.
pub(super) fn give_back(arena: ReadArena) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if arena.len() == USUAL_BYTES && spare.len() < SPARE_ARENAS_MAX {
        spare.push(arena);
    }
}
