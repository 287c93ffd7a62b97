//! Reads that failed, once more and block by block: what cannot be read costs the rest nothing. Who does so may be a thread
//! that others wait for, and a bad sector may take a disk many seconds: it is given up where it takes long.

use crate::framing::Log;
use crate::limits::READ_BY_BLOCK_MAX;
use granary_log::{AlignedBuffer, Extent};
use rustix::io::Errno;
use std::io;
use std::time::Instant;

/// Which blocks of an extent are used where the extent cannot be read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usable {
    /// Each block.
    EachBlock,
    /// Nothing, unless all blocks are there: it is a part of one entry.
    AllOrNothing,
}

/// Reads those blocks of an extent by themselves, by their offsets, that are wanted. Gives the bytes, and the offsets of
/// the blocks that are not there, which are zeros.
pub(crate) fn read_by_block(
    log: &Log,
    extent: Extent,
    usable: Usable,
    is_wanted: impl Fn(u64) -> bool,
) -> (AlignedBuffer, Vec<u64>) {
    let mut bytes = AlignedBuffer::zeroed(extent.len);
    let mut unread = Vec::new();
    let size = log.geometry().block_size();
    let begun = Instant::now();
    for (offset, block) in (extent.offset..).step_by(size).zip(bytes.chunks_exact_mut(size)) {
        let is_over =
            || usable == Usable::AllOrNothing && !unread.is_empty() || begun.elapsed() > READ_BY_BLOCK_MAX;
        if !is_wanted(offset) || is_over() || log.device().read_at(offset, block).is_err() {
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
    usable: Usable,
    read: io::Result<&'a [u8]>,
    again: &'a mut Option<AlignedBuffer>,
) -> (&'a [u8], Vec<u64>) {
    let error = match read {
        Ok(bytes) => return (bytes, Vec::new()),
        Err(error) => error,
    };
    // Of one block that the device refused nothing can be saved.
    let is_hopeless = extent.len == log.geometry().block_size() && !is_for_want(&error);
    let (bytes, unread) = read_by_block(log, extent, usable, |_| !is_hopeless);
    (again.insert(bytes), unread)
}

/// Whether the process lacked something, and the device was not asked.
fn is_for_want(error: &io::Error) -> bool {
    let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN, Errno::INTR];
    wants.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
