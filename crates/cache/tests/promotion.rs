//! The times at which an entry found on flash is copied to the RAM tier: at once while there is room, else when it is
//! found twice before half of the tier was replaced.

use granary_cache::{Cache, Entry, FlashOptions, Io, MemoryDivision, Options, Outcome};
use std::path::Path;
use std::time::Duration;

const KEYS: u64 = 60_000;
const FILE_BYTES: u64 = 16 << 20;
const MEMORY_BYTES: u64 = 1 << 20;
/// Entries that the RAM tier has room for, and more.
const ENTRIES_IN_RAM: u64 = MEMORY_BYTES / 116;

fn open(folder: &Path, blocks_percent: u8) -> Cache {
    let mut flash = FlashOptions::new(folder.join("c"), FILE_BYTES);
    // Few keys look alike to the index, and the same ones in every run.
    flash.hash_seed = Some(1);
    let memory_division = MemoryDivision::Fixed { blocks_percent };
    let options =
        Options { flash: Some(flash), memory_bytes: MEMORY_BYTES, memory_division, ..Options::default() };
    Cache::open(options).unwrap()
}

/// A cache with all keys on flash and none in RAM.
fn cold(folder: &Path, blocks_percent: u8) -> Cache {
    let cache = open(folder, blocks_percent);
    for first in (0..KEYS).step_by(1000) {
        let keys: Vec<_> = (first..first + 1000).map(u64::to_le_bytes).collect();
        let entry = |key| Entry { key: cache.key(key), value: Some(&[7; 100]), expires_at: 0 };
        let entries: Vec<Entry<'_>> = keys.iter().map(|key| entry(&key[..])).collect();
        cache.put_many_waiting(&entries, Duration::from_secs(60), |_, why| panic!("{why:?}"));
    }
    cache.close().unwrap();
    open(folder, blocks_percent)
}

/// Looks keys up, one after the other; returns how many were answered from flash.
fn get(cache: &Cache, keys: impl Iterator<Item = u64>) -> u64 {
    let (mut io, before) = (Io::new(), cache.stats());
    for key in keys {
        let bytes = key.to_le_bytes();
        cache.get_many(&mut io, &[cache.key(&bytes)], 0, |_, outcome| {
            // Look-alikes displace each other.
            assert!(matches!(outcome, Outcome::Hit { .. } | Outcome::Miss));
        });
    }
    cache.stats().hits_flash - before.hits_flash
}

#[test]
fn while_there_is_room_one_find_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cold(folder.path(), 0);
    let keys = 0..ENTRIES_IN_RAM / 2;
    assert!(get(&cache, keys.clone()) > ENTRIES_IN_RAM / 2 * 99 / 100);
    assert_eq!(get(&cache, keys), 0, "all are in RAM");
    cache.close().unwrap();
}

#[test]
fn in_a_full_tier_the_second_find_counts_if_it_comes_soon() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cold(folder.path(), 0);
    // Every shard is full of entries that were read.
    let old = 10_000..10_000 + 2 * ENTRIES_IN_RAM;
    (0..3).for_each(|_| _ = get(&cache, old.clone()));
    let promoted = cache.stats().promoted;
    let asked = 0..200;
    assert!(get(&cache, asked.clone()) > 190);
    // Where one leaves for another there is room for a moment.
    assert!(cache.stats().promoted - promoted < 20, "found once");
    assert!(get(&cache, asked.clone()) > 190, "they were on flash until now");
    // Some marks are cleared meanwhile.
    assert!(get(&cache, asked) < 20, "found twice");

    let late = 1_000..1_200;
    assert!(get(&cache, late.clone()) > 190);
    // Others take the place of all that is in RAM, twice.
    for first in [30_000, 45_000] {
        let others = first..first + ENTRIES_IN_RAM;
        (0..2).for_each(|_| _ = get(&cache, others.clone()));
    }
    let promoted = cache.stats().promoted;
    assert!(get(&cache, late.clone()) > 190);
    assert!(cache.stats().promoted - promoted < 20, "that they were found once is long ago");
    get(&cache, late.clone());
    assert!(get(&cache, late) < 20, "found twice again");
    cache.close().unwrap();
}

#[test]
fn a_full_tier_has_no_room_whatever_blocks_have_of_it() {
    for percent in [0, 25, 50, 75, 100] {
        let folder = tempfile::tempdir().unwrap();
        let cache = cold(folder.path(), percent);
        // Neighbours would find their block in RAM.
        let scattered = |first: u64, step: usize| (first..KEYS).step_by(step);
        (0..9).for_each(|round| _ = get(&cache, scattered([0, 2, 3][round / 3], 5)));
        let promoted = cache.stats().promoted;
        let found = get(&cache, scattered(1, 50));
        assert!(found > KEYS / 50 * 9 / 10, "{found} found on flash with {percent} % for blocks");
        let promoted = cache.stats().promoted - promoted;
        assert!(promoted < KEYS / 50 / 20, "{promoted} of {found} found once, with {percent} % for blocks");
        cache.close().unwrap();
    }
}

#[test]
fn a_key_that_a_batch_has_several_times_is_copied_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cold(folder.path(), 0);
    let (key, mut found) = (7_u64.to_le_bytes(), 0);
    cache.get_many(&mut Io::new(), &[cache.key(&key); 100], 0, |_, outcome| {
        found += usize::from(matches!(outcome, Outcome::Hit { .. }));
    });
    assert_eq!((found, cache.stats().promoted), (100, 1));
    cache.close().unwrap();
}
