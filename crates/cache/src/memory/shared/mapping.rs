//! The mapped file: the one place with unsafe code in the RAM tier.
//!
//! Invariants:
//! 1. The mapping is as long as the file, and pages are reserved before they are touched: no access faults.
//! 2. No other process writes to the file: it is locked, and other users may not open it.
//! 3. The bytes of a [`MappedBytes`] or a write buffer are exclusive to it. The [arena](super::Arena) gives units and
//!    buffers out once.

use granary_log::{AlignedBuffer, BufferOwner};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// A mapped file on tmpfs: what is written stays when the process dies.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: it is memory without ties to a thread; the arena decides who writes where (invariant 3).
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference only atomic words are reached.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file that is that long.
    pub fn new(file: &File, len: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory that is in use.
        let base = unsafe { mmap(null_mut(), len, access, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { base, len })
    }

    /// Two words of the directory.
    #[inline]
    pub fn words(&self, offset: usize) -> [&AtomicU64; 2] {
        assert!(offset.is_multiple_of(8) && offset + 16 <= self.len);
        // SAFETY: in the mapping, which lives as long as `self` and begins at a page, so both are aligned; the
        // directory is no part of them, and is reached as atomic words only.
        let word = |i: usize| unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset + 8 * i).cast()) };
        [word(0), word(1)]
    }

    /// `len` bytes at `offset`, a page's beginning, as a buffer that belongs to `owner`, which holds this mapping. For
    /// the write buffers: there must be no other buffer of these bytes.
    pub fn buffer(&self, offset: usize, len: usize, owner: Box<dyn BufferOwner>) -> AlignedBuffer {
        let start = self.pointer(offset, len);
        // SAFETY: in the mapping, which the owner holds; initialised by the kernel, and exclusive: the owner gives the
        // buffer's number back only when it is dropped.
        unsafe { AlignedBuffer::of(start, len, owner) }
    }

    /// Maps the pages of `len` bytes at `offset`, a page's beginning, at once: one by one, each first touch would enter
    /// the kernel. The pages are reserved. A kernel that cannot (before Linux 5.14) maps them when they are touched.
    pub fn populate(&self, offset: usize, len: usize) {
        let start = self.pointer(offset, len);
        // SAFETY: in the mapping, as just seen; no byte of it changes.
        let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) };
    }

    fn pointer(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset + len <= self.len);
        // SAFETY: in the mapping, as just seen.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: every reference into the mapping holds an `Arc` of it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// An exclusive part of the mapping.
pub(super) struct MappedBytes {
    /// Keeps the bytes mapped.
    _mapping: Arc<Mapping>,
    bytes: NonNull<u8>,
    len: usize,
}

// SAFETY: the bytes are its own (invariant 3) and have no ties to a thread.
unsafe impl Send for MappedBytes {}
// SAFETY: through a shared reference they are only read.
unsafe impl Sync for MappedBytes {}

impl MappedBytes {
    /// `len` bytes at `offset` of the mapping. For the arena: it must have given out none of them.
    pub fn new(mapping: &Arc<Mapping>, offset: usize, len: usize) -> Self {
        Self { bytes: mapping.pointer(offset, len), _mapping: Arc::clone(mapping), len }
    }
}

impl Deref for MappedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes of the mapping that are its own (invariant 3), initialised by the kernel.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl DerefMut for MappedBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len) }
    }
}

/// Stores a byte atomically, after everything that was written before.
#[inline]
pub(crate) fn store_released(byte: &mut u8, value: u8) {
    // SAFETY: the reference is the only one.
    unsafe { AtomicU8::from_ptr(byte) }.store(value, Ordering::Release);
}
