//! A client's socket: TCP or Unix.

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// The socket as an event source of mio.
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    pub fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }

    /// Has the system send replies at once, and notice clients that have gone without closing their connection.
    pub fn prepare(&self) {
        if let Self::Tcp(stream) = self {
            // Neither is vital: without it replies come later, and dead clients stay longer.
            let _ = stream.set_nodelay(true);
            let _ = socket2::SockRef::from(stream).set_keepalive(true);
        }
    }

    /// The client's address, as `stats conns` shows it.
    pub fn peer(&self) -> String {
        match self {
            Self::Tcp(stream) => {
                stream.peer_addr().map_or_else(|_| "<null>".into(), super::listener::tcp_name)
            }
            Self::Unix(_) => "unix:".into(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
