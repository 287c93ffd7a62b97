//! A device that takes nothing while it is shut.

use granary_volume::device::{Device, MemoryDevice};
use std::io;
use std::sync::{Arc, Condvar, Mutex};

/// A device in RAM; its writes and syncs wait until it is open.
#[derive(Clone)]
pub struct GatedDevice(Arc<Gated>);

struct Gated {
    inner: MemoryDevice,
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl GatedDevice {
    /// An open one.
    pub fn new(size: u64) -> Self {
        let inner = MemoryDevice::new(size);
        Self(Arc::new(Gated { inner, is_open: Mutex::new(true), changed: Condvar::new() }))
    }

    pub fn set_open(&self, is_open: bool) {
        *self.0.is_open.lock().unwrap() = is_open;
        self.0.changed.notify_all();
    }

    fn pass(&self) {
        let is_open = self.0.is_open.lock().unwrap();
        drop(self.0.changed.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

impl Device for GatedDevice {
    fn size(&self) -> u64 {
        self.0.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.inner.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.pass();
        self.0.inner.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        self.pass();
        self.0.inner.sync()
    }
}
