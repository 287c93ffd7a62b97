//! Reads that failed, once more and block by block: what cannot be read costs the rest nothing.

use crate::framing::Log;
use granary_log::{AlignedBuffer, Extent};
use std::io;

/// Reads each block of an extent by itself. Gives the bytes, and the offsets of the blocks that cannot be read, which are
/// zeros.
pub(crate) fn read_by_block(log: &Log, extent: Extent) -> (AlignedBuffer, Vec<u64>) {
    let mut bytes = AlignedBuffer::zeroed(extent.len);
    let mut unread = Vec::new();
    let size = log.geometry().block_size();
    for (offset, block) in (extent.offset..).step_by(size).zip(bytes.chunks_exact_mut(size)) {
        if log.device().read_at(offset, block).is_err() {
            block.fill(0);
            unread.push(offset);
        }
    }
    (bytes, unread)
}

/// What a read has brought, or its [blocks](read_by_block), which `again` keeps. Zeros are no valid block.
pub(crate) fn or_by_block<'a>(
    log: &Log,
    extent: Extent,
    read: io::Result<&'a [u8]>,
    again: &'a mut Option<AlignedBuffer>,
) -> (&'a [u8], Vec<u64>) {
    match read {
        Ok(bytes) => (bytes, Vec::new()),
        Err(_) => {
            let (bytes, unread) = read_by_block(log, extent);
            (again.insert(bytes), unread)
        }
    }
}
