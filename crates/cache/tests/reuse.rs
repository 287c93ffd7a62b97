//! Old content is neither returned nor remembered once its segment is reused.

mod common;

use common::{Hooked, options, put_value_alone};
use granary_cache::{Cache, Engine, Entry, Io, Key, Outcome, testing};
use granary_log::device::MemoryDevice;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(folder: &Path, segments: u64, blocks: u64) -> (Arc<Hooked>, Arc<Cache>) {
    let device = Hooked::new(Arc::new(MemoryDevice::new(segments * blocks * 512)));
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), options(folder, segments, blocks, 0));
    (device, Arc::new(cache.unwrap()))
}

#[test]
fn the_index_forgets_what_a_reused_segment_held() {
    for blocks in [1, 16] {
        let folder = tempfile::tempdir().unwrap();
        let (_, cache) = open(folder.path(), 4, blocks);
        (0..40).for_each(|key| put_value_alone(&cache, key, &[1; 100]));
        let stats = cache.stats();
        assert!((2..=4).contains(&stats.entries), "{} entries in four segments of one each", stats.entries);
    }
}

/// A file of one segment, which keeps its content until it is written again: a put that waits finds room where an
/// earlier one found none, and so does a stop.
#[test]
fn a_lone_segment_has_room_for_who_waits() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryDevice::new(16 * 512));
    let open = || Cache::open_on(Box::new(Arc::clone(&memory)), options(folder.path(), 1, 16, 0)).unwrap();
    let has = |cache: &Cache, key: u64| {
        let (key, mut found) = (key.to_le_bytes(), false);
        cache.get_many(&mut Io::with_engine(Engine::Plain), &[cache.key(&key)], 1, |_, outcome| {
            found = matches!(outcome, Outcome::Hit { .. });
        });
        found
    };
    for round in 0..3 {
        let cache = open();
        assert!(round == 0 || has(&cache, 39), "round {round}: it is kept until then");
        for key in 0..40u64 {
            let name = key.to_le_bytes();
            let entry = Entry { key: cache.key(&name), value: Some(&[round; 1_000]), expires_at: 0 };
            let mut refused = 0;
            cache.put_many_waiting(&[entry], Duration::from_secs(60), |_, _| refused += 1);
            if refused > 0 {
                cache.put_many_waiting(&[entry], Duration::from_secs(60), |_, why| {
                    panic!("{round}, {key}: {why}")
                });
            }
            assert!(has(&cache, key), "{round}, {key}");
        }
        // Puts that do not wait leave deletions to the stop.
        let names: Vec<[u8; 8]> = (100..120u64).map(u64::to_le_bytes).collect();
        let value = [round; 1_000];
        let entries: Vec<Entry<'_>> = names
            .iter()
            .map(|name| Entry { key: cache.key(name), value: Some(&value), expires_at: 0 })
            .collect();
        let refused = cache.put_many(&entries);
        assert!(!refused.is_empty());
        match round {
            0 => testing::abandon(cache),
            _ => cache.close().unwrap(),
        }
        let cache = open();
        let name = 39u64.to_le_bytes();
        let entry = Entry { key: cache.key(&name), value: Some(&[round; 1_000]), expires_at: 0 };
        cache.put_many_waiting(&[entry], Duration::from_secs(60), |_, why| panic!("{round}: {why}"));
        cache.close().unwrap();
    }
}

/// After the first block of a long entry was read, the ring wraps round, and another key's entry of the same length
/// takes the place of the other blocks.
#[test]
fn a_long_entry_that_is_overwritten_while_it_is_read_is_a_miss() {
    for blocks in [8, 32] {
        let folder = tempfile::tempdir().unwrap();
        let (device, cache) = open(folder.path(), 4, blocks);
        put_value_alone(&cache, 1, &[1; 1_500]);
        let shared = Arc::clone(&cache);
        device.after_next_read(move || {
            (2..7).for_each(|key| put_value_alone(&shared, key, &[key as u8; 1_500]));
        });
        let key = 1u64.to_le_bytes();
        let mut misses = 0;
        cache.get_many(&mut Io::with_engine(Engine::Plain), &[cache.key(&key)], 1, |_, outcome| {
            assert_eq!(outcome, Outcome::Miss);
            misses += 1;
        });
        assert_eq!(misses, 1);
    }
}

