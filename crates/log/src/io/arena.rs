//! Memory for the buffers of one batch of reads. Arenas are shared by the process: their number grows with the threads
//! that read at the same time, not with all threads that ever read.

use super::frames;
use crate::buffer::AlignedBuffer;
use crate::limits::{READ_BYTES_MAX, READ_DEPTH, SPARE_ARENAS_MAX};
use std::sync::{Mutex, PoisonError};

/// Unused arenas, all of the usual size. The last one returned is lent first: its pages are resident.
static SPARE: Mutex<Vec<AlignedBuffer>> = Mutex::new(Vec::new());

const USUAL_BYTES: usize = frames::bytes_each(READ_BYTES_MAX) * READ_DEPTH;

pub(super) fn borrow(bytes: usize) -> AlignedBuffer {
    let spare = (bytes == USUAL_BYTES).then(|| SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop());
    spare.flatten().unwrap_or_else(|| AlignedBuffer::zeroed(bytes))
}

/// No read into the arena may be in flight.
pub(super) fn give_back(arena: AlignedBuffer) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if arena.len() == USUAL_BYTES && spare.len() < SPARE_ARENAS_MAX {
        spare.push(arena);
    }
}
