//! A device whose writes and syncs wait while it is shut.

#![allow(dead_code, reason = "each test uses its part")]

use granary_log::device::{Device, MemoryDevice};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A device whose writes and syncs wait until it is open. A sync covers what was written before it began.
pub struct GatedDevice<D = MemoryDevice>(Arc<Gated<D>>);

struct Gated<D> {
    inner: D,
    gate: Mutex<Gate>,
    is_readable: AtomicBool,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    holds_writes: bool,
    holds_syncs: bool,
    /// Syncs so far that may begin, and end, while syncs are held.
    may_begin: usize,
    may_end: usize,
    /// Syncs that have begun, and ended.
    begun: usize,
    ended: usize,
}

impl GatedDevice {
    /// An open device in RAM.
    pub fn new(size: u64) -> Self {
        Self::over(MemoryDevice::new(size))
    }
}

impl<D> Clone for GatedDevice<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D> GatedDevice<D> {
    /// An open device over another one.
    pub fn over(inner: D) -> Self {
        let is_readable = AtomicBool::new(true);
        Self(Arc::new(Gated { inner, gate: Mutex::default(), is_readable, changed: Condvar::new() }))
    }

    pub fn inner(&self) -> &D {
        &self.0.inner
    }

    /// Sets whether reads succeed.
    pub fn set_readable(&self, is_readable: bool) {
        self.0.is_readable.store(is_readable, Ordering::Release);
    }

    pub fn set_open(&self, is_open: bool) {
        self.change(|gate| {
            (gate.may_begin, gate.may_end) = (0, 0);
            (gate.holds_writes, gate.holds_syncs) = (!is_open, !is_open);
        });
    }

    /// Lets one sync begin, but not end, and no other one begin, until the result is dropped. Writes go on.
    pub fn hold_syncs(&self) -> HeldSyncs<D> {
        self.change(|gate| {
            (gate.may_begin, gate.may_end) = (gate.begun + 1, gate.ended);
            gate.holds_syncs = true;
        });
        HeldSyncs(self.clone())
    }

    /// The number of syncs that have ended.
    pub fn syncs(&self) -> usize {
        self.lock().ended
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        self.0.gate.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Gate)) {
        change(&mut self.lock());
        self.0.changed.notify_all();
    }
}

/// Syncs of a device that wait.
pub struct HeldSyncs<D>(GatedDevice<D>);

impl<D> HeldSyncs<D> {
    /// Waits until the sync has begun.
    pub fn wait_for_sync(&self) {
        let is_awaited = |gate: &mut Gate| gate.begun < gate.may_begin;
        let changed = &self.0.0.changed;
        let waited = changed.wait_timeout_while(self.0.lock(), Duration::from_secs(60), is_awaited);
        let is_late = waited.unwrap().1.timed_out();
        assert!(!is_late, "no sync begins");
    }

    /// Lets the sync end. The next one waits before it begins.
    pub fn end_sync(&self) {
        self.0.change(|gate| gate.may_end += 1);
    }
}

impl<D> Drop for HeldSyncs<D> {
    /// Also in a test that fails, which would wait for its syncs otherwise.
    fn drop(&mut self) {
        self.0.set_open(true);
    }
}

impl<D: Device> Device for GatedDevice<D> {
    fn size(&self) -> u64 {
        self.0.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self.0.is_readable.load(Ordering::Acquire) {
            true => self.0.inner.read_at(offset, bytes),
            false => Err(io::Error::from_raw_os_error(5)),
        }
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        drop(self.0.changed.wait_while(self.lock(), |gate| gate.holds_writes).unwrap());
        self.0.inner.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        let wait_while = |is_held: fn(&Gate) -> bool| {
            self.0.changed.wait_while(self.lock(), |gate| gate.holds_syncs && is_held(gate)).unwrap()
        };
        drop(wait_while(|gate| gate.begun >= gate.may_begin));
        let synced = self.0.inner.sync();
        self.change(|gate| gate.begun += 1);
        wait_while(|gate| gate.ended >= gate.may_end).ended += 1;
        synced
    }
}
