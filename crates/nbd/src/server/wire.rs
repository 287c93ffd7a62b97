//! The byte streams of a connection.

use crate::limits::PEEKED_BYTES_MAX;
use rustix::net::RecvFlags;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Non-blocking file descriptors: a socket, or two pipes.
pub(super) struct Wire {
    input: OwnedFd,
    /// The output, if it is not `input`.
    output: Option<OwnedFd>,
}

impl Wire {
    /// # Errors
    /// The file descriptors cannot be made non-blocking.
    pub fn new(input: OwnedFd, output: Option<OwnedFd>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&input, true)?;
        // They fail where it is no TCP socket, which is harmless: replies may come later, dead clients stay longer.
        let _ = socket2::SockRef::from(&input).set_tcp_nodelay(true);
        let _ = socket2::SockRef::from(&input).set_keepalive(true);
        if let Some(output) = &output {
            rustix::io::ioctl_fionbio(output, true)?;
        }
        Ok(Self { input, output })
    }

    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_ref().unwrap_or(&self.input).as_fd()
    }

    /// Peeks at the arrived bytes.
    ///
    /// # Errors
    /// It is no socket, nothing has arrived, or more than `PEEKED_BYTES_MAX`, which the memory budget does not cover.
    pub fn peek(&self) -> io::Result<Vec<u8>> {
        let unread = rustix::io::ioctl_fionread(&self.input)?;
        if unread > PEEKED_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; unread as usize];
        let (len, _) = rustix::net::recv(&self.input, &mut bytes, RecvFlags::PEEK)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Shuts down the sending side.
    pub fn shutdown(&mut self) {
        // It fails for a pipe, and for a client that has gone, which does not matter.
        let _ = rustix::net::shutdown(self.output(), rustix::net::Shutdown::Write);
        self.output = self.output.take().filter(|_| false);
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.input, buffer)?)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.output(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
