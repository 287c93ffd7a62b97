//! A process that may start no thread: opening fails with an error, and the cache loses nothing.

#![cfg(not(any(miri, feature = "shuttle")))]

use granary_cache::admission::Admission;
use granary_cache::{Cache, Entry, Io, OpenError, Outcome};
use std::path::Path;
use std::process::Command;

/// The folder of the process without threads.
const FOLDER: &str = "GRANARY_TEST_WITHOUT_THREADS";

/// A stack that fits no address space.
const STACK_BYTES: &str = "281474976710656";

const KEYS: u32 = 3000;

/// Write-through, and DRAM first.
fn open(folder: &Path, is_dram_first: bool) -> Result<Cache, OpenError> {
    let admission = if is_dram_first { Admission::Reuse } else { Admission::All };
    let path = folder.join(if is_dram_first { "dram_first" } else { "through" });
    Cache::builder().memory(1 << 20).flash(path, 32 << 20).admission(admission).memory_folder(folder).open()
}

#[test]
fn worker() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    for is_dram_first in [false, true] {
        let error = open(Path::new(&folder), is_dram_first).unwrap_err();
        assert!(matches!(error, OpenError::Thread { .. }), "{error}");
        assert!(error.to_string().contains("ulimit -u"), "{error}");
    }
}

#[test]
fn a_start_without_threads_fails_and_the_next_finds_everything() {
    let folder = tempfile::tempdir().unwrap();
    let value = [7; 100];
    for is_dram_first in [false, true] {
        let cache = open(folder.path(), is_dram_first).unwrap();
        let keys: Vec<[u8; 4]> = (0..KEYS).map(u32::to_le_bytes).collect();
        let entry = |key| Entry { key: cache.key(key), value: Some(&value), expires_at: 0 };
        let entries: Vec<Entry<'_>> = keys.iter().map(|key| entry(&key[..])).collect();
        assert!(cache.put_many(&entries).is_empty());
        cache.close().unwrap();
    }
    for _ in 0..2 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker", "--test-threads=1"]);
        let output = command.env(FOLDER, folder.path()).env("RUST_MIN_STACK", STACK_BYTES).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    for is_dram_first in [false, true] {
        let cache = open(folder.path(), is_dram_first).unwrap();
        let names: Vec<[u8; 4]> = (0..KEYS).map(u32::to_le_bytes).collect();
        let keys: Vec<_> = names.iter().map(|name| cache.key(name)).collect();
        let mut hits = 0;
        cache.get_many(&mut Io::new(), &keys, 1, |_, outcome| {
            hits += u32::from(matches!(outcome, Outcome::Hit { value: found, .. } if found == value));
        });
        assert_eq!(hits, KEYS, "DRAM first: {is_dram_first}");
    }
}
