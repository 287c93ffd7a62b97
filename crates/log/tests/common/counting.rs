//! An allocator that counts: tests of RAM compare what a structure says it takes with what was allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

struct Counting;
static ALLOCATED: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);
static CALLS: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static OWN: Cell<i64> = const { Cell::new(0) };
    static OWN_CALLS: Cell<i64> = const { Cell::new(0) };
}

fn add(bytes: usize) {
    OWN.set(OWN.get() + bytes as i64);
    OWN_CALLS.set(OWN_CALLS.get() + 1);
    CALLS.fetch_add(1, Ordering::Relaxed);
    let now = ALLOCATED.fetch_add(bytes as i64, Ordering::Relaxed) + bytes as i64;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        OWN.set(OWN.get() - layout.size() as i64);
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations are counted for the whole process: tests that measure them take turns.
pub static ALONE: Mutex<()> = Mutex::new(());

/// The most bytes that were allocated at the same time while `f` ran.
#[allow(dead_code, reason = "each test uses its part")]
pub fn most_allocated<T>(f: impl FnOnce() -> T) -> (i64, T) {
    MOST.store(allocated(), Ordering::Relaxed);
    let result = f();
    (MOST.load(Ordering::Relaxed), result)
}

/// The bytes that this thread has allocated and not freed. The test harness, which starts and ends other tests
/// meanwhile, is not included.
#[allow(dead_code, reason = "each test uses its part")]
pub fn allocated_by_this_thread() -> i64 {
    OWN.get()
}

/// The bytes that are allocated now.
#[allow(dead_code, reason = "each test uses its part")]
pub fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// The number of allocations so far, of all threads.
#[allow(dead_code, reason = "each test uses its part")]
pub fn allocations() -> i64 {
    CALLS.load(Ordering::Relaxed)
}

/// The number of allocations of this thread so far.
#[allow(dead_code, reason = "each test uses its part")]
pub fn allocations_by_this_thread() -> i64 {
    OWN_CALLS.get()
}
