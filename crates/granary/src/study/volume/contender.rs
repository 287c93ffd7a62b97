//! The contenders in process: the device, the device with checksums, and volumes with each map on the device.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use granary_volume::checksums::content_hash;
use granary_volume::device::Device;
use granary_volume::{BlockCheck, DeviceBlock, Extent, Io, Located, Volume};

use super::null::NullDevice;

/// The bytes of a logical block.
pub const BLOCK: usize = 4096;

/// A device or a volume on it.
pub enum VolumeContender {
    /// The device, with each block in its fixed place.
    Bare(NullDevice),
    /// The device, with a checksum of each block in RAM that reads compare.
    Checked(NullDevice, Box<[AtomicU64]>),
    /// A volume on the device.
    Mapped(Volume),
}

/// A read or a write of one or more blocks.
#[derive(Clone, Copy)]
pub struct BlockRequest {
    /// The first block.
    pub block: u64,
    pub is_read: bool,
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl VolumeContender {
    /// Carries out all requests, each of `bytes` bytes: the writes one after the other, then the reads at once. Writes
    /// write `buffer`, which holds zeroes; reads read into it.
    pub fn turn(
        &self,
        io: &mut Io,
        requests: &[BlockRequest],
        bytes: usize,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        for BlockRequest { block, .. } in requests.iter().filter(|request| !request.is_read) {
            self.write(io, *block, &buffer[..bytes])?;
        }
        let mut reads = requests.iter().filter(|request| request.is_read);
        match self {
            VolumeContender::Mapped(volume) if bytes == BLOCK && requests.len() > 1 => {
                read_many_mapped(volume, io, reads, buffer)
            }
            VolumeContender::Mapped(volume) => reads.try_for_each(|BlockRequest { block, .. }| {
                volume.read(io, block * BLOCK as u64, &mut buffer[..bytes])
            }),
            VolumeContender::Bare(device) => read_many(device, None, io, reads, bytes, buffer),
            VolumeContender::Checked(device, sums) => read_many(device, Some(sums), io, reads, bytes, buffer),
        }
    }

    fn write(&self, io: &mut Io, block: u64, data: &[u8]) -> io::Result<()> {
        match self {
            VolumeContender::Bare(device) => device.write_at(block * BLOCK as u64, &[data]),
            VolumeContender::Checked(device, sums) => {
                for (sum, data) in sums[block as usize..].iter().zip(data.chunks_exact(BLOCK)) {
                    sum.store(content_hash(data), Ordering::Release);
                }
                device.write_at(block * BLOCK as u64, &[data])
            }
            VolumeContender::Mapped(volume) => volume.write(io, block * BLOCK as u64, data),
        }
    }
}

/// Reads blocks from their fixed places, and compares their checksums if there are any.
fn read_many<'a>(
    device: &NullDevice,
    sums: Option<&[AtomicU64]>,
    io: &mut Io,
    reads: impl Iterator<Item = &'a BlockRequest>,
    bytes: usize,
    buffer: &mut [u8],
) -> io::Result<()> {
    let piece = bytes.min(Io::extent_bytes_max(BLOCK));
    let extents: Vec<Extent> = reads
        .flat_map(|request| {
            let offset = request.block * BLOCK as u64;
            (0..bytes).step_by(piece).map(move |at| Extent { offset: offset + at as u64, len: piece })
        })
        .collect();
    let mut result = Ok(());
    io.read_many(device, &extents, |i, read| match read {
        Ok(read) => {
            let at = i * piece % buffer.len();
            buffer[at..at + read.len()].copy_from_slice(read);
            let Some(sums) = sums else { return };
            let sums = &sums[(extents[i].offset / BLOCK as u64) as usize..];
            for (sum, block) in sums.iter().zip(read.chunks_exact(BLOCK)) {
                if sum.load(Ordering::Acquire) != content_hash(block) {
                    result = Err(damaged());
                }
            }
        }
        Err(error) => result = Err(error),
    });
    result
}

/// Reads single blocks of a volume at once, like its NBD server.
fn read_many_mapped<'a>(
    volume: &Volume,
    io: &mut Io,
    reads: impl Iterator<Item = &'a BlockRequest>,
    buffer: &mut [u8],
) -> io::Result<()> {
    let mut found: Vec<(u64, DeviceBlock)> = Vec::new();
    for (BlockRequest { block, .. }, out) in reads.zip(buffer.chunks_exact_mut(BLOCK)) {
        if let Located::OnDevice(stored) = volume.find(*block, out) {
            found.push((*block, stored));
        }
    }
    let extents: Vec<Extent> = found.iter().map(|(_, stored)| volume.extent(*stored)).collect();
    let mut again = Vec::new();
    io.read_many(volume.device(), &extents, |i, read| {
        let (block, stored) = found[i];
        match read {
            Ok(read) if volume.check(block, stored, read) == BlockCheck::Valid => {
                buffer[i * BLOCK..(i + 1) * BLOCK].copy_from_slice(read);
            }
            _ => again.push(block),
        }
    });
    // These were moved meanwhile.
    again.into_iter().try_for_each(|block| volume.read(io, block * BLOCK as u64, &mut buffer[..BLOCK]))
}
