//! All entries are visited in steps of bounded size.

mod common;

use common::*;
use granary_cache::limits::SCAN_STEP_BYTES;
use granary_cache::{Cache, Entry, Io, Key, Options, Outcome, Scan};
use std::collections::HashSet;

const KEYS: u64 = 10_000;
/// Bytes of each value.
const VALUE: usize = 500;

/// All entries are visited, each once, in steps of about `SCAN_STEP_BYTES` bytes.
fn is_seen_in_steps(cache: &Cache) {
    for key in 0..KEYS {
        let (key, value) = (key.to_le_bytes(), [key as u8; VALUE]);
        while {
            let dropped = cache.stats().puts_dropped;
            cache.put_many(&[Entry { key: cache.key(&key), value: Some(&value), expires_at: 0 }]);
            cache.stats().puts_dropped > dropped
        } {
            std::thread::yield_now();
        }
    }
    let (mut io, mut scan) = (Io::new(), Scan::default());
    let mut seen = HashSet::new();
    let mut more = true;
    while more {
        let mut bytes = 0;
        more = cache.scan_on(&mut io, &mut scan, |key, value, _| {
            let number = u64::from_le_bytes(key.try_into().unwrap());
            assert_eq!(value, Some(&[number as u8; VALUE][..]));
            assert!(seen.insert(number), "{number} comes twice");
            bytes += VALUE;
        });
        assert!(bytes <= SCAN_STEP_BYTES + VALUE, "{bytes} in one step");
    }
    // The cache may have evicted some for want of room in the index.
    let keys: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let keys: Vec<Key<'_>> = keys.iter().map(|key| cache.key(key)).collect();
    let mut found = HashSet::new();
    cache.get_many(&mut io, &keys, 0, |key, outcome| {
        if let Outcome::Hit { .. } = outcome {
            found.insert(key as u64);
        }
    });
    assert!(found.len() as u64 > KEYS - KEYS / 10, "{}", found.len());
    assert_eq!(seen.len(), found.len(), "{:?}", cache.stats());
    assert_eq!(seen, found);
}

#[test]
fn of_ram() {
    let options = Options { memory_bytes: u64::MAX, ..Options::default() };
    is_seen_in_steps(&Cache::open(options).unwrap());
}

#[test]
fn of_flash_whose_segments_are_longer_than_a_step() {
    let folder = tempfile::tempdir().unwrap();
    // Segments of 4 MiB; a little less than half of the last one is in a buffer yet.
    let cache = Cache::open(options(folder.path(), 8, 8192, 1 << 20)).unwrap();
    is_seen_in_steps(&cache);
}

#[test]
fn of_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), 32, 2048, 1 << 20);
    options.flash.as_mut().unwrap().partitions = 4;
    is_seen_in_steps(&Cache::open(options).unwrap());
}
