//! Values are the same whatever they were compressed with, and what cannot be decompressed is a miss.

use granary_cache::{Cache, Compression, Entry, FlashOptions, Io, Key, Options, Outcome};
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS: u64 = 12_000;

fn options(folder: &Path, compression: Compression, memory_bytes: u64) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 32 << 20);
    (flash.write_buffer_size, flash.partitions) = (256 << 10, 2);
    Options { flash: Some(flash), memory_bytes, compression, ..Options::default() }
}

/// Some 500 bytes that have much in common with those of other keys; some keys have few bytes, or random ones, or many.
fn value(key: u64, round: u64) -> Vec<u8> {
    let random = |i: u64| (key * 31 + round).wrapping_add(i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    match key % 50 {
        0 => Vec::new(),
        1 => vec![7; 5],
        2 => (0..100).flat_map(|i| random(i).to_le_bytes()).collect(),
        3 => vec![key as u8; 40_000],
        _ => format!(
            "{{\"id\": {key}, \"round\": {round}, \"name\": \"{:x}\", \"address\": {{\"street\": \"{} Main Street\", \
             \"city\": \"Amsterdam\", \"country\": \"The Netherlands\"}}, \"tags\": [\"customer\", \"newsletter\", \
             \"tier-{}\"], \"last_seen\": \"2026-0{}-1{}T12:00:00Z\", \"preferences\": {{\"language\": \"nl\", \
             \"theme\": \"dark\", \"notifications\": true}}, \"score\": {}.{}}}",
            random(1), random(2) % 1000, random(3) % 5, random(4) % 9 + 1, random(5) % 9, random(6) % 100, random(7) % 100,
        )
        .into_bytes(),
    }
}

fn put(cache: &Cache, round: u64) {
    for first in (0..KEYS).step_by(500) {
        let kept: Vec<([u8; 8], Vec<u8>)> =
            (first..first + 500).map(|key| (key.to_le_bytes(), value(key, round))).collect();
        let entries: Vec<Entry<'_>> = kept
            .iter()
            .map(|(key, value)| Entry { key: cache.key(key), value: Some(value), expires_at: 0 })
            .collect();
        let refused = |_, why| panic!("{why}");
        cache.put_many_waiting(&entries, Duration::from_secs(60), refused);
    }
}

/// How many keys are found; each has the value of `round`.
fn check(cache: &Cache, round: u64) -> u64 {
    let bytes: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let keys: Vec<Key<'_>> = bytes.iter().map(|key| cache.key(key)).collect();
    let (mut io, mut found) = (Io::new(), 0);
    for (first, keys) in (0..).step_by(1000).zip(keys.chunks(1000)) {
        cache.get_many(&mut io, keys, 1, |i, outcome| match outcome {
            Outcome::Hit { value: seen, .. } => {
                assert!(seen == value(first + i as u64, round), "key {}", first + i as u64);
                found += 1;
            }
            Outcome::Miss => {}
            other => panic!("{other:?}"),
        });
    }
    let mut visited = 0;
    cache.scan(&mut io, |key, seen, _| {
        let key = u64::from_le_bytes(key.try_into().unwrap());
        assert!(seen == Some(&value(key, round)[..]), "key {key}");
        visited += 1;
    });
    // An entry in RAM whose place a look-alike has taken is found, and not visited.
    assert!(visited + 10 >= found, "{visited} visited, {found} found");
    found
}

/// Waits until so many dictionaries have been trained.
fn wait_for_trainings(cache: &Cache, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while cache.stats().codec_trainings < count {
        assert!(Instant::now() < deadline, "no dictionary is trained: {:?}", cache.stats());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn values_stay_what_they_are_through_trainings_stops_and_kills() {
    for (compression, least) in [(Compression::Zstd, 3.0), (Compression::Lz4, 2.5)] {
        for memory_bytes in [0, 4 << 20] {
            let folder = tempfile::tempdir().unwrap();
            let open = |compression| Cache::open(options(folder.path(), compression, memory_bytes)).unwrap();
            let cache = open(compression);
            put(&cache, 0);
            wait_for_trainings(&cache, 1);
            assert!(check(&cache, 0) >= KEYS * 99 / 100);
            put(&cache, 1);
            wait_for_trainings(&cache, 2);
            put(&cache, 1);
            assert!(check(&cache, 1) >= KEYS * 99 / 100);
            let stats = cache.stats();
            assert_eq!((stats.values_undecodable, stats.codec_versions), (0, 2));
            let ratio = stats.compression_ratio();
            assert!(ratio > least, "{compression}: {ratio}");
            assert!(stats.codec_bytes < 3 << 20, "{} bytes", stats.codec_bytes);
            cache.flush();
            cache.abandon();
            // Whatever the next process compresses with.
            for other in [Compression::None, Compression::Lz4, Compression::Zstd] {
                let cache = open(other);
                assert!(check(&cache, 1) >= KEYS * 99 / 100, "{compression}, then {other}");
                assert_eq!(cache.stats().values_undecodable, 0);
                cache.close().unwrap();
            }
        }
    }
}

#[test]
fn without_its_dictionary_or_with_another_one_a_value_is_a_miss() {
    for compression in [Compression::Zstd, Compression::Lz4] {
        let folder = tempfile::tempdir().unwrap();
        let open = || Cache::open(options(folder.path(), compression, 0)).unwrap();
        let cache = open();
        put(&cache, 0);
        wait_for_trainings(&cache, 1);
        put(&cache, 1);
        cache.close().unwrap();
        let path = folder.path().join("c.dictionaries");
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let cache = open();
        let found = check(&cache, 1);
        assert!(found < KEYS / 10, "{found}: what was stored as it came");
        assert!(cache.stats().values_undecodable > KEYS / 2);
        cache.close().unwrap();
        // A damaged one is as good as none.
        for at in (0..whole.len()).step_by(whole.len() / 20) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            std::fs::write(&path, &damaged).unwrap();
            let cache = open();
            check(&cache, 1);
            cache.close().unwrap();
        }
        std::fs::write(&path, &whole).unwrap();
        let cache = open();
        assert!(check(&cache, 1) >= KEYS * 99 / 100);
        cache.clear().unwrap();
    }
}

#[test]
fn a_cache_in_ram_alone_has_room_for_more() {
    let entries = |compression| {
        let options = Options { memory_bytes: 2 << 20, compression, ..Options::default() };
        let cache = Cache::open(options).unwrap();
        put(&cache, 0);
        if compression != Compression::None {
            wait_for_trainings(&cache, 1);
        }
        put(&cache, 1);
        check(&cache, 1);
        cache.stats().memory_entries
    };
    let (raw, zstd) = (entries(Compression::None), entries(Compression::Zstd));
    assert!(zstd > raw * 5 / 2, "{zstd} entries compressed, {raw} as they come");
}
