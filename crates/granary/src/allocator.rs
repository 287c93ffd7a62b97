//! The process's allocator, and its settings.

use std::ffi::c_char;
use std::io;
use std::ptr::null_mut;
use std::time::Duration;

/// Queries are planned and answered in many short-lived pieces, by many threads.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Options that jemalloc reads before its first allocation, as a C string. `_RJEM_MALLOC_CONF` in the environment is
/// read later and overrides them.
#[repr(transparent)]
struct Options(*const c_char);

// SAFETY: it points to a constant.
unsafe impl Sync for Options {}

/// Each thread caches what it frees, by default pieces of up to 32 KiB. A server has many threads that wait, for
/// clients and for sources, and are used in turn: their caches grew for hours, to a third of its heap. Larger pieces
/// than these are rare enough to be taken from the common store.
///
/// Freed memory returns to the system after a second; jemalloc's default is ten: the memory in which a start reads a
/// cache larger than RAM would stay beside the index made from it. Queries within that second reuse it.
///
/// The heap is in huge pages if the kernel offers them on request: a query over a dictionary touches an index and
/// buffers of megabytes at random, and takes a tenth less time. A server does without ([`crate::server::run`]).
#[used]
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: Options = Options(c"tcache_max:4096,thp:always,dirty_decay_ms:1000".as_ptr());

/// How often a server returns freed memory.
const DECAY_PAUSE: Duration = Duration::from_secs(1);

/// Returns freed memory to the system for as long as the process lives, also while nothing is allocated: threads that
/// wait for clients do not call the allocator.
pub fn decay_while_idle() -> io::Result<()> {
    let decay = || {
        loop {
            std::thread::sleep(DECAY_PAUSE);
            decay();
        }
    };
    std::thread::Builder::new().name("allocator".to_owned()).spawn(decay).map(drop)
}

/// Returns memory freed long enough ago, in all arenas (4096 stands for them). Returns jemalloc's error, 0 for none.
fn decay() -> i32 {
    // SAFETY: the pointers to values are null: nothing is read or written.
    unsafe { tikv_jemalloc_sys::mallctl(c"arena.4096.decay".as_ptr(), null_mut(), null_mut(), null_mut(), 0) }
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_char};
    use std::ptr::{null, null_mut};

    /// The value of an option of jemalloc; `value` is the initial content.
    ///
    /// # Safety
    /// The option has the type `T`.
    unsafe fn option<T>(name: &CStr, mut value: T) -> T {
        let mut len = size_of::<T>();
        // SAFETY: the option is written to a variable of its type and size.
        let error = unsafe {
            tikv_jemalloc_sys::mallctl(name.as_ptr(), (&raw mut value).cast(), &raw mut len, null_mut(), 0)
        };
        assert_eq!(error, 0, "{name:?}");
        value
    }

    #[test]
    fn the_heap_is_in_huge_pages() {
        // SAFETY: the option is a C string that lives as long as the process.
        let mode = unsafe { CStr::from_ptr(option(c"opt.thp", null::<c_char>())) };
        assert_eq!(mode, c"always");
    }

    #[test]
    fn threads_keep_small_pieces_only() {
        // SAFETY: the option is a `size_t`.
        assert_eq!(unsafe { option(c"opt.tcache_max", 0_usize) }, 4096);
    }

    #[test]
    fn all_arenas_decay() {
        assert_eq!(super::decay(), 0);
    }

    #[test]
    fn what_is_freed_goes_back_to_the_system_soon() {
        // SAFETY: the option is an `ssize_t`.
        assert_eq!(unsafe { option(c"opt.dirty_decay_ms", 0_isize) }, 1000);
    }
}
