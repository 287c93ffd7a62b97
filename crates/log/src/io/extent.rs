//! What is read, and through what.

/// A stretch of the device to read: bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub offset: u64,
    /// How long it is, at most [`Io::extent_bytes_max`](crate::Io::extent_bytes_max).
    pub len: usize,
}

/// What reads go through, chosen at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// io_uring on the calling thread.
    Ring,
    /// A pool of threads that call pread.
    Pool,
    /// One read after the other on the calling thread.
    Plain,
}
