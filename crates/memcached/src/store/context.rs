//! What one thread keeps between requests.

use super::fetched::Fetched;
use std::os::fd::BorrowedFd;

/// The rings of a thread, and room for the items it changes.
pub struct ThreadContext {
    /// For lists of all items, and changes that find their key changed by others.
    pub(super) io: granary_cache::Io,
    /// For what is not waited for.
    pub(super) pending: granary_cache::Pending,
    /// What is known of a key that is about to change.
    pub(super) fetched: Option<Fetched>,
    /// The data of that.
    pub(super) old: Vec<u8>,
    pub(super) new: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl ThreadContext {
    pub(super) fn new(pending: granary_cache::Pending) -> Self {
        let io = granary_cache::Io::new();
        Self { io, pending, fetched: None, old: Vec::new(), new: Vec::new(), value: Vec::new() }
    }

    /// Readable after reads have come: to be watched for changes.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.pending.event()
    }
}
