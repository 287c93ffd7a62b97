//! RAM per entry, counted at the allocator: what `stats` says is what was allocated, and the index
//! takes at most five bytes an entry, as docs/index.md derives.

use granary_cache::{Cache, Entry, FlashOptions, Key, Options};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

struct Counting;
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Puts `entries` entries with keys of `key_bytes` bytes and compares what was allocated.
fn measure(entries: u64, file_size: u64, max_stored_keys: Option<u64>, key_bytes: usize, value_bytes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut flash = FlashOptions::new(folder.path().join("c"), file_size);
    flash.max_stored_keys = max_stored_keys;
    let before = allocated();
    let cache = Cache::open(Options { flash: Some(flash), memory_bytes: 0, memory_entries: None }).unwrap();
    let value = vec![7; value_bytes];
    let mut keys = vec![vec![0u8; key_bytes]; 1000];
    for first in (0..entries).step_by(1000) {
        for (i, key) in keys.iter_mut().enumerate() {
            key[..8].copy_from_slice(&(first + i as u64).to_le_bytes());
        }
        let entries: Vec<Entry<'_>> =
            keys.iter().map(|key| Entry { key: Key::new(key), value: Some(&value), expires_at: 0 }).collect();
        cache.put_many(&entries);
    }
    drop((keys, value));
    cache.flush();
    let stats = cache.stats();
    let counted = allocated() - before;
    let said = stats.bytes_allocated() as i64;
    assert!((counted - said).abs() < 128 << 10, "{counted} bytes were allocated, stats say {said}");
    let fill = stats.entries as f64 / stats.index_slots as f64;
    let per_entry = stats.index_bytes as f64 / stats.entries as f64;
    println!("{entries} entries, keys of {key_bytes} bytes: fill {fill:.3}, {per_entry:.2} bytes an entry");
    assert!(stats.entries >= entries * 99 / 100, "{} of {entries} entries", stats.entries);
    assert!(fill >= 0.86, "fill {fill}");
    // Right after it has grown, the index is a little emptier than the 90 % that the bound is for.
    let at_90 = per_entry * fill.min(0.9) / 0.9;
    assert!(at_90 <= 5.0, "{per_entry:.3} bytes an entry at a fill of {fill:.3}");
}

#[test]
fn five_bytes_an_entry() {
    measure(300_000, 1 << 30, None, 8, 12);
    measure(300_000, 1 << 30, Some(2_097_152), 100, 12);
    measure(2_000_000, 1 << 28, None, 8, 40);
    measure(1_000_000, 1 << 31, Some(1_100_000), 32, 200);
}