/// If a key is twice in a batch, the first entry may find no room and the second some: the flusher works meanwhile.
#[test]
fn an_entry_behind_a_refused_one_of_its_key_is_there_after_a_kill() {
    const KEYS: u64 = 80;
    const TIMES: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    // One batch does not come round the ring.
    const SEGMENTS: u64 = 2 * KEYS * TIMES as u64;
    let memory = Arc::new(MemoryDevice::new(SEGMENTS * 8 * 512));
    let open = || {
        let options = options(folder.path(), SEGMENTS, 8, 0);
        Cache::open_on(Box::new(Arc::clone(&memory)), options).unwrap()
    };
    let keys: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    // Each entry takes a segment of its own, and there are more of them than buffers.
    let value = [7; 3_000];
    let mut refused_and_placed = 0;
    for _ in 0..1_000 {
        let cache = open();
        let entry = |key| Entry { key: cache.key(key), value: Some(&value), expires_at: 0 };
        let batch: Vec<Entry<'_>> = keys.iter().flat_map(|key| [entry(key); TIMES]).collect();
        let mut refused = [false; KEYS as usize];
        cache.put_many_with(&batch, |i, _| refused[i / TIMES] = true);
        cache.flush().unwrap();
        let found = keys_found(&cache, &keys);
        refused_and_placed +=
            found.iter().zip(refused).filter(|(found, refused)| **found && *refused).count();
        testing::abandon(cache);
        assert_eq!(keys_found(&open(), &keys), found, "after a kill");
        if refused_and_placed >= 10 {
            return;
        }
    }
    panic!("{refused_and_placed} keys were refused first and placed then");
}

fn keys_found(cache: &Cache, keys: &[[u8; 8]]) -> Vec<bool> {
    let keys: Vec<Key<'_>> = keys.iter().map(|key| cache.key(key)).collect();
    let mut found = vec![false; keys.len()];
    cache.get_many(&mut Io::with_engine(Engine::Plain), &keys, 1, |i, outcome| {
        found[i] = matches!(outcome, Outcome::Hit { .. });
    });
    found
}

/// A burst many times larger than the write buffers of a small file.
#[test]
fn whoever_waits_has_a_burst_stored_as_a_whole() {
    for (partitions, segments, blocks) in [(1, 256, 16), (1, 1, 8_192), (4, 256, 32)] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path(), segments, blocks, 0);
        options.flash.as_mut().unwrap().partitions = partitions;
        let cache = Cache::open(options).unwrap();
        let keys: Vec<[u8; 8]> = (0..10_000u64).map(u64::to_le_bytes).collect();
        let entries = entries_of(&cache, &keys, &[7; 100]);
        cache.put_many_waiting(&entries, Duration::from_secs(60), |i, why| panic!("{i}: {why}"));
        assert_eq!(cache.stats().puts_dropped, 0);
        let found = keys_found(&cache, &keys);
        let count = found.iter().filter(|found| **found).count();
        // Some keys look alike; and a single segment begins again when it is full.
        assert!(count > 9_900 || segments == 1, "{count} of 10000, {partitions} partitions");
    }
    // If the device takes nothing, the put does not wait for ever, and reports refusals.
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryDevice::new(64 * 8 * 512);
    let slow = Hooked::new(Arc::new(memory));
    slow.after_each_write(|| std::thread::sleep(Duration::from_millis(100)));
    let cache = Cache::open_on(Box::new(slow), options(folder.path(), 64, 8, 0)).unwrap();
    let keys: Vec<[u8; 8]> = (0..400u64).map(u64::to_le_bytes).collect();
    let mut refused = 0;
    let entries = entries_of(&cache, &keys, &[7; 3_000]);
    cache.put_many_waiting(&entries, Duration::from_millis(50), |_, _| refused += 1);
    assert_eq!(cache.stats().puts_dropped, refused);
    assert!(refused > 0);
}

fn entries_of<'a>(cache: &Cache, keys: &'a [[u8; 8]], value: &'a [u8]) -> Vec<Entry<'a>> {
    keys.iter().map(|key| Entry { key: cache.key(key), value: Some(value), expires_at: 0 }).collect()
}

/// A cache whose segments were all reused may have copies in RAM that still answer: it is not empty.
#[test]
fn a_cache_that_answers_is_not_empty() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(common::options(folder.path(), 4, 16, 1 << 20)).unwrap();
    assert!(cache.is_empty());
    common::put_alone(&cache, 1, 7);
    for key in 100..110 {
        common::put_alone(&cache, key, 1);
        cache.delete_many(&[cache.key(&u64::to_le_bytes(key))]);
    }
    assert_eq!((cache.len(), common::get(&cache, 1)), (0, Some(7)), "its place on flash was reused");
    assert!(!cache.is_empty());
    cache.delete_many(&[cache.key(&1u64.to_le_bytes())]);
    assert!(cache.is_empty());
}
