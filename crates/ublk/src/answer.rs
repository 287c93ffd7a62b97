//! Carrying requests out.

use crate::request::{Kind, Request};
use granary_volume::{Io, Operation, Volume};
use rustix::io::Errno;
use std::io;
use std::time::Instant;

/// Carries a request out, with the request's buffer, which is as long as the request for reads and writes. Waits for what
/// it needs. Returns the bytes that were read or written.
///
/// # Errors
/// As the kernel shows them to whoever asked: `ENOSPC` where a write finds no room, `EIO` for damage.
pub fn answer(volume: &Volume, io: &mut Io, request: Request, buffer: &mut [u8]) -> Result<u64, Errno> {
    let Request { kind, offset, len, is_forced } = request;
    let began = Instant::now();
    let bytes = |buffer: &[u8]| if buffer.len() as u64 == len { Ok(()) } else { Err(Errno::INVAL) };
    let forced = || if is_forced { volume.commit() } else { Ok(()) };
    let (operation, result) = match kind {
        Kind::Read => {
            bytes(buffer)?;
            (Some(Operation::Read), volume.read(io, offset, buffer))
        }
        Kind::Write => {
            bytes(buffer)?;
            (Some(Operation::Write), volume.write(io, offset, buffer).and_then(|()| forced()))
        }
        Kind::Flush => (Some(Operation::Flush), volume.commit()),
        Kind::Discard => (None, volume.trim(offset, len).and_then(|()| forced())),
        Kind::WriteZeroes => (None, volume.write_zeroes(io, offset, len).and_then(|()| forced())),
    };
    if let Some(operation) = operation {
        volume.note_answered(operation, began.elapsed());
    }
    result.map(|()| len).map_err(|error| errno(&error))
}

/// The error number of an error; `EIO` where the system gave none.
fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
