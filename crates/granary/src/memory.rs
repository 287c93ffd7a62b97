//! The RAM of the machine, and the part of it that is allocated.

use granary_memcached::{AllocatorSizes, ProcessMemory};
use granary_sql::MemoryOptions;
use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Memory options of queries; `other_caches` are caches that belong to no dictionary.
pub fn options(
    queries: Option<u64>,
    other_caches: impl Fn() -> u64 + Send + Sync + 'static,
) -> MemoryOptions {
    MemoryOptions { ram: ram(), queries, allocated: in_use, other_caches: Arc::new(other_caches) }
}

/// Bytes that the process may use: the limit of its control group or one above it, or the machine's RAM.
pub fn ram() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        // `0::/path`, or `4:memory:/path` in version 1.
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
        match controllers {
            "" => least("/sys/fs/cgroup", path, "memory.max"),
            "memory" => least("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"),
            _ => None,
        }
    });
    let machine = machine();
    limits.min().map_or(machine, |limit| limit.min(machine))
}

/// The least limit from a group up to the root.
fn least(root: &str, path: &str, file: &str) -> Option<u64> {
    let groups = Path::new(path)
        .ancestors()
        .map(|group| Path::new(root).join(group.strip_prefix("/").unwrap_or(group)));
    groups.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

fn machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

/// Bytes that the allocator has given out, and bytes of files in RAM that outlive the process: RAM tiers and write
/// buffers, which their caches count.
fn in_use() -> u64 {
    allocated() + ProcessMemory::now(None).shared
}

/// Bytes that the allocator has given out.
pub fn allocated() -> u64 {
    figure(c"stats.allocated")
}

/// Bytes that the allocator has given out, and bytes that it keeps.
pub fn allocator_sizes() -> AllocatorSizes {
    let allocated = allocated();
    AllocatorSizes { allocated, kept: figure(c"stats.resident").saturating_sub(allocated) }
}

/// A current figure of the allocator.
fn figure(name: &CStr) -> u64 {
    let (mut epoch, mut bytes, mut len) = (1u64, 0usize, size_of::<usize>());
    // SAFETY: `epoch` is a `uint64_t` that is written; figures are `size_t`s that are read, each with its own size.
    unsafe {
        tikv_jemalloc_sys::mallctl(
            c"epoch".as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            (&raw mut epoch).cast(),
            size_of::<u64>(),
        );
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            (&raw mut bytes).cast(),
            &raw mut len,
            std::ptr::null_mut(),
            0,
        );
    }
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::ffi::c_void;

    const HELD: usize = 64 << 20;

    /// One test: the two kinds would show in each other's figures.
    #[test]
    fn what_is_allocated_and_files_in_ram_show() {
        // The optimiser could remove bytes that are never read.
        assert!(shows(allocated, || std::hint::black_box(vec![1u8; HELD])));
        // Caches count files in RAM: were they left out here, bytes that are no cache's would count as a cache's.
        assert!(shows(in_use, FileInRam::filled));
    }

    /// Whether a figure has what `hold` returns, `HELD` bytes. Other tests of the process may free bytes just then: it
    /// is tried again.
    fn shows<T>(figure: impl Fn() -> u64, hold: impl Fn() -> T) -> bool {
        (0..100).any(|_| {
            let before = figure();
            let held = hold();
            let now = figure();
            drop(held);
            now >= before + HELD as u64 - (8 << 20)
        })
    }

    /// Bytes of a file in RAM, mapped until this is dropped.
    struct FileInRam(*mut c_void);

    impl FileInRam {
        fn filled() -> Self {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the mapping is new, and `HELD` bytes long.
            unsafe {
                let start = mmap_anonymous(std::ptr::null_mut(), HELD, flags, MapFlags::SHARED).unwrap();
                start.cast::<u8>().write_bytes(1, HELD);
                Self(start)
            }
        }
    }

    impl Drop for FileInRam {
        fn drop(&mut self) {
            // SAFETY: the mapping is `HELD` bytes long, and nothing refers to it.
            unsafe { munmap(self.0, HELD) }.unwrap();
        }
    }

    #[test]
    fn there_is_some_ram() {
        assert!((1 << 28..1 << 50).contains(&ram()), "{}", ram());
    }
}
