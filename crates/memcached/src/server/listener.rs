//! Listeners: a TCP address, or a Unix socket.

use super::stream::Stream;
use granary_sockets::{SocketFile, UnixSocket};
use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(SocketFile, UnixListener),
}

impl Listener {
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::Tcp)
    }

    pub fn unix(socket: &UnixSocket) -> io::Result<Self> {
        let (file, listener) = socket.listen()?;
        Ok(Self::Unix(file, UnixListener::from_std(listener)))
    }

    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix(_, listener) => listener,
        }
    }

    pub fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(listener) => listener.as_raw_fd(),
            Self::Unix(_, listener) => listener.as_raw_fd(),
        }
    }

    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(_, listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }

    /// The TCP address that the listener is bound to; a Unix socket has none.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }

    /// The listener's address, as `stats conns` shows it.
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| "<null>".into(), tcp_name),
            Self::Unix(file, _) => format!("unix:{}", file.path().display()),
        }
    }
}

pub(super) fn tcp_name(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(_) => format!("tcp:{address}"),
        SocketAddr::V6(_) => format!("tcp6:{address}"),
    }
}
