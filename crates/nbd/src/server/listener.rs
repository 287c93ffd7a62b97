//! Listening sockets: an address, a socket in the file system, or sockets that systemd opened.

use super::ServerError;
use granary_sockets::{SocketFile, UnixSocket};
use listenfd::ListenFd;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

/// The characters that may mean something in a URI.
const ENCODED_IN_URIS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

pub(super) enum Listener {
    Tcp(TcpListener),
    /// With the file if it is this server's; `None` for systemd's sockets.
    Unix(Option<SocketFile>, UnixListener),
}

impl Listener {
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self::Tcp(listener))
    }

    pub fn unix(socket: &UnixSocket) -> io::Result<Self> {
        let (file, listener) = socket.listen()?;
        Ok(Self::Unix(Some(file), listener))
    }

    /// The sockets that systemd opened for this process (`LISTEN_FDS`, `LISTEN_PID`), if any.
    ///
    /// # Errors
    /// A descriptor is not a listening stream socket: with `Accept=yes`, systemd passes an accepted connection instead.
    pub fn activated() -> Result<Vec<Self>, ServerError> {
        // Without LISTEN_PID the descriptors may be anything, even what this process opened itself.
        if !is_activated() {
            return Ok(Vec::new());
        }
        let mut sockets = ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..sockets.len() {
            let listener = match sockets.take_unix_listener(index) {
                Ok(listener) => listener.map(|listener| Self::Unix(None, listener)),
                // Another kind of socket, which was left in place.
                Err(_) => sockets.take_tcp_listener(index).map_err(ServerError::Activation)?.map(Self::Tcp),
            };
            listeners.extend(listener);
        }
        for listener in &listeners {
            let accepts = rustix::net::sockopt::socket_acceptconn(listener.fd());
            if !accepts.map_err(|error| ServerError::Activation(error.into()))? {
                let reason = "it does not listen (systemd needs Accept=no)";
                return Err(ServerError::Activation(io::Error::new(io::ErrorKind::InvalidInput, reason)));
            }
            rustix::io::ioctl_fionbio(listener.fd(), true)
                .map_err(|error| ServerError::Start(error.into()))?;
        }
        Ok(listeners)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(_, listener) => listener.as_fd(),
        }
    }

    /// Accepts a connection.
    pub fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| stream.into()),
            Self::Unix(_, listener) => listener.accept().map(|(stream, _)| stream.into()),
        }
    }

    /// The URI of an export for clients; without a name that of the default export. `requires_tls`: they must use TLS.
    pub fn uri(&self, requires_tls: bool, name: &str) -> Option<String> {
        let scheme = if requires_tls { "nbds" } else { "nbd" };
        let name = utf8_percent_encode(name, ENCODED_IN_URIS).to_string();
        match self {
            Self::Tcp(_) => {
                let separator = if name.is_empty() { "" } else { "/" };
                self.address().map(|address| format!("{scheme}://{address}{separator}{name}"))
            }
            Self::Unix(file, listener) => {
                // Granary's own socket was bound under another name than its present one.
                let bound = listener.local_addr().ok();
                let path = file.as_ref().map(SocketFile::path).or_else(|| bound.as_ref()?.as_pathname())?;
                let socket = percent_encode(path.as_os_str().as_bytes(), ENCODED_IN_URIS);
                Some(format!("{scheme}+unix:///{name}?socket={socket}"))
            }
        }
    }

    /// The address, if it is a TCP listener.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }
}

/// Whether systemd, or a similar program, has opened sockets for this process (`LISTEN_FDS`, `LISTEN_PID`).
pub fn is_activated() -> bool {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    number("LISTEN_FDS").is_some_and(|sockets| sockets > 0)
        && number("LISTEN_PID") == Some(std::process::id())
}
