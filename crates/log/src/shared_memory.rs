//! Memory of a consumer that outlives the process.

use crate::buffer::AlignedBuffer;
use std::fmt;

/// Memory of a consumer that outlives the process, such as a file on tmpfs, bound to the content of one log by a number.
/// Write buffers may lie in it: what is in them is written by the next start.
pub trait SharedMemory: Send + Sync + fmt::Debug {
    /// The number of what the process before left; 0: nothing.
    fn found(&self) -> u64;

    /// Binds the memory to the log's content `number`, with this salt. What was found under the same number is valid,
    /// anything else is discarded. Returns the valid write buffers, each with its segment's sequence number. The log may
    /// call it again, with another number, when it has dropped those.
    fn open(&self, number: u64, salt: u64) -> Vec<(u64, AlignedBuffer)>;

    /// Returns a zeroed buffer of `bytes` bytes, or `None` if there is no room for it: then the log takes one of the
    /// process's own memory, which is lost with the process.
    fn buffer(&self, bytes: usize) -> Option<AlignedBuffer>;
}
