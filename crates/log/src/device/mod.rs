//! The storage below the log: bytes at offsets that can be read, written and synced.

mod faulty;
mod file;
mod memory;
mod shared;
mod volatile;

pub use faulty::{Fault, Faults, FaultyDevice};
pub use file::{Access, FileDevice, OpenDeviceError, Space};
pub use memory::MemoryDevice;
pub(crate) use shared::SharedDevice;
pub use volatile::VolatileDevice;

use crate::io::Engine;
use std::io;
use std::os::fd::BorrowedFd;

/// The one seam below the log. Offsets and lengths are multiples of the block size.
pub trait Device: Send + Sync {
    /// Bytes of the device.
    fn size(&self) -> u64;

    /// Fills `bytes` from `offset`; a short read is an error.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes the buffers one after the other from `offset`, all of them or an error.
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()>;

    /// Returns once everything written survives a loss of power.
    fn sync(&self) -> io::Result<()>;

    /// The reason why no sync will succeed any more; `None`: syncs may succeed.
    fn sync_failure(&self) -> Option<io::Error> {
        None
    }

    /// A descriptor that a ring or a pool may read directly, if there is one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Called when the ring or the pool has read by the descriptor, before the bytes are used. `answer` is the
    /// kernel's: how many bytes were read from `offset` to the start of `bytes`. The returned value replaces it; a
    /// device that simulates faults changes it, and `bytes`.
    fn complete_read(
        &self,
        engine: Engine,
        offset: u64,
        bytes: &mut [u8],
        answer: io::Result<usize>,
    ) -> io::Result<usize> {
        let _ = (engine, offset, bytes);
        answer
    }
}
