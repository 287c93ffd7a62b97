//! Extents to read, and the engines that read them.

/// A range of bytes of the device to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes, at most [`Io::extent_bytes_max`](crate::Io::extent_bytes_max).
    pub len: usize,
}

/// The mechanism that reads go through, chosen at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// io_uring on the calling thread.
    Ring,
    /// A pool of threads that call pread.
    Pool,
    /// One read after the other on the calling thread.
    Plain,
}
