//! Where clients come in: an address, or a socket in the file system.

use super::stream::Stream;
use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A socket in the file system, for clients of the same machine.
#[derive(Clone, Debug)]
pub struct UnixSocket {
    /// Where it lies.
    pub path: PathBuf,
    /// The socket's permissions, as `chmod` has them: whoever may write may connect.
    pub mode: u32,
}

impl UnixSocket {
    /// For the same user only.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: crate::limits::SOCKET_MODE_DEFAULT }
    }
}

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::Tcp)
    }

    /// In place of a socket that nobody serves any more; not of another file.
    pub fn unix(UnixSocket { path, mode }: &UnixSocket) -> io::Result<Self> {
        if let Ok(found) = path.symlink_metadata() {
            if !found.file_type().is_socket() {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there is a file that is no socket",
                ));
            }
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
        }
        // Under its name it is there with its permissions only.
        let unfinished = beside(path);
        // What an earlier start left there is a socket; another file is somebody's.
        if let Ok(found) = unfinished.symlink_metadata() {
            if !found.file_type().is_socket() {
                let text = format!("{} is in its way, and no socket", unfinished.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            std::fs::remove_file(&unfinished)?;
        }
        let listener = UnixListener::bind(&unfinished)?;
        std::fs::set_permissions(&unfinished, Permissions::from_mode(*mode))?;
        std::fs::rename(&unfinished, path)?;
        Ok(Self::Unix(listener, path.clone()))
    }

    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix(listener, _) => listener,
        }
    }

    pub fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(listener) => listener.as_raw_fd(),
            Self::Unix(listener, _) => listener.as_raw_fd(),
        }
    }

    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }

    /// The address that the system chose, if it is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }

    /// Its address, as `stats conns` has it.
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| "<null>".into(), tcp_name),
            Self::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Another server may have taken its place; a socket that nobody serves harms nobody.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

pub(super) fn tcp_name(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(_) => format!("tcp:{address}"),
        SocketAddr::V6(_) => format!("tcp6:{address}"),
    }
}
