//! The protocol's error numbers.

use std::io;

/// The error of a command, as it is sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Errno {
    /// EPERM: the export is read-only.
    NotPermitted = 1,
    /// EIO: the device failed, or its data is damaged.
    Io = 5,
    /// ENOMEM: there is no memory for the command.
    NoMemory = 12,
    /// EINVAL: the request makes no sense.
    Invalid = 22,
    /// ENOSPC: there is no space left, or a write goes beyond the end.
    NoSpace = 28,
    /// EOVERFLOW: the request is too long.
    Overflow = 75,
    /// ENOTSUP: zeroes cannot be written faster than data.
    NotSupported = 95,
    /// ESHUTDOWN: the server is stopping.
    Shutdown = 108,
}

impl Errno {
    /// The number on the wire.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// A text for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotPermitted => "the export is read-only",
            Self::Io => "input/output error",
            Self::NoMemory => "out of memory",
            Self::Invalid => "invalid request: command, flags, range, length or alignment",
            Self::NoSpace => "no space left, or beyond the end of the export",
            Self::Overflow => "the request is longer than the server's maximum",
            Self::NotSupported => "zeroes would not be faster than data here",
            Self::Shutdown => "the server is shutting down",
        }
    }
}

impl From<&io::Error> for Errno {
    fn from(error: &io::Error) -> Self {
        if error.raw_os_error() == Some(rustix::io::Errno::CANCELED.raw_os_error()) {
            return Self::Shutdown;
        }
        match error.kind() {
            io::ErrorKind::OutOfMemory => Self::NoMemory,
            io::ErrorKind::InvalidInput => Self::Invalid,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace
            }
            // Not EPERM where the device below is read-only, which the export is not. Not ENOTSUP for Unsupported: the
            // protocol has that for zeroes that would not be fast only.
            _ => Self::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_may_not_be_written_is_not_a_read_only_export() {
        let of = |error: rustix::io::Errno| Errno::from(&io::Error::from(error));
        use rustix::io::Errno as System;
        for error in [System::ROFS, System::ACCESS, System::PERM, System::IO, System::OPNOTSUPP] {
            assert_eq!(of(error), Errno::Io, "{error}");
        }
        assert_eq!(of(System::NOSPC), Errno::NoSpace);
        assert_eq!(of(System::NOMEM), Errno::NoMemory);
    }
}
