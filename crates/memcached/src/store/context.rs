//! The state that one thread keeps between requests.

use super::fetch::Fetch;
use granary_cache::MemoryLookups;
use std::os::fd::BorrowedFd;

/// The rings of a thread, and what it changes items with.
pub struct ThreadContext {
    /// The ring of lists of all items.
    pub(super) io: granary_cache::Io,
    /// The ring of reads that the thread does not block on.
    pub(super) pending: granary_cache::Pending,
    pub(super) changes: ChangeBuffers,
}

/// The part of a thread's state that is used while a stripe is held. It has no way to the device.
#[derive(Default)]
pub(super) struct ChangeBuffers {
    pub memory: MemoryLookups,
    /// The fetch of the next change.
    pub fetch: Option<Fetch>,
    /// The data of the item that is there.
    pub old: Vec<u8>,
    /// The data of the item that takes its place.
    pub new: Vec<u8>,
    /// The bytes of an item, or of several, as the cache gets them.
    pub value: Vec<u8>,
}

impl ThreadContext {
    pub(super) fn new(pending: granary_cache::Pending) -> Self {
        Self { io: granary_cache::Io::new(), pending, changes: ChangeBuffers::default() }
    }

    /// Sets the fetch that the next change goes by, if it is of its key.
    pub fn set_fetch(&mut self, fetch: Option<Fetch>) {
        self.changes.fetch = fetch;
    }

    /// Takes back the fetch if no change has used it.
    pub fn take_fetch(&mut self) -> Option<Fetch> {
        self.changes.fetch.take()
    }

    /// A file descriptor that is readable after reads have come: to be watched for changes.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.pending.event()
    }
}
