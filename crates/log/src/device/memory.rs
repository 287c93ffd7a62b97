//! A device in RAM, for tests and for trying things out.

use super::Device;
use crate::sync::RwLock;
use std::io;

/// `size` zero bytes in RAM.
pub struct MemoryDevice {
    bytes: RwLock<Vec<u8>>,
}

impl MemoryDevice {
    /// A device of `size` zero bytes.
    pub fn new(size: u64) -> Self {
        Self { bytes: RwLock::new(vec![0; size as usize]) }
    }
}

fn beyond() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the device")
}

impl Device for MemoryDevice {
    fn size(&self) -> u64 {
        self.bytes.read().expect("no panic under the lock").len() as u64
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let all = self.bytes.read().expect("no panic under the lock");
        let start = offset as usize;
        bytes.copy_from_slice(all.get(start..start + bytes.len()).ok_or_else(beyond)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        let mut all = self.bytes.write().expect("no panic under the lock");
        let mut start = offset as usize;
        for buffer in buffers {
            all.get_mut(start..start + buffer.len()).ok_or_else(beyond)?.copy_from_slice(buffer);
            start += buffer.len();
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
