//! One read by a device's descriptor: how the ring and the pool handle the kernel's answers.

use super::extent::{Engine, Extent};
use crate::device::Device;
use std::io;
use std::os::fd::BorrowedFd;

/// Takes the ticket and result of a completed read, and may return the next read with its ticket.
pub(super) type Handover<'a> = dyn FnMut(u64, io::Result<&[u8]>) -> Option<(Extent, u64)> + 'a;

/// A device that is read by its descriptor.
#[derive(Clone, Copy)]
pub(super) struct ByDescriptor<'a> {
    device: &'a dyn Device,
    pub file: BorrowedFd<'a>,
}

impl<'a> ByDescriptor<'a> {
    /// `None`: the device has no descriptor.
    pub fn of(device: &'a dyn Device) -> Option<Self> {
        let file = device.descriptor()?;
        Some(Self { device, file })
    }
}

/// A read in progress.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadInFlight {
    pub extent: Extent,
    /// The caller's identifier of the read.
    pub ticket: u64,
    /// Bytes read so far.
    done: usize,
}

impl ReadInFlight {
    pub fn new(extent: Extent, ticket: u64) -> Self {
        Self { extent, ticket, done: 0 }
    }

    /// The number of bytes read so far, from the start of the buffer.
    pub fn done(&self) -> usize {
        self.done
    }

    /// The extent that is still to be read.
    pub fn rest(&self) -> Extent {
        let Extent { offset, len } = self.extent;
        Extent { offset: offset + self.done as u64, len: len - self.done }
    }

    /// Takes the kernel's answer to a read of the rest into `bytes`. `None`: the new rest has to be read.
    pub fn advance(
        &mut self,
        by: ByDescriptor<'_>,
        engine: Engine,
        bytes: &mut [u8],
        answer: io::Result<usize>,
    ) -> Option<io::Result<()>> {
        let rest = self.rest();
        match by.device.complete_read(engine, rest.offset, bytes, answer) {
            Ok(0) => Some(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(n) => {
                self.done += n;
                (n == rest.len).then_some(Ok(()))
            }
            // EINTR, EAGAIN: ask again.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}
