//! A socket in the file system.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs::Permissions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The permissions of a socket unless others are given: for its own user only, like memcached's `--unix-mask`.
const MODE_DEFAULT: u32 = 0o700;

/// The longest path of a socket that clients can name.
const PATH_BYTES_MAX: usize = 107;

/// Path and permissions of a socket for clients of the same machine.
#[derive(Clone, Debug)]
pub struct UnixSocket {
    /// Path of the socket.
    pub path: PathBuf,
    /// The socket's permissions, as for `chmod`: users who may write may connect.
    pub mode: u32,
}

impl UnixSocket {
    /// The permissions that [`UnixSocket::new`] gives.
    pub const MODE_DEFAULT: u32 = MODE_DEFAULT;

    /// A socket for its own user only.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: MODE_DEFAULT }
    }

    /// Listens, without blocking; replaces a socket that is not served any more.
    ///
    /// # Errors
    /// `InvalidInput` for a path of more than 107 bytes, `AddrInUse` if the existing socket is served, `AlreadyExists`
    /// if there is another file, and errors of the system, also when it does not let us find out whether the socket is
    /// served.
    pub fn listen(&self) -> io::Result<(SocketFile, UnixListener)> {
        let path = &self.path;
        let length = path.as_os_str().len();
        if length > PATH_BYTES_MAX {
            let text = format!("the path has {length} bytes, and that of a socket {PATH_BYTES_MAX} at most");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if is_socket(path)? && is_served(path)? {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        // The socket appears under its own name only with its permissions set.
        let unfinished = unfinished(path);
        // An earlier start can have left a socket there; another file is somebody's.
        if is_socket(&unfinished)? {
            std::fs::remove_file(&unfinished)?;
        }
        let listener = bind(&unfinished)?;
        std::fs::set_permissions(&unfinished, Permissions::from_mode(self.mode))?;
        let identity = identity(&unfinished)?;
        std::fs::rename(&unfinished, path)?;
        listener.set_nonblocking(true)?;
        Ok((SocketFile { path: path.clone(), identity }, listener))
    }
}

/// Where a socket is made. Its own name with `.new` behind it may be longer than a file may be called.
fn unfinished(path: &Path) -> PathBuf {
    let beside = path.with_added_extension("new");
    if beside.as_os_str().len() <= PATH_BYTES_MAX {
        return beside;
    }
    let mut hasher = DefaultHasher::new();
    path.file_name().hash(&mut hasher);
    path.with_file_name(format!(".{:016x}.new", hasher.finish()))
}

/// Makes a socket, also where its path is too long for an address: the kernel leads there from the descriptor of the
/// folder.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return UnixListener::bind(path);
    };
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return UnixListener::bind(path);
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    UnixListener::bind(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// The file of a socket, removed on drop, unless another server's is there, which may be once this one's was removed.
/// Drop it before the listener: as long as that is open no other file has this one's identity.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Device number and inode number.
type Identity = (u64, u64);

fn identity(path: &Path) -> io::Result<Identity> {
    path.symlink_metadata().map(|found| (found.dev(), found.ino()))
}

impl SocketFile {
    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|there| there == self.identity) {
            // A socket that is not served is harmless: the next server replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether there is a socket at a path.
///
/// # Errors
/// `AlreadyExists` if there is another file.
fn is_socket(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => Ok(true),
        Ok(_) => {
            let text = format!("{} is there already, and no socket", path.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
        }
        Err(_) => Ok(false),
    }
}

/// Whether a server listens at a socket, or may.
fn is_served(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&client, &SocketAddrUnix::new(path)?) {
        // The server's backlog is full.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(error) => {
            let error = io::Error::from(error);
            let text =
                format!("{} is there already, and who serves it cannot be told: {error}", path.display());
            Err(io::Error::new(error.kind(), text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn a_socket_takes_the_place_of_one_that_nobody_serves() {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket { mode: 0o640, ..UnixSocket::new(folder.path().join("s")) };
        let (file, listener) = socket.listen().unwrap();
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(socket.listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // As a kill leaves it.
        std::mem::forget(file);
        drop(listener);
        assert!(UnixStream::connect(&socket.path).is_err());
        let (file, listener) = socket.listen().unwrap();
        UnixStream::connect(&socket.path).unwrap();
        assert_eq!(listener.accept().map(drop).map_err(|error| error.kind()), Ok(()));
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(file);
        assert!(!socket.path.exists());
    }

    #[test]
    fn a_server_that_has_no_time_keeps_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket::new(folder.path().join("s"));
        let (file, listener) = socket.listen().unwrap();
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o700, "for its user only");
        rustix::net::listen(&listener, 0).unwrap();
        let _waits = UnixStream::connect(&socket.path).unwrap();
        assert_eq!(socket.listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_socket_that_another_server_has_made_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket::new(folder.path().join("s"));
        let (file, listener) = socket.listen().unwrap();
        std::fs::remove_file(&socket.path).unwrap();
        let (others, _listener) = socket.listen().unwrap();
        drop((file, listener));
        UnixStream::connect(&socket.path).unwrap();
        drop(others);
        assert!(!socket.path.exists());
    }

    /// A socket that refuses the question is told from one that is not served.
    #[test]
    fn a_socket_that_cannot_be_asked_stays() {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket::new(folder.path().join("s"));
        let other = UnixDatagram::bind(&socket.path).unwrap();
        let error = socket.listen().unwrap_err().to_string();
        assert!(error.contains("who serves it cannot be told"), "{error}");
        UnixDatagram::unbound().unwrap().send_to(b"x", &socket.path).unwrap();
        assert_eq!(other.recv(&mut [0]).unwrap(), 1);
    }

    /// Clients can name 107 bytes: with 104 and more of them there is no room for `.new`.
    #[test]
    fn a_path_may_be_as_long_as_clients_can_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let rest = |bytes: usize| bytes - folder.path().as_os_str().len() - 1;
        let deep = folder.path().join("d".repeat(rest(105)));
        std::fs::create_dir(&deep).unwrap();
        let long = |bytes: usize| folder.path().join("s".repeat(rest(bytes)));
        for path in [long(103), long(104), long(107), deep.join("s")] {
            let socket = UnixSocket::new(&path);
            let (file, listener) = socket.listen().unwrap();
            UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            assert_eq!(socket.listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop((file, listener));
            let left = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
            assert_eq!(left.filter(|path| !path.is_dir()).collect::<Vec<_>>(), [] as [PathBuf; 0]);
        }
        let error = UnixSocket::new(long(108)).listen().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("108 bytes"), "{error}");
    }

    #[test]
    fn other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket::new(folder.path().join("s"));
        for name in ["s", "s.new"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "somebody's").unwrap();
            let error = socket.listen().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's");
            std::fs::remove_file(path).unwrap();
        }
    }
}
