//! The time of a single read of the device.

use super::random::Random;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Buffers of O_DIRECT begin at a multiple of this.
const ALIGNMENT: usize = 4096;

/// A file that is read a block at a time, at random, with O_DIRECT if the file system allows it.
pub struct DeviceReads {
    file: File,
    blocks: u64,
    block_bytes: usize,
    buffer: Vec<u8>,
    random: Random,
    took: Duration,
    reads: u32,
}

impl DeviceReads {
    /// Opens a file; the first `bytes` of it are read.
    pub fn open(path: &Path, bytes: u64, block_bytes: u64) -> io::Result<Self> {
        let direct = OFlags::DIRECT.bits() as i32;
        // If the file system has no direct reads, Granary uses none either.
        let file =
            File::options().read(true).custom_flags(direct).open(path).or_else(|_| File::open(path))?;
        let (blocks, block_bytes) = ((bytes / block_bytes).max(1), block_bytes as usize);
        let buffer = vec![0; block_bytes + ALIGNMENT];
        let random = Random::new(3);
        Ok(Self { file, blocks, block_bytes, buffer, random, took: Duration::ZERO, reads: 0 })
    }

    /// Reads one block, with no other read under way.
    pub fn read(&mut self) -> io::Result<()> {
        let start = self.buffer.as_ptr().align_offset(ALIGNMENT);
        let place = self.random.below(self.blocks) * self.block_bytes as u64;
        let begun = Instant::now();
        self.file.read_exact_at(&mut self.buffer[start..start + self.block_bytes], place)?;
        self.took += begun.elapsed();
        self.reads += 1;
        Ok(())
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        u64::from(self.reads) * self.block_bytes as u64
    }

    /// The mean time of a read, in microseconds; `None` before the first.
    pub fn mean_us(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.took.as_secs_f64() * 1e6 / f64::from(self.reads))
    }
}
