//! Repeats failed reads block by block, so that an unreadable block does not cost the others. Other threads may wait
//! for the reading one, and a bad sector may take a disk many seconds: reads that take long are given up.

use crate::framing::Log;
use crate::limits::READ_BY_BLOCK_MAX;
use granary_log::{AlignedBuffer, Extent};
use rustix::io::Errno;
use std::io;
use std::time::Instant;

/// The blocks of an extent that are of use if it cannot be read completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usable {
    /// Each block.
    EachBlock,
    /// All or none: the extent is a part of one entry.
    AllOrNothing,
}

/// Reads the blocks of an extent that `is_wanted` selects by their offsets, one by one. Returns the bytes, and the
/// offsets of the blocks that were not read, which are zeros.
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

/// The bytes of a read, or of its [blocks](read_by_block), which are stored in `again`. Zeros are no valid block.
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
    // If the device refused a single block, reading it again is useless.
    let is_hopeless = extent.len == log.geometry().block_size() && !is_for_want(&error);
    let (bytes, unread) = read_by_block(log, extent, usable, |_| !is_hopeless);
    (again.insert(bytes), unread)
}

/// Whether the process lacked a resource, so that the device was not asked.
fn is_for_want(error: &io::Error) -> bool {
    let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN, Errno::INTR];
    wants.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
