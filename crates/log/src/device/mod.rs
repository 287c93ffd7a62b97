//! What the log stands on: bytes at offsets that can be read, written and synced.

mod faulty;
mod file;
mod memory;
mod volatile;

pub use faulty::{Fault, Faults, FaultyDevice};
pub use file::{Access, FileDevice, OpenDeviceError, Space};
pub use memory::MemoryDevice;
pub use volatile::VolatileDevice;

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

    /// A descriptor that a ring or a pool may read by itself, where there is one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
