//! Carrying requests out.

use crate::request::{Kind, Request};
use granary_volume::{Io, Operation, Volume};
use rustix::io::Errno;
use std::io;
use std::time::Instant;

/// Carries a request out, with the request's buffer, which is as long as the request for reads and writes. Blocks until
/// it is done. Returns the bytes of the buffer that were read or written: 0 for requests without a buffer, whatever
/// their length.
///
/// # Errors
/// The code that the kernel returns to its caller: `ENOSPC` for a write without room, `EIO` for damage.
pub fn answer(volume: &Volume, io: &mut Io, request: Request, buffer: &mut [u8]) -> Result<u64, Errno> {
    let Request { kind, offset, len, is_forced } = request;
    let began = Instant::now();
    let has_buffer = matches!(kind, Kind::Read | Kind::Write);
    if has_buffer && buffer.len() as u64 != len {
        return Err(Errno::INVAL);
    }
    let forced = || if is_forced { volume.commit() } else { Ok(()) };
    let (operation, result) = match kind {
        Kind::Read => (Some(Operation::Read), volume.read(io, offset, buffer)),
        Kind::Write => (Some(Operation::Write), volume.write(io, offset, buffer).and_then(|()| forced())),
        Kind::Flush => (Some(Operation::Flush), volume.commit()),
        Kind::Discard => (None, volume.trim(offset, len).and_then(|()| forced())),
        Kind::WriteZeroes => (None, volume.write_zeroes(io, offset, len).and_then(|()| forced())),
    };
    if let Some(operation) = operation {
        volume.note_answered(operation, began.elapsed());
    }
    result.map(|()| if has_buffer { len } else { 0 }).map_err(|error| errno(&error))
}

/// A request's result for the driver: bytes, or a negative error number.
pub fn driver_result(answered: Result<u64, Errno>) -> i32 {
    // A number of bytes that wrapped around would be an error.
    answered.map_or_else(|errno| -errno.raw_os_error(), |bytes| i32::try_from(bytes).unwrap_or(i32::MAX))
}

/// The error number of an error. An error that was repeated, or names its file, has lost the system's number: full
/// storage is still `ENOSPC`, everything else `EIO`.
fn errno(error: &io::Error) -> Errno {
    let without_number = if error.kind() == io::ErrorKind::StorageFull { Errno::NOSPC } else { Errno::IO };
    Errno::from_io_error(error).unwrap_or(without_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_space_however_it_is_told() {
        let told = io::Error::new(io::ErrorKind::StorageFull, "disk.map.new: no space left");
        assert_eq!(errno(&told), Errno::NOSPC);
        assert_eq!(errno(&Errno::NOSPC.into()), Errno::NOSPC);
        assert_eq!(errno(&io::Error::other("it is damaged")), Errno::IO);
    }
}
