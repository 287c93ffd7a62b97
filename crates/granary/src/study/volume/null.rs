//! A device that only costs the kernel's part of any I/O, and keeps the metadata of a log.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use granary_volume::device::Device;

use crate::failure::{Result, at};

const BLOCK: usize = 4096;
/// Offset of the magic number in blocks of a volume's log that are no content.
const MAGIC_AT: usize = 40;
const MAGIC: &[u8] = b"GRVOLUME";

/// Whether a block is a header, a footer or a summary. Studies write zeroes as content.
pub fn is_metadata(block: &[u8]) -> bool {
    block[MAGIC_AT..].starts_with(MAGIC)
}

/// A device of zeroes: reads are from `/dev/zero`, writes to `/dev/null`. Headers, footers and summaries are kept in
/// RAM.
pub struct NullDevice {
    size: u64,
    zero: File,
    null: File,
    metadata: Mutex<HashMap<u64, Box<[u8]>>>,
}

impl NullDevice {
    /// A device of `size` bytes.
    pub fn new(size: u64) -> Result<Self> {
        let [zero, null] = ["/dev/zero", "/dev/null"].map(Path::new);
        Ok(Self {
            size,
            zero: File::open(zero).map_err(at(zero))?,
            null: File::options().write(true).open(null).map_err(at(null))?,
            metadata: Mutex::default(),
        })
    }

    fn metadata(&self) -> MutexGuard<'_, HashMap<u64, Box<[u8]>>> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for NullDevice {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let metadata = self.metadata();
        for (offset, bytes) in (offset..).step_by(BLOCK).zip(bytes.chunks_mut(BLOCK)) {
            match metadata.get(&offset) {
                Some(kept) => bytes.copy_from_slice(&kept[..bytes.len()]),
                None => bytes.fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&self, mut offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        for buffer in buffers {
            rustix::io::pwrite(&self.null, buffer, offset)?;
            for (offset, block) in (offset..).step_by(BLOCK).zip(buffer.chunks_exact(BLOCK)) {
                if is_metadata(block) {
                    self.metadata().insert(offset, block.into());
                }
            }
            offset += buffer.len() as u64;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.zero.as_fd())
    }
}
