//! Memory that O_DIRECT accepts.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment that every device here accepts.
pub const ALIGNMENT: usize = 4096;

/// The owner of memory that is lent to a buffer. Dropping the buffer returns the memory, unless a segment was begun in
/// it and not ended: that segment stays for the next process.
pub trait BufferOwner: Send + Sync {
    /// The buffer holds a segment from here on, still empty.
    fn begin(&self, sequence: u64);

    /// The segment is on the device, or lost: the next process must not find it.
    fn end(&self);
}

/// A zeroed byte buffer aligned to [`ALIGNMENT`]. Large ones take RAM only as they are touched.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
    /// The owner of memory that is lent; `None`: it is the allocator's.
    owner: Option<Box<dyn BufferOwner>>,
}

// SAFETY: the buffer owns its memory like a Box<[u8]>, or its owner does for it; nothing else holds the pointer.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access is read-only, through Deref.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// `len` zero bytes; `len` must not be 0.
    pub fn zeroed(len: usize) -> Self {
        assert!(len > 0, "an aligned buffer has at least one byte");
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, len, owner: None }
    }

    /// Whether the memory is lent by an owner.
    pub(crate) fn is_lent(&self) -> bool {
        self.owner.is_some()
    }

    /// A buffer of memory that belongs to `owner`, with what is in it.
    ///
    /// # Safety
    /// `start` is aligned to [`ALIGNMENT`], and the `len` bytes from there on are initialised and exclusive to the
    /// buffer until the owner is dropped.
    pub unsafe fn of(start: NonNull<u8>, len: usize, owner: Box<dyn BufferOwner>) -> Self {
        assert!(
            len > 0 && start.as_ptr().addr().is_multiple_of(ALIGNMENT),
            "a buffer is aligned and not empty"
        );
        Self { start, len, owner: Some(owner) }
    }

    /// The buffer holds a segment from here on, which a next process finds if the memory outlives this one.
    pub(crate) fn begin(&self, sequence: u64) {
        self.owner.iter().for_each(|owner| owner.begin(sequence));
    }

    /// The buffer's content is void, for a next process too.
    pub(crate) fn end(&self) {
        self.owner.iter().for_each(|owner| owner.end());
    }

    /// A part of the buffer that the kernel is not writing to. No reference is made to the rest, which it may be
    /// writing to.
    pub(crate) fn part(&mut self, at: usize, len: usize) -> &mut [u8] {
        assert!(at <= self.len && len <= self.len - at, "a part lies inside");
        // SAFETY: inside the buffer, which lives as long as self and is borrowed exclusively; initialised since
        // `zeroed`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), len) }
    }

    /// The start of a part, for the kernel to write to.
    pub(crate) fn part_start(&mut self, at: usize, len: usize) -> *mut u8 {
        assert!(at <= self.len && len <= self.len - at, "a part lies inside");
        // SAFETY: inside the buffer, as just asserted.
        unsafe { self.start.as_ptr().add(at) }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, ALIGNMENT).expect("length of a buffer fits isize")
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.owner.is_none() {
            // SAFETY: allocated in `zeroed` with the same layout.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) }
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` initialised bytes as long as self lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and &mut self makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
