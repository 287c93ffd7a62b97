//! Where clients come in: an address, a socket in the file system, or what systemd opened.

use super::ServerError;
use listenfd::ListenFd;
use std::fs::Permissions;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
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
    /// The path is there if the socket is to be removed at the end.
    Unix(UnixListener, Option<PathBuf>),
}

impl Listener {
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self::Tcp(listener))
    }

    /// In place of a socket that nobody serves any more; not of another file.
    pub fn unix(UnixSocket { path, mode }: &UnixSocket) -> io::Result<Self> {
        if let Ok(found) = path.symlink_metadata() {
            if !found.file_type().is_socket() {
                let text = "there is a file that is no socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            if UnixStream::connect(path).is_ok() {
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
        listener.set_nonblocking(true)?;
        Ok(Self::Unix(listener, Some(path.clone())))
    }

    /// What systemd opened for this process (`LISTEN_FDS`, `LISTEN_PID`); none if it did not.
    pub fn activated() -> Result<Vec<Self>, ServerError> {
        let mut sockets = ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..sockets.len() {
            let listener = match sockets.take_unix_listener(index) {
                Ok(listener) => listener.map(|listener| Self::Unix(listener, None)),
                // Of another kind: it stays where it was.
                Err(_) => sockets.take_tcp_listener(index).map_err(ServerError::Activation)?.map(Self::Tcp),
            };
            listeners.extend(listener);
        }
        for listener in &listeners {
            rustix::io::ioctl_fionbio(listener.fd(), true)
                .map_err(|error| ServerError::Start(error.into()))?;
        }
        Ok(listeners)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }

    /// Accepts a connection, ready for use.
    pub fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Neither is vital: a reply may come later, a dead client stay longer.
                let _ = stream.set_nodelay(true);
                let _ = socket2::SockRef::from(&stream).set_keepalive(true);
                Ok(stream.into())
            }
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| stream.into()),
        }
    }

    /// The URI by which clients find it.
    pub fn uri(&self) -> Option<String> {
        match self {
            Self::Tcp(_) => self.address().map(|address| format!("nbd://{address}")),
            Self::Unix(listener, named) => {
                // Granary's own was bound under another name than it has now.
                let bound = listener.local_addr().ok();
                let path = named.as_deref().or_else(|| bound.as_ref()?.as_pathname())?;
                Some(format!("nbd+unix:///?socket={}", path.display()))
            }
        }
    }

    /// Its address, if it listens for TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }
}

/// Whether systemd, or who does as it does, has opened sockets for this process (`LISTEN_FDS`, `LISTEN_PID`).
pub fn is_activated() -> bool {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    number("LISTEN_FDS").is_some_and(|sockets| sockets > 0)
        && number("LISTEN_PID") == Some(std::process::id())
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(path)) = self {
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
