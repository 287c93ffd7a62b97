//! Dictionaries for compression that are trained while something else happens.

use granary_cache::admission::Admission;
use granary_cache::{Cache, Compression, Entry, FlashOptions, Io, Key, Options, Outcome, Stats};
use std::path::Path;
use std::time::{Duration, Instant};

fn options(folder: &Path, compression: Compression) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 128 << 20);
    flash.hash_seed = Some(1);
    Options { flash: Some(flash), memory_bytes: 0, compression, ..Options::default() }
}

/// Keys that no test looks up.
const FEW: std::ops::Range<u64> = 2_000_000..2_001_000;

fn random(key: u64, i: u64) -> u64 {
    (key * 31 + 7).wrapping_add(i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

/// Values of kinds that have nothing in common. The last one is mostly random.
fn value(key: u64, kind: u64) -> Vec<u8> {
    let r = |i| random(key, i);
    match kind {
        0 => format!(
            "{{\"id\": {key}, \"name\": \"{:x}\", \"address\": {{\"street\": \"{} Main Street\", \
             \"city\": \"Amsterdam\", \"country\": \"The Netherlands\"}}, \"tags\": [\"customer\", \"newsletter\", \
             \"tier-{}\"], \"last_seen\": \"2026-0{}-1{}T12:00:00Z\", \"preferences\": {{\"language\": \"nl\", \
             \"theme\": \"dark\", \"notifications\": true}}, \"score\": {}.{}}}",
            r(1), r(2) % 1000, r(3) % 5, r(4) % 9 + 1, r(5) % 9, r(6) % 100, r(7) % 100,
        )
        .into_bytes(),
        1 => format!(
            "<tr><td>{:x}</td><td>{:x}{:x}{:x}</td><td class='amount'>{}</td><td>{:x}{:x}{:x}</td></tr>",
            r(1), r(2), r(3), r(4), r(5) % 100_000, r(6), r(7), r(8),
        )
        .into_bytes(),
        _ => {
            let noise = (0..50).flat_map(|i| r(i).to_le_bytes().into_iter().take(5));
            b"a picture of 16 by 16 points, taken with a camera: ".iter().copied().chain(noise).collect()
        }
    }
}

fn put(cache: &Cache, keys: std::ops::Range<u64>, kind: u64) {
    let kept: Vec<([u8; 8], Vec<u8>)> = keys.map(|key| (key.to_le_bytes(), value(key, kind))).collect();
    let entries: Vec<Entry<'_>> = kept
        .iter()
        .map(|(key, value)| Entry { key: cache.key(key), value: Some(value), expires_at: 0 })
        .collect();
    cache.put_many_waiting(&entries, Duration::from_secs(60), |_, why| panic!("{why}"));
}

fn found(cache: &Cache, keys: std::ops::Range<u64>, kind: u64) -> u64 {
    let bytes: Vec<[u8; 8]> = keys.clone().map(u64::to_le_bytes).collect();
    let asked: Vec<Key<'_>> = bytes.iter().map(|key| cache.key(key)).collect();
    let mut found = 0;
    cache.get_many(&mut Io::new(), &asked, 1, |i, outcome| {
        if let Outcome::Hit { value: seen, .. } = outcome {
            assert!(seen == value(keys.start + i as u64, kind));
            found += 1;
        }
    });
    found
}

fn wait_for_trainings(cache: &Cache, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while cache.stats().codec_trainings < count {
        assert!(Instant::now() < deadline, "{:?}", cache.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Puts values of a kind into the same few keys until `is_enough`.
fn put_until(cache: &Cache, kind: u64, is_enough: impl Fn(&Stats) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_enough(&cache.stats()) {
        assert!(Instant::now() < deadline, "{:?}", cache.stats());
        put(cache, FEW, kind);
    }
}

/// A cache is closed while a dictionary is being trained: values compressed with older ones are still there.
fn close_while_training(compression: Compression, closes: bool) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Cache::open(options(folder.path(), compression)).unwrap();
    let cache = open();
    let mut next = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    // The first dictionary, and 2000 values that need it.
    while cache.stats().codec_trainings < 1 {
        assert!(Instant::now() < deadline, "{:?}", cache.stats());
        put(&cache, next..next + 100, 0);
        next += 100;
        std::thread::sleep(Duration::from_millis(5));
    }
    let first = next..next + 2000;
    put(&cache, first.clone(), 0);
    next = first.end;
    // The second one.
    let deadline = Instant::now() + Duration::from_secs(60);
    while cache.stats().codec_trainings < 2 {
        assert!(Instant::now() < deadline, "{:?}", cache.stats());
        put(&cache, next..next + 100, 0);
        next += 100;
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_for_trainings(&cache, 2);
    let ids_before = cache.stats().codec_versions;
    assert_eq!(ids_before, 2);
    assert!(found(&cache, first.clone(), 0) > 1990);
    // Some windows of values of that kind, then of another, until the third dictionary is being trained.
    let raw = cache.stats().value_bytes_raw;
    while cache.stats().value_bytes_raw < raw + (20 << 20) {
        put(&cache, next..next + 1000, 0);
        next += 1000;
    }
    let mut most = 0;
    loop {
        put(&cache, next..next + 100, 1);
        next += 100;
        let bytes = cache.stats().codec_bytes;
        if bytes + (3 << 20) < most {
            break;
        }
        most = most.max(bytes);
        assert!(cache.stats().codec_trainings == 2);
        assert!(next < 1_000_000, "{:?}", cache.stats());
    }
    if !closes {
        wait_for_trainings(&cache, 3);
        // With the cache open, the version that is in use stays.
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(cache.stats().codec_versions, 3);
    }
    let before = found(&cache, first.clone(), 0);
    assert!(before > 1900, "{before}");
    cache.close().unwrap();
    let cache = open();
    let after = found(&cache, first.clone(), 0);
    assert_eq!((after, cache.stats().values_undecodable), (before, 0), "{:?}", cache.stats().codec_versions);
    // Nor does the next training after the start take them away.
    assert_eq!(cache.stats().codec_versions, 3, "the newest one is for values of the second kind");
    put_until(&cache, 1, |stats| stats.value_bytes_raw > 20 << 20);
    put_until(&cache, 2, |stats| stats.codec_trainings > 0);
    let after = found(&cache, first, 0);
    assert_eq!((after, cache.stats().values_undecodable), (before, 0), "{:?}", cache.stats().codec_versions);
}

#[test]
fn a_cache_that_is_closed_after_a_training_keeps_what_older_dictionaries_compressed() {
    close_while_training(Compression::Zstd, false);
}

#[test]
fn a_cache_that_is_closed_while_a_dictionary_is_trained_keeps_what_older_ones_compressed() {
    close_while_training(Compression::Zstd, true);
}

/// Values that are in RAM alone need their dictionaries as those on flash do.
#[test]
fn values_in_ram_keep_their_dictionary_while_others_are_trained() {
    let folder = tempfile::tempdir().unwrap();
    for with_flash in [false, true] {
        let mut options = Options { memory_bytes: 64 << 20, ..options(folder.path(), Compression::Zstd) };
        match &mut options.flash {
            Some(flash) if with_flash => flash.admission = Admission::Reuse,
            flash => *flash = None,
        }
        let cache = Cache::open(options).unwrap();
        put_until(&cache, 0, |stats| stats.codec_trainings >= 1);
        put(&cache, 0..200, 0);
        put_until(&cache, 0, |stats| stats.codec_trainings >= 2);
        let raw = cache.stats().value_bytes_raw;
        put_until(&cache, 0, |stats| stats.value_bytes_raw > raw + (20 << 20));
        put_until(&cache, 1, |stats| stats.codec_trainings >= 3);
        assert_eq!(cache.stats().segments_written, 0, "they are in RAM");
        assert_eq!((found(&cache, 0..200, 0), cache.stats().values_undecodable), (200, 0));
    }
}

/// Values without bytes are no samples: a set of keys takes no RAM for them.
#[test]
fn empty_values_take_no_ram_for_training() {
    let cache =
        Cache::open(Options { memory_bytes: 1 << 20, compression: Compression::Zstd, ..Options::default() })
            .unwrap();
    for round in 0..2000u64 {
        let keys: Vec<[u8; 8]> = (0..1000).map(|i| (round * 1000 + i).to_le_bytes()).collect();
        let empty = |key| Entry { key: cache.key(key), value: Some(b""), expires_at: 0 };
        cache.put_many(&keys.iter().map(|key| empty(key)).collect::<Vec<_>>());
    }
    let bytes = cache.stats().codec_bytes;
    assert!(bytes < 1 << 20, "{bytes} bytes after 2 000 000 puts of no bytes");
}
