//! Requests as the driver describes them (`struct ublksrv_io_desc` of linux/ublk_cmd.h).

use rustix::io::Errno;

/// Bytes of a sector, the unit of the driver's offsets and lengths.
pub const SECTOR: u64 = 512;

/// `UBLK_IO_OP_*`.
pub(crate) const OP_READ: u32 = 0;
pub(crate) const OP_WRITE: u32 = 1;
pub(crate) const OP_FLUSH: u32 = 2;
pub(crate) const OP_DISCARD: u32 = 3;
pub(crate) const OP_WRITE_ZEROES: u32 = 5;
/// The bits of an operation; flags lie above them.
pub(crate) const OP_MASK: u32 = 0xff;
/// `UBLK_IO_F_FUA`: the written bytes are durable before the request is answered.
pub(crate) const FLAG_FUA: u32 = 1 << 13;

/// An operation of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads bytes into the request's buffer.
    Read,
    /// Writes the bytes of the request's buffer.
    Write,
    /// Makes all completed writes durable.
    Flush,
    /// Gives back the space of whole blocks, which read as zeroes afterwards.
    Discard,
    /// Makes bytes zero.
    WriteZeroes,
}

/// A request that lies within the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub kind: Kind,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Whether the write is durable before it is answered.
    pub is_forced: bool,
}

impl Request {
    /// Reads a request for a device of `size` bytes, by the fields of the driver's description.
    ///
    /// # Errors
    /// `ENOTSUP` for an operation that volumes do not have, `EIO` for a range outside of the device.
    pub fn parse(op_flags: u32, start_sector: u64, sectors: u32, size: u64) -> Result<Self, Errno> {
        let kind = match op_flags & OP_MASK {
            OP_READ => Kind::Read,
            OP_WRITE => Kind::Write,
            OP_FLUSH => Kind::Flush,
            OP_DISCARD => Kind::Discard,
            OP_WRITE_ZEROES => Kind::WriteZeroes,
            _ => return Err(Errno::NOTSUP),
        };
        let (offset, len) = match kind {
            // A flush has no range.
            Kind::Flush => (0, 0),
            _ => (start_sector.checked_mul(SECTOR).ok_or(Errno::IO)?, u64::from(sectors) * SECTOR),
        };
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(Errno::IO);
        }
        Ok(Self { kind, offset, len, is_forced: op_flags & FLAG_FUA != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 20;

    #[test]
    fn requests_are_read() {
        let parse = |op_flags, start, sectors| Request::parse(op_flags, start, sectors, SIZE);
        let request = |kind, offset, len, is_forced| Ok(Request { kind, offset, len, is_forced });
        assert_eq!(parse(OP_READ, 2, 8), request(Kind::Read, 1024, 4096, false));
        assert_eq!(parse(OP_WRITE | FLAG_FUA, 2040, 8), request(Kind::Write, SIZE - 4096, 4096, true));
        assert_eq!(parse(OP_DISCARD, 0, 2048), request(Kind::Discard, 0, SIZE, false));
        // UBLK_IO_F_NOUNMAP is a hint that a volume may ignore.
        assert_eq!(parse(OP_WRITE_ZEROES | 1 << 15, 1, 1), request(Kind::WriteZeroes, 512, 512, false));
        assert_eq!(parse(OP_FLUSH, u64::MAX, 7), request(Kind::Flush, 0, 0, false));
    }

    #[test]
    fn what_is_not_a_request_of_the_device_is_refused() {
        for (op_flags, start, sectors, errno) in [
            (OP_READ, 2041, 8, Errno::IO),
            (OP_WRITE, 2048, 1, Errno::IO),
            (OP_READ, u64::MAX, 1, Errno::IO),
            (OP_READ, u64::MAX / SECTOR, u32::MAX, Errno::IO),
            (OP_DISCARD, 1, u32::MAX, Errno::IO),
            // UBLK_IO_OP_WRITE_SAME, and an operation that no kernel has.
            (4, 0, 1, Errno::NOTSUP),
            (0xff, 0, 1, Errno::NOTSUP),
        ] {
            assert_eq!(
                Request::parse(op_flags, start, sectors, SIZE),
                Err(errno),
                "{op_flags} {start} {sectors}"
            );
        }
    }
}
