//! The state that one thread keeps between requests.

use super::fetched::Fetched;
use std::os::fd::BorrowedFd;

/// The rings of a thread, and buffers for the items it changes.
pub struct ThreadContext {
    /// The ring of lists of all items, and of changes whose key was changed by another client.
    pub(super) io: granary_cache::Io,
    /// The ring of reads that the thread does not block on.
    pub(super) pending: granary_cache::Pending,
    /// The result of looking up a key that is about to change.
    pub(super) fetched: Option<Fetched>,
    /// The data of the item in `fetched`.
    pub(super) old: Vec<u8>,
    pub(super) new: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl ThreadContext {
    pub(super) fn new(pending: granary_cache::Pending) -> Self {
        let io = granary_cache::Io::new();
        Self { io, pending, fetched: None, old: Vec::new(), new: Vec::new(), value: Vec::new() }
    }

    /// A file descriptor that is readable after reads have come: to be watched for changes.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.pending.event()
    }
}
