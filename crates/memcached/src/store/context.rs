//! What one thread keeps between requests.

use std::os::fd::BorrowedFd;

/// The rings of a thread, and room for the items it changes.
pub struct ThreadContext {
    /// For changes, which wait for their reads.
    pub(super) io: granary_cache::Io,
    /// For reads, which are not waited for.
    pub(super) pending: granary_cache::Pending,
    pub(super) old: Vec<u8>,
    pub(super) new: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl ThreadContext {
    pub(super) fn new(pending: granary_cache::Pending) -> Self {
        Self { io: granary_cache::Io::new(), pending, old: Vec::new(), new: Vec::new(), value: Vec::new() }
    }

    /// Readable after reads have come: to be watched for changes.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.pending.event()
    }
}
