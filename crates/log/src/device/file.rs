//! A regular file reserved in advance, or a raw block device.

use super::Device;
use crate::buffer::AlignedBuffer;
use crate::files::open_or_create;
use crate::lock::{Lock, lock};
use rustix::fs::{self, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The kernel's number of tmpfs.
const TMPFS_MAGIC: fs::FsWord = 0x0102_1994;

/// The way to a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// O_DIRECT: past the page cache.
    Direct,
    /// Through the page cache, where the filesystem refuses O_DIRECT.
    Buffered,
}

/// The time at which a file takes its space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Space {
    /// All space is reserved when the file is made: writes never run out of it.
    #[default]
    Reserved,
    /// The file takes space as it is written.
    Thin,
}

/// The reason why a file could not be opened as a device.
#[derive(Debug, thiserror::Error)]
pub enum OpenDeviceError {
    /// The operating system refused; `doing` says what.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Another cache has it open.
    #[error("{path} is in use by another cache")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A block device smaller than asked for.
    #[error("{path} has {has} bytes, file_size asks for {wants}")]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size in bytes.
        has: u64,
        /// The size asked for in bytes.
        wants: u64,
    },
}

/// A file of exactly the size asked for, or the first `size` bytes of a block device.
pub struct FileDevice {
    descriptor: OwnedFd,
    size: u64,
    access: Access,
    /// The file lies in RAM: reads are copies and never wait.
    is_in_memory: bool,
}

impl FileDevice {
    /// Opens or creates `path` and reserves `size` bytes of it.
    ///
    /// Without O_DIRECT (some filesystems, containers) the page cache is used and a line is logged.
    pub fn open(path: &Path, size: u64) -> Result<Self, OpenDeviceError> {
        Self::open_as(path, size, Access::Direct, Space::Reserved)
    }

    /// Like [`open`](Self::open), for reads and writes in units of `unit` bytes; if these are too small for O_DIRECT
    /// (sectors of 4 KiB), the page cache is used, too.
    pub fn open_in_units(path: &Path, size: u64, unit: usize, space: Space) -> Result<Self, OpenDeviceError> {
        let direct = Self::open_as(path, size, Access::Direct, space)?;
        // Not at the start of device and memory, which are aligned to any unit.
        let mut bytes = AlignedBuffer::zeroed(2 * unit);
        let offset = if size >= 2 * unit as u64 { unit as u64 } else { 0 };
        match direct.read_at(offset, &mut bytes[unit..]) {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                drop(direct);
                tracing::warn!(path = %path.display(), unit, "O_DIRECT wants larger blocks, using the page cache");
                Self::open_as(path, size, Access::Buffered, space)
            }
            // Any other error is left to later reads.
            _ => Ok(direct),
        }
    }

    /// Like [`open`](Self::open), with the access to try first.
    pub fn open_as(path: &Path, size: u64, wanted: Access, space: Space) -> Result<Self, OpenDeviceError> {
        let error = |doing| {
            move |errno: Errno| OpenDeviceError::Io { doing, path: path.to_owned(), source: errno.into() }
        };
        let mode = Mode::RUSR | Mode::WUSR;
        let direct = match wanted {
            Access::Direct => open_or_create(path, OFlags::RDWR | OFlags::DIRECT, mode),
            Access::Buffered => Err(Errno::INVAL),
        };
        let (descriptor, access) = match direct {
            Ok(descriptor) => (descriptor, Access::Direct),
            Err(Errno::INVAL) => {
                if wanted == Access::Direct {
                    tracing::warn!(path = %path.display(), "no O_DIRECT here, using the page cache");
                }
                (open_or_create(path, OFlags::RDWR, mode).map_err(error("open"))?, Access::Buffered)
            }
            Err(errno) => return Err(error("open")(errno)),
        };
        if lock(&descriptor).map_err(error("lock"))? == Lock::InUse {
            return Err(OpenDeviceError::InUse { path: path.to_owned() });
        }
        let stat = fs::fstat(&descriptor).map_err(error("stat"))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice {
            let has = fs::seek(&descriptor, fs::SeekFrom::End(0)).map_err(error("measure"))?;
            if has < size {
                return Err(OpenDeviceError::TooSmall { path: path.to_owned(), has, wants: size });
            }
        } else {
            let what = if space == Space::Thin { "lengthen" } else { "reserve the space of" };
            reserve(&descriptor, stat.st_size as u64, size, space).map_err(error(what))?;
        }
        let is_in_memory = fs::fstatfs(&descriptor).is_ok_and(|found| found.f_type == TMPFS_MAGIC);
        Ok(Self { descriptor, size, access, is_in_memory })
    }

    /// Drops clean pages from the page cache, so that reads come from the device: the cache may have data that a failed
    /// sync did not bring there.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn drop_cached(&self) -> io::Result<()> {
        if self.access == Access::Buffered {
            fs::fadvise(&self.descriptor, 0, None, fs::Advice::DontNeed)?;
        }
        Ok(())
    }

    /// The way to the file's content.
    pub fn access(&self) -> Access {
        self.access
    }
}

fn reserve(descriptor: &OwnedFd, has: u64, size: u64, space: Space) -> Result<(), Errno> {
    if has != size {
        fs::ftruncate(descriptor, size)?;
    }
    if space == Space::Thin {
        return Ok(());
    }
    match fs::fallocate(descriptor, FallocateFlags::empty(), 0, size) {
        // A filesystem without fallocate gets a sparse file; running out of space is then an
        // error of a write, which the cache survives.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        // What was reserved before space ran out is given back.
        other => other.inspect_err(|_| _ = fs::ftruncate(descriptor, has)),
    }
}

impl Device for FileDevice {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pread(&self.descriptor, &mut bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn write_at(&self, mut offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = buffers.iter().map(|b| IoSlice::new(b)).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match rustix::io::pwritev(&self.descriptor, rest, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    offset += n as u64;
                    IoSlice::advance_slices(&mut rest, n);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fs::fdatasync(&self.descriptor)?)
    }

    /// `None` for a file on a tmpfs: the kernel would hand each read of a ring to a thread of its own, which costs more
    /// than the copy that the read is.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_in_memory).then(|| self.descriptor.as_fd())
    }
}
