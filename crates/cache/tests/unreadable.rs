//! An unreadable block costs its own entries, and not those read with it.

use granary_cache::{Cache, Engine, Entry, FlashOptions, Io, Key, Options, Outcome, Pending};
use granary_log::device::{Device, MemoryDevice};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: u64 = 512;
const KEYS: u64 = 400;

/// A device that fails each read with the byte at `bad`.
struct OneBad {
    memory: MemoryDevice,
    bad: AtomicU64,
}

impl Device for OneBad {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let bad = self.bad.load(Ordering::Acquire);
        match (offset..offset + bytes.len() as u64).contains(&bad) {
            true => Err(io::Error::from_raw_os_error(5)),
            false => self.memory.read_at(offset, bytes),
        }
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.memory.write_at(offset, buffers)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A cache full of short entries, and their keys.
fn filled(folder: &tempfile::TempDir) -> (Arc<OneBad>, Cache, Vec<[u8; 8]>) {
    let device = Arc::new(OneBad { memory: MemoryDevice::new(512 * BLOCK), bad: AtomicU64::new(u64::MAX) });
    let mut flash = FlashOptions::new(folder.path().join("c"), 512 * BLOCK);
    (flash.block_size, flash.write_buffer_size, flash.hash_seed) = (BLOCK, 8 * BLOCK, Some(1));
    let options = Options { flash: Some(flash), memory_bytes: 0, ..Options::default() };
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), options).unwrap();
    let names: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    for name in &names {
        cache.put_many(&[Entry { key: cache.key(name), value: Some(&[7; 60]), expires_at: 0 }]);
    }
    cache.flush().unwrap();
    (device, cache, names)
}

/// The number of keys that a blocking batch finds.
fn found_at_once(cache: &Cache, names: &[[u8; 8]]) -> u64 {
    let keys: Vec<Key<'_>> = names.iter().map(|name| cache.key(name)).collect();
    let mut found = 0;
    cache.get_many(&mut Io::with_engine(Engine::Plain), &keys, 1, |_, outcome| {
        found += u64::from(matches!(outcome, Outcome::Hit { .. }));
    });
    found
}

/// The number of keys that background lookups find.
fn found_later(cache: &Cache, names: &[[u8; 8]]) -> u64 {
    let keys: Vec<Key<'_>> = names.iter().map(|name| cache.key(name)).collect();
    let mut pending = Pending::with_engine(cache, Engine::Plain);
    let mut found = 0;
    cache.begin_many(
        &mut pending,
        &keys,
        1,
        |i| i as u64,
        |_, outcome| {
            found += u64::from(matches!(outcome, Outcome::Hit { .. }));
        },
    );
    while !pending.is_empty() {
        cache.poll(&mut pending, 1, |_, outcome| found += u64::from(matches!(outcome, Outcome::Hit { .. })));
    }
    found
}

/// The number of entries that a scan visits.
fn scanned(cache: &Cache, _: &[[u8; 8]]) -> u64 {
    let mut visited = 0;
    cache.scan(&mut Io::with_engine(Engine::Plain), |_, _, _| visited += 1);
    visited
}

#[test]
fn neighbours_of_a_bad_block_are_found() {
    for look in [found_at_once, found_later] {
        let folder = tempfile::tempdir().unwrap();
        let (device, cache, names) = filled(&folder);
        let all = look(&cache, &names);
        assert!(all * 100 > KEYS * 99, "{all}");
        device.bad.store(20 * BLOCK + 100, Ordering::Release);
        let (left, corrupt) = (look(&cache, &names), cache.stats().corrupt_blocks);
        assert!(left < all && all - left <= BLOCK / 60, "a block's keys are not found: {left} of {all}");
        assert_eq!(corrupt, 1);
        device.bad.store(u64::MAX, Ordering::Release);
        assert_eq!(look(&cache, &names), left, "they are gone for good");
    }
}

#[test]
fn neighbours_of_a_bad_block_are_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let (device, cache, names) = filled(&folder);
    let all = scanned(&cache, &names);
    device.bad.store(20 * BLOCK + 100, Ordering::Release);
    let left = scanned(&cache, &names);
    assert!(left < all && all - left <= BLOCK / 60, "{left} of {all}");
}
