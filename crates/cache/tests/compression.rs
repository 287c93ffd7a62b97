//! Values are the same whatever they were compressed with, and a value that cannot be decompressed is a miss.

use granary_cache::{
    Applications, Cache, Compression, Entry, FlashOptions, Io, Key, Options, Outcome, testing,
};
use std::os::unix::fs::MetadataExt;
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

/// The number of keys that are found; each has the value of `round`.
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
    // An entry in RAM whose place in the index a look-alike has taken is found by lookups, but not visited by a scan.
    assert!(visited + 10 >= found, "{visited} visited, {found} found");
    found
}

/// Waits until `count` dictionaries have been trained.
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
            cache.flush().unwrap();
            testing::abandon(cache);
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
fn a_value_whose_dictionary_is_damaged_is_a_miss() {
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
        // Behind the header of the file.
        for at in (32..whole.len()).step_by(whole.len() / 20) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            std::fs::write(&path, &damaged).unwrap();
            let cache = open();
            let found = check(&cache, 1);
            assert!(found == 0 || found + cache.stats().values_undecodable >= KEYS * 99 / 100, "byte {at}");
            cache.close().unwrap();
        }
        std::fs::write(&path, &whole).unwrap();
        let cache = open();
        assert!(check(&cache, 1) >= KEYS * 99 / 100);
        cache.clear().unwrap();
    }
}

#[test]
fn a_cache_whose_dictionaries_are_lost_starts_empty_and_numbers_given_again_mislead_nobody() {
    for compression in [Compression::Zstd, Compression::Lz4] {
        for kills in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let open = |compression| Cache::open(options(folder.path(), compression, 4 << 20)).unwrap();
            let stop = |cache: Cache| {
                cache.flush().unwrap();
                if kills { testing::abandon(cache) } else { cache.close().unwrap() }
            };
            let fill = |cache: &Cache, round: u64| {
                put(cache, round);
                wait_for_trainings(cache, 1);
                put(cache, round);
            };
            let cache = open(compression);
            fill(&cache, 0);
            stop(cache);
            let path = folder.path().join("c.dictionaries");
            let first = std::fs::read(&path).unwrap();

            std::fs::remove_file(&path).unwrap();
            let cache = open(compression);
            assert_eq!(check(&cache, 0), 0);
            // The new dictionaries have the numbers of the lost ones.
            fill(&cache, 1);
            assert!(check(&cache, 1) >= KEYS * 99 / 100);
            stop(cache);
            assert_eq!(std::fs::read(&path).unwrap()[16..20], first[16..20]);

            let second = std::fs::read(&path).unwrap();
            for wrong in [&first[..], &second[..31], &[]] {
                // A file that was kept from before, and a damaged one.
                std::fs::write(&path, wrong).unwrap();
                let cache = open(compression);
                assert_eq!(check(&cache, 1), 0, "{} bytes", wrong.len());
                put(&cache, 1);
                stop(cache);
            }
            std::fs::remove_file(&path).unwrap();
            let cache = open(Compression::None);
            assert_eq!(check(&cache, 1), 0, "whatever it compresses with from now on");
        }
    }
}

#[test]
fn a_cache_that_compresses_from_now_on_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let open = |compression| Cache::open(options(folder.path(), compression, 4 << 20)).unwrap();
    let cache = open(Compression::None);
    put(&cache, 0);
    cache.close().unwrap();
    let path = folder.path().join("c.dictionaries");
    assert!(!path.exists());
    for _ in 0..2 {
        let cache = open(Compression::Zstd);
        assert!(check(&cache, 0) >= KEYS * 99 / 100);
        cache.close().unwrap();
        // What it was trained on shines through: nobody else may read it, either.
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn applications_have_dictionaries_of_their_own() {
    const PER_APPLICATION: u64 = 8_000;
    let applications = [&b"json:"[..], b"row:", b""];
    let key = |application: usize, i: u64| [applications[application], &i.to_le_bytes()].concat();
    let value = |application: usize, i: u64| match application {
        0 => value(50 * i + 4, 1),
        1 => format!(
            "{};Ann Example;Main Street {};Amsterdam;NL;2026-01-{:02};;;;active",
            i * 7,
            i % 300,
            i % 28
        )
        .into_bytes(),
        _ => format!("<p class=\"entry\"><a href=\"/articles/{i}\">Article {}</a></p>", i * 31).into_bytes(),
    };
    let open = |folder: &Path, count: usize| {
        let named = applications[..count].iter().map(|prefix| prefix.to_vec());
        let options = options(folder, Compression::Zstd, 0);
        Cache::open(Options { applications: Applications::new(named), ..options }).unwrap()
    };
    let fill = |cache: &Cache| {
        for first in (0..PER_APPLICATION).step_by(100) {
            let kept: Vec<(Vec<u8>, Vec<u8>)> = (first..first + 100)
                .flat_map(|i| (0..3).map(move |application| (key(application, i), value(application, i))))
                .collect();
            let entry = |(key, value)| Entry { key: cache.key(key), value: Some(value), expires_at: 0 };
            let entries: Vec<Entry<'_>> = kept.iter().map(|(key, value)| entry((key, value))).collect();
            cache.put_many_waiting(&entries, Duration::from_secs(60), |_, why| panic!("{why}"));
        }
    };
    let check = |cache: &Cache| {
        let (mut io, mut found) = (Io::new(), 0);
        for application in 0..3 {
            for i in 0..PER_APPLICATION {
                let key = key(application, i);
                cache.get_many(&mut io, &[cache.key(&key)], 1, |_, outcome| {
                    if let Outcome::Hit { value: seen, .. } = outcome {
                        assert!(seen == value(application, i), "{application}, {i}");
                        found += 1;
                    }
                });
            }
        }
        assert!(found >= 3 * PER_APPLICATION * 99 / 100, "{found}");
    };
    let ratio = |folder: &Path, count: usize| {
        let cache = open(folder, count);
        for trained in 1..=2 * (count as u64 + 1) {
            fill(&cache);
            if trained <= count as u64 + 1 {
                wait_for_trainings(&cache, trained);
            }
        }
        let measured = || {
            let before = cache.stats();
            fill(&cache);
            let after = cache.stats();
            (after.value_bytes_raw - before.value_bytes_raw) as f64
                / (after.value_bytes_kept - before.value_bytes_kept) as f64
        };
        // One application may have been trained twice so far, and another one not yet.
        let best = (0..4).map(|_| measured()).fold(0.0, f64::max);
        check(&cache);
        cache.close().unwrap();
        best
    };
    let (together, apart) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ratios = [ratio(together.path(), 0), ratio(apart.path(), 2)];
    assert!(ratios[1] > ratios[0] * 1.02, "{ratios:?}");
    // Dictionaries of an application that is no longer named stay as long as they are needed.
    let cache = open(apart.path(), 1);
    check(&cache);
    cache.close().unwrap();
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

/// The file of dictionaries that a failed open makes may be named by the states of partitions that were opened.
#[test]
fn an_open_that_fails_costs_no_partition_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let open = |compression| Cache::open(options(folder.path(), compression, 0));
    let cache = open(Compression::None).unwrap();
    put(&cache, 0);
    let there = check(&cache, 0);
    cache.close().unwrap();
    // A journal that cannot be opened.
    let journal = folder.path().join("c.partition.1.journal.0");
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    open(Compression::Zstd).unwrap_err();
    std::fs::remove_dir(&journal).unwrap();
    assert_eq!(check(&open(Compression::Zstd).unwrap(), 0), there);
}
