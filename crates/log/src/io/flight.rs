//! One read by a device's descriptor: what the ring and the pool make of the kernel's answers.

use super::extent::{Engine, Extent};
use crate::device::Device;
use std::io;
use std::os::fd::BorrowedFd;

/// Takes a read that has completed, by its ticket, and may give one to begin.
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

/// A read that was begun.
#[derive(Clone, Copy, Default)]
pub(super) struct Flight {
    pub extent: Extent,
    /// What its reader calls it.
    pub ticket: u64,
    /// Bytes that are there.
    done: usize,
}

impl Flight {
    pub fn new(extent: Extent, ticket: u64) -> Self {
        Self { extent, ticket, done: 0 }
    }

    /// The bytes that are there, from the start of its buffer.
    pub fn done(&self) -> usize {
        self.done
    }

    /// The bytes that are still to be read.
    pub fn rest(&self) -> Extent {
        let Extent { offset, len } = self.extent;
        Extent { offset: offset + self.done as u64, len: len - self.done }
    }

    /// Takes the kernel's answer to a read of the rest into `bytes`; `None`: what is the rest now has to be read.
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
