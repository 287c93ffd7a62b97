//! Loading of Granary's store.

use super::error::StoreError;
use super::measurement::{Contents, Loaded};
use super::workload::{key_of, load_order, value_of};
use granary_cache::{Cache, Entry, FlashOptions, Io, Key, MemoryDivision, Options, Outcome};
use std::time::{Duration, Instant};

/// Values that compress to about half.
pub const COMPRESSIBLE: bool = true;

/// Keys that are put, or looked up in a warm-up, at once.
pub const BATCH: u64 = 1024;

/// Maximum bytes of a record beside key and value, with its share of unfilled blocks and of summaries.
const BESIDE_BYTES: u64 = 24;

const SEGMENT_BYTES: u64 = 1 << 20;

const PUT_WAIT: Duration = Duration::from_secs(60);

/// Times that a store is searched for missing keys.
const PASSES: u32 = 4;

/// Minimum of a thousand keys that must be found: a cache may lose some.
pub const FOUND_IN_THOUSAND: u64 = 999;

/// The options of a cache that has room for a store.
pub fn options(contents: &Contents, memory_bytes: u64, division: MemoryDivision) -> Options {
    let bytes = contents.bytes() + contents.keys * BESIDE_BYTES;
    // A block stays unfilled by less than the record that did not fit.
    let bytes = bytes + bytes / (contents.block_bytes / contents.value_bytes.max(1)).clamp(2, 32);
    let file_size = bytes.next_multiple_of(SEGMENT_BYTES) + 8 * SEGMENT_BYTES;
    let mut flash = FlashOptions::new(contents.folder.join("granary"), file_size);
    flash.block_size = contents.block_bytes;
    Options { flash: Some(flash), memory_bytes, memory_division: division, ..Options::default() }
}

/// Loads Granary's store: puts all keys, then again those that are missing.
pub fn load(contents: &Contents) -> Result<Loaded, StoreError> {
    let start = Instant::now();
    std::fs::create_dir_all(&contents.folder)
        .map_err(|why| StoreError::Process(contents.folder.display().to_string(), why.to_string()))?;
    let cache = Cache::open(options(contents, 0, MemoryDivision::Measured))?;
    let order = load_order(contents.keys);
    let number = |place| if contents.in_key_order { place } else { order.at(place) };
    let batches = || {
        let firsts = (0..contents.keys).step_by(BATCH as usize);
        firsts.map(|first| (first..contents.keys.min(first + BATCH)).map(number).collect::<Vec<u64>>())
    };
    batches().try_for_each(|numbers| put(&cache, contents, &numbers))?;
    // Of keys that look alike to the index only the last is there. Putting a missing one again keeps both.
    let mut io = Io::new();
    for _ in 0..PASSES {
        let mut missing = 0;
        for numbers in batches() {
            let absent = absent(&cache, &mut io, &numbers);
            missing += absent.len();
            put(&cache, contents, &absent)?;
        }
        if missing == 0 {
            break;
        }
    }
    let failed = |why: granary_cache::Error| StoreError::Wrong(why.to_string());
    cache.flush().map_err(failed)?;
    let stats = cache.stats();
    cache.close().map_err(failed)?;
    if stats.entries * 1000 < contents.keys * FOUND_IN_THOUSAND || stats.evicted_flash > 0 {
        return Err(StoreError::Wrong(format!("of {} keys {} are there", contents.keys, stats.entries)));
    }
    let disk_bytes = stats.flash_bytes_used();
    Ok(Loaded { keys: stats.entries, disk_bytes, seconds: start.elapsed().as_secs_f64() })
}

/// Puts keys with their values.
fn put(cache: &Cache, contents: &Contents, numbers: &[u64]) -> Result<(), StoreError> {
    let length = contents.value_bytes as usize;
    let keys: Vec<[u8; 16]> = numbers.iter().map(|number| key_of(*number)).collect();
    let mut values = vec![0; numbers.len() * length];
    for (i, number) in numbers.iter().enumerate() {
        value_of(*number, COMPRESSIBLE, &mut values[i * length..(i + 1) * length]);
    }
    let entry = |(i, key)| {
        let value = Some(&values[i * length..(i + 1) * length]);
        Entry { key: cache.key(key), value, expires_at: 0 }
    };
    let entries: Vec<Entry<'_>> = keys.iter().map(|key| &key[..]).enumerate().map(entry).collect();
    let mut refused = Ok(());
    cache.put_many_waiting(&entries, PUT_WAIT, |_, why| {
        refused = Err(StoreError::Wrong(format!("a key was not stored: {why}")));
    });
    refused
}

/// Returns the keys that are missing.
fn absent(cache: &Cache, io: &mut Io, numbers: &[u64]) -> Vec<u64> {
    let bytes: Vec<[u8; 16]> = numbers.iter().map(|number| key_of(*number)).collect();
    let keys: Vec<Key<'_>> = bytes.iter().map(|key| cache.key(key)).collect();
    let mut absent = Vec::new();
    cache.get_many(io, &keys, 1, |i, outcome| {
        if outcome == Outcome::Miss {
            absent.push(numbers[i]);
        }
    });
    absent
}
