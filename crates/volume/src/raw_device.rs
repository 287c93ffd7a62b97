//! Raw devices of volumes.

use crate::config::Error;
use crate::limits::{DEVICE_HEAD_BYTES, DEVICE_UNIT};
use granary_log::device::{Device, FileDevice, Space};
use granary_log::{AlignedBuffer, patiently};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Checks that a volume of `bytes` bytes may be created on a device: that it is a block device, large enough, not in
/// use, and has no data in its head, such as a file system's or another volume's. The device is claimed until the
/// returned descriptor is dropped.
pub(crate) fn check_unused(path: &Path, bytes: u64) -> Result<OwnedFd, Error> {
    let claim = claim(path)?;
    let mut head = AlignedBuffer::zeroed(DEVICE_HEAD_BYTES);
    open(path, bytes)?.read_at(0, &mut head).map_err(Error::io("read", path))?;
    if head.iter().any(|byte| *byte != 0) {
        let reason = format!(
            "{} has data on it; `granary volume create --force` overwrites it, whatever it is",
            path.display()
        );
        return Err(invalid(reason));
    }
    Ok(claim)
}

/// Zeroes the whole device: if a segment of a former volume were left, that volume could be opened again, and overwrite
/// the new one. Fails like [`check_unused`] if the device is invalid, too small or in use.
pub(crate) fn wipe(path: &Path, bytes: u64) -> Result<OwnedFd, Error> {
    let claim = claim(path)?;
    let device = open(path, bytes)?;
    let wiped = zero(&claim, &device).and_then(|()| device.sync());
    wiped.map_err(Error::io("write", path))?;
    Ok(claim)
}

/// Zeroes a device by its own command, which most have, or else piece by piece.
fn zero(claim: &OwnedFd, device: &FileDevice) -> io::Result<()> {
    let bytes = rustix::fs::seek(claim, SeekFrom::End(0))?;
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let zeroes = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    if [hole, zeroes].into_iter().any(|how| rustix::fs::fallocate(claim, how, 0, bytes).is_ok()) {
        return Ok(());
    }
    let piece = AlignedBuffer::zeroed(DEVICE_HEAD_BYTES);
    let mut at = 0;
    while at < bytes {
        let len = (bytes - at).min(piece.len() as u64);
        device.write_at(at, &[&piece[..len as usize]])?;
        at += len;
    }
    Ok(())
}

/// Whether there is a block device at a path.
pub(crate) fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

fn invalid(reason: String) -> Error {
    Error::Invalid { option: "device", reason }
}

/// Claims a block device exclusively, as a mount does. Waits up to a second for its holder.
pub(crate) fn claim(path: &Path) -> Result<OwnedFd, Error> {
    let shown = path.display();
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let descriptor = match patiently(Errno::BUSY, || rustix::fs::open(path, flags, Mode::empty())) {
        Err(Errno::NOENT) => return Err(invalid(format!("there is no {shown}"))),
        Err(Errno::BUSY) => {
            return Err(invalid(format!("{shown} is in use: unmount it, or take it out of what has it")));
        }
        opened => opened.map_err(|errno| Error::io("open", path)(errno.into()))?,
    };
    let stat = rustix::fs::fstat(&descriptor).map_err(|errno| Error::io("stat", path)(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        let reason = format!(
            "{shown} is no block device; without --device the data is a file beside the volume's others"
        );
        return Err(invalid(reason));
    }
    Ok(descriptor)
}

fn open(path: &Path, bytes: u64) -> Result<FileDevice, Error> {
    let bytes = bytes.max(DEVICE_HEAD_BYTES as u64);
    let opened = FileDevice::open_in_units(path, bytes, DEVICE_UNIT, Space::Thin);
    opened.map_err(|error| granary_log::OpenError::Device(error).into())
}
