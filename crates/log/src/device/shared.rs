//! A device shared by several logs.

use super::Device;
use crate::io::Engine;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::BorrowedFd;

/// A device whose sync never succeeds once one has failed, whichever log asked for it: the lost data may belong to any
/// of them, and the kernel reports a loss only once.
pub(crate) struct SharedDevice {
    inner: Box<dyn Device>,
    /// Held while the device syncs: a sync that began before another one failed must not succeed afterwards.
    syncing: Mutex<()>,
    sync_failed: AtomicBool,
}

impl SharedDevice {
    /// No sync has failed yet.
    pub fn new(inner: Box<dyn Device>) -> Self {
        Self { inner, syncing: Mutex::new(()), sync_failed: AtomicBool::new(false) }
    }
}

impl Device for SharedDevice {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.inner.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        let _syncing = self.syncing.lock().expect("no panic under the lock");
        if let Some(error) = self.sync_failure() {
            return Err(error);
        }
        self.inner.sync().inspect_err(|_| self.sync_failed.store(true, Ordering::Release))
    }

    fn sync_failure(&self) -> Option<io::Error> {
        let failure = || io::Error::other("an earlier sync failed: what it should have kept may be lost");
        self.sync_failed.load(Ordering::Acquire).then(failure)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }

    fn complete_read(
        &self,
        engine: Engine,
        offset: u64,
        bytes: &mut [u8],
        answer: io::Result<usize>,
    ) -> io::Result<usize> {
        self.inner.complete_read(engine, offset, bytes, answer)
    }
}
