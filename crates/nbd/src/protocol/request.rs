//! Requests of the transmission phase: bytes to commands.

use super::target::Target;
use super::{Errno, wire};
use crate::export::Command;
use crate::limits::PAYLOAD_BYTES_MAX;

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub flags: u16,
    pub kind: u16,
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
}

impl Request {
    /// Decodes a header. `None`: it is invalid.
    pub fn decode(bytes: &[u8; wire::REQUEST_BYTES]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (flags, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let len = rest.first_chunk()?;
        (u32::from_be_bytes(*magic) == wire::REQUEST_MAGIC).then(|| Self {
            flags: u16::from_be_bytes(*flags),
            kind: u16::from_be_bytes(*kind),
            cookie: u64::from_be_bytes(*cookie),
            offset: u64::from_be_bytes(*offset),
            len: u32::from_be_bytes(*len),
        })
    }

    /// The number of bytes that follow the header.
    pub fn payload(&self) -> u32 {
        if self.kind == wire::CMD_WRITE { self.len } else { 0 }
    }

    /// The bytes that it transfers, in either direction.
    pub fn transfer(&self) -> u32 {
        if matches!(self.kind, wire::CMD_READ | wire::CMD_WRITE) { self.len } else { 0 }
    }

    /// Whether its effect must be durable before it is completed.
    pub fn is_forced(&self) -> bool {
        self.flags & wire::CMD_FLAG_FUA != 0
    }

    /// Whether the client wants one chunk, or one extent.
    pub fn is_single(&self) -> bool {
        self.flags & (wire::CMD_FLAG_DF | wire::CMD_FLAG_REQ_ONE) != 0
    }

    /// Checks the request against the negotiated properties. Returns the command, without its data.
    pub fn command(&self, target: &Target) -> Result<Command<'static>, Errno> {
        let allowed = match self.kind {
            wire::CMD_READ if target.structured => wire::CMD_FLAG_DF,
            wire::CMD_WRITE_ZEROES => wire::CMD_FLAG_NO_HOLE | wire::CMD_FLAG_FAST_ZERO,
            wire::CMD_BLOCK_STATUS => wire::CMD_FLAG_REQ_ONE,
            wire::CMD_READ | wire::CMD_WRITE | wire::CMD_FLUSH | wire::CMD_TRIM | wire::CMD_CACHE => 0,
            _ => return Err(Errno::Invalid),
        };
        if self.flags & !(allowed | wire::CMD_FLAG_FUA) != 0 {
            return Err(Errno::Invalid);
        }
        if self.kind == wire::CMD_FLUSH {
            return if (self.offset, self.len) == (0, 0) { Ok(Command::Flush) } else { Err(Errno::Invalid) };
        }
        let changes = matches!(self.kind, wire::CMD_WRITE | wire::CMD_TRIM | wire::CMD_WRITE_ZEROES);
        if changes && target.read_only {
            return Err(Errno::NotPermitted);
        }
        if self.offset.checked_add(self.len.into()).is_none_or(|end| end > target.size) {
            let writes = matches!(self.kind, wire::CMD_WRITE | wire::CMD_WRITE_ZEROES);
            return Err(if writes { Errno::NoSpace } else { Errno::Invalid });
        }
        let mask = u64::from(target.minimum_block) - 1;
        if (self.offset | u64::from(self.len)) & mask != 0 {
            return Err(Errno::Invalid);
        }
        if self.transfer() > PAYLOAD_BYTES_MAX {
            let is_read = self.kind == wire::CMD_READ;
            return Err(if is_read && target.structured { Errno::Overflow } else { Errno::Invalid });
        }
        let Self { offset, len, .. } = *self;
        let has = |flag| self.flags & flag != 0;
        let fua = self.is_forced();
        Ok(match self.kind {
            wire::CMD_READ => Command::Read { offset, len },
            wire::CMD_WRITE => Command::Write { offset, data: &[], fua },
            wire::CMD_TRIM => Command::Trim { offset, len, fua },
            wire::CMD_CACHE => Command::Cache { offset, len },
            wire::CMD_WRITE_ZEROES => {
                let (may_trim, fast) = (!has(wire::CMD_FLAG_NO_HOLE), has(wire::CMD_FLAG_FAST_ZERO));
                Command::WriteZeroes { offset, len, may_trim, fast, fua }
            }
            _ if !target.allocation || len == 0 => return Err(Errno::Invalid),
            _ => Command::BlockStatus { offset, len, one: has(wire::CMD_FLAG_REQ_ONE) },
        })
    }
}
