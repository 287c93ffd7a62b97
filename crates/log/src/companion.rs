//! What a consumer keeps beside the log's files in memory that outlives the process.

use crate::buffer::AlignedBuffer;
use std::fmt;

/// Memory of a consumer that outlives the process, bound to the content of one log by a number. Write buffers may lie
/// in it: what is in them is written by the next start.
pub trait Companion: Send + Sync + fmt::Debug {
    /// The number of what the process before left; 0: nothing.
    fn found(&self) -> u64;

    /// The log is opened: from now on the number is `number`, of a log with this salt. What was found counts if it has
    /// that number, and is void otherwise. Returns the write buffers that count, with the sequence numbers that they
    /// were begun with. The log may call it again, with another number, when it has dropped those.
    fn open(&self, number: u64, salt: u64) -> Vec<(u64, AlignedBuffer)>;

    /// Returns a zeroed buffer of so many bytes, or `None` if there is no room for it: then it is of the process's own
    /// memory, and lost with the process.
    fn buffer(&self, bytes: usize) -> Option<AlignedBuffer>;
}
