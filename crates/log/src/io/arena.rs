//! Memory for the buffers of one batch of reads. The process lends it: it takes as much of it as threads read at
//! the same time, not as there are threads that ever read.

use super::frames;
use crate::buffer::AlignedBuffer;
use crate::limits::{READ_BYTES_MAX, READ_DEPTH, SPARE_ARENAS_MAX};
use std::sync::{Mutex, PoisonError};

/// Arenas that nobody uses, all of the usual size. The last that came back goes first: its pages are there.
static SPARE: Mutex<Vec<AlignedBuffer>> = Mutex::new(Vec::new());

const USUAL_BYTES: usize = frames::bytes_each(READ_BYTES_MAX) * READ_DEPTH;

pub(super) fn borrow(bytes: usize) -> AlignedBuffer {
    let spare = (bytes == USUAL_BYTES).then(|| SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop());
    spare.flatten().unwrap_or_else(|| AlignedBuffer::zeroed(bytes))
}

/// Nothing may be read into it any longer.
pub(super) fn give_back(arena: AlignedBuffer) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if arena.len() == USUAL_BYTES && spare.len() < SPARE_ARENAS_MAX {
        spare.push(arena);
    }
}
