//! A device whose writes wait while it is shut.

use granary_log::device::{Device, MemoryDevice};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A device in RAM; its writes and syncs wait until it is open.
#[derive(Clone)]
pub struct GatedDevice(Arc<Gated>);

struct Gated {
    inner: MemoryDevice,
    is_open: Mutex<bool>,
    is_readable: AtomicBool,
    changed: Condvar,
}

impl GatedDevice {
    /// An open device.
    pub fn new(size: u64) -> Self {
        let inner = MemoryDevice::new(size);
        let (is_open, is_readable) = (Mutex::new(true), AtomicBool::new(true));
        Self(Arc::new(Gated { inner, is_open, is_readable, changed: Condvar::new() }))
    }

    /// Sets whether reads succeed.
    #[allow(dead_code, reason = "each test uses its part")]
    pub fn set_readable(&self, is_readable: bool) {
        self.0.is_readable.store(is_readable, Ordering::Release);
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
        match self.0.is_readable.load(Ordering::Acquire) {
            true => self.0.inner.read_at(offset, bytes),
            false => Err(io::Error::from_raw_os_error(5)),
        }
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
