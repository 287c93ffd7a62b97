//! Memory of a consumer that outlives the process.

use crate::buffer::AlignedBuffer;
use std::fmt;

/// Memory of a consumer that outlives the process, such as a file on tmpfs, bound to the content of one log by a
/// number. Write buffers may lie in it; the next start writes their content to the device.
pub trait SharedMemory: Send + Sync + fmt::Debug {
    /// The number of the memory that the last process left; 0: there is none.
    fn previous_id(&self) -> u64;

    /// Binds the memory to the log's content `number`, with this salt. What was found under the same number is valid,
    /// anything else is discarded. Returns the valid write buffers, each with its segment's sequence number. The log
    /// may call it again, with another number, once it has dropped those buffers.
    fn open(&self, number: u64, salt: u64) -> Vec<(u64, AlignedBuffer)>;

    /// Returns a zeroed buffer of `bytes` bytes, or `None` if there is no room: the log then uses private memory, which
    /// is lost with the process.
    fn buffer(&self, bytes: usize) -> Option<AlignedBuffer>;
}
