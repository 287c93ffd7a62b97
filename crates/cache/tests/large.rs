//! Large lookups, of blocks side by side and apart, answer as a map does.

mod common;

use common::options;
use granary_cache::{Cache, Entry, Io, Key, Outcome};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

const KEYS: u64 = 200_000;
const NOW: u32 = 1_000;

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Hit(Vec<u8>),
    Negative,
    Expired(Option<Vec<u8>>),
    Miss,
}

/// The last put value of a key; `Miss`: it is deleted.
fn last(key: u64) -> Answer {
    // Some are longer than a block.
    let len = if key.is_multiple_of(997) { 1_500 } else { 8 + key as usize % 29 };
    let mut value = vec![key as u8; len];
    value[..8].copy_from_slice(&key.to_le_bytes());
    match key {
        _ if key.is_multiple_of(17) => Answer::Miss,
        _ if key.is_multiple_of(11) => Answer::Negative,
        _ if key.is_multiple_of(13) => Answer::Expired((key.is_multiple_of(2)).then_some(value)),
        _ => Answer::Hit(value),
    }
}

fn fill(cache: &Cache) {
    for key in 0..KEYS {
        let bytes = key.to_le_bytes();
        let key_of = cache.key(&bytes);
        if key % 7 == 0 || key.is_multiple_of(17) {
            cache.put_many(&[Entry { key: key_of, value: Some(b"before"), expires_at: 0 }]);
        }
        let (value, expires_at) = match last(key) {
            Answer::Hit(value) => (Some(value), 0),
            Answer::Negative => (None, 0),
            Answer::Expired(value) => (value, NOW - 1),
            Answer::Miss => {
                cache.delete_many(&[key_of]);
                continue;
            }
        };
        cache.put_many(&[Entry { key: key_of, value: value.as_deref(), expires_at }]);
        // Without a flush a slow device would make puts be dropped.
        if key.is_multiple_of(5_000) {
            cache.flush().unwrap();
        }
    }
    cache.flush().unwrap();
    assert_eq!(cache.stats().puts_dropped, 0);
}

/// The threads that look up.
#[derive(Clone, Copy, Debug)]
enum By {
    OneThread,
    Two,
    /// Two threads, one of which only helps to read.
    Team,
}

/// Every key is answered once.
fn look_up(cache: &Cache, io: &mut Io, keys: &[u64], by: By) -> Vec<Answer> {
    let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    let asked: Vec<Key<'_>> = bytes.iter().map(|bytes| cache.key(bytes)).collect();
    let mut told = [Vec::new(), Vec::new()];
    let [sink, other] = told.each_mut().map(|told| {
        |i: usize, outcome: Outcome<'_>| {
            let answer = match outcome {
                Outcome::Hit { value, .. } => Answer::Hit(value.to_vec()),
                Outcome::Negative { .. } => Answer::Negative,
                Outcome::Expired { value, .. } => Answer::Expired(value.map(<[u8]>::to_vec)),
                Outcome::Miss => Answer::Miss,
            };
            told.push((i, answer));
        }
    });
    match by {
        By::OneThread => cache.get_many(io, &asked, NOW, sink),
        By::Two => cache.get_many_parallel(io, &asked, NOW, [sink, other]),
        By::Team => {
            let _team = cache.helpers().team(1024);
            cache.get_many_parallel(io, &asked, NOW, [sink, other]);
        }
    }
    let mut answers = vec![None; keys.len()];
    for (i, answer) in told.into_iter().flatten() {
        assert_eq!(answers[i].replace(answer), None, "key {} is answered twice", keys[i]);
    }
    answers.into_iter().map(|answer| answer.expect("every key is answered")).collect()
}

/// Neighbouring blocks, blocks with gaps between them, and keys that come twice.
fn batches() -> [Vec<u64>; 3] {
    let scattered = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (KEYS + 500);
    [(0..KEYS).collect(), (0..KEYS).step_by(23).collect(), (0..50_000).map(scattered).collect()]
}

#[test]
fn every_key_of_a_large_lookup_is_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    let ways = [By::OneThread, By::Two, By::Team];
    for (memory_bytes, by) in ways.into_iter().flat_map(|by| [(0, by), (256 << 10, by), (1 << 20, by)]) {
        let cache = Cache::open(options(folder.path(), 512, 128, memory_bytes)).unwrap();
        fill(&cache);
        let mut io = Io::new();
        for keys in batches() {
            for (&key, answer) in keys.iter().zip(look_up(&cache, &mut io, &keys, by)) {
                let expected = if key < KEYS { last(key) } else { Answer::Miss };
                // An entry that looks like another to the index may be lost.
                assert!(answer == expected || answer == Answer::Miss, "key {key}: {answer:?}");
            }
        }
        let stats = cache.stats();
        let found = stats.hits_memory + stats.hits_buffer + stats.hits_flash;
        let asked: usize = batches().iter().map(Vec::len).sum();
        assert_eq!(found + stats.misses, asked as u64, "each is counted once");
        assert!(stats.misses * 100 < 7 * asked as u64, "one in 17 is deleted: {} misses", stats.misses);
    }
}

#[test]
fn keys_in_damaged_blocks_are_misses() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 512, 128, 0)).unwrap();
    fill(&cache);
    let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("c.bin")).unwrap();
    for block in (0..20_000).step_by(10) {
        file.write_all_at(&[0xEE; 4], block * 512 + 100).unwrap();
    }
    let keys: Vec<u64> = (0..KEYS).collect();
    for by in [By::Two, By::OneThread, By::Team] {
        let answers = look_up(&cache, &mut Io::new(), &keys, by);
        let wrong =
            keys.iter().zip(&answers).find(|&(&key, answer)| *answer != last(key) && *answer != Answer::Miss);
        assert_eq!(wrong, None);
        let missed = answers.iter().filter(|answer| **answer == Answer::Miss).count() as u64;
        assert!((KEYS / 12..KEYS / 4).contains(&missed), "one in 17 and one in 10: {missed}");
    }
    assert!(cache.stats().corrupt_blocks > 1_000);
}

/// The ring wraps round meanwhile: a block whose read began before the batch was planned may be gone, or another one,
/// when it is needed.
#[test]
fn large_lookups_of_what_is_overwritten_never_go_back() {
    const OVERWRITTEN: u64 = 30_000;
    const VERSIONS: u64 = 30;
    /// Keys put together, which fill a segment.
    const TOGETHER: u64 = 120;
    let folder = tempfile::tempdir().unwrap();
    // A version takes some two fifths of the file.
    let cache = Cache::open(options(folder.path(), 640, 8, 0)).unwrap();
    let [begun, ended] = [0, 0].map(AtomicU64::new);
    let put = |version: u64| {
        begun.store(version, Ordering::SeqCst);
        for first in (0..OVERWRITTEN).step_by(TOGETHER as usize) {
            let keys: Vec<[u8; 8]> = (first..first + TOGETHER).map(u64::to_le_bytes).collect();
            let values: Vec<[u8; 16]> =
                keys.iter().map(|key| [*key, version.to_le_bytes()].concat().try_into().unwrap()).collect();
            let entries: Vec<Entry<'_>> = keys
                .iter()
                .zip(&values)
                .map(|(key, value)| Entry { key: cache.key(key), value: Some(value), expires_at: 0 })
                .collect();
            cache.put_many(&entries);
            // Without waiting, most puts would be dropped.
            cache.flush().unwrap();
        }
        ended.store(version, Ordering::SeqCst);
    };
    let keys: Vec<u64> = (0..OVERWRITTEN).map(|i| i * 7919 % OVERWRITTEN).collect();
    let mut found = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for version in 1..=VERSIONS {
                put(version);
                std::thread::sleep(std::time::Duration::from_millis(version % 4));
            }
        });
        let mut io = Io::new();
        while !writer.is_finished() {
            let oldest = ended.load(Ordering::SeqCst);
            let answers = look_up(&cache, &mut io, &keys, By::Two);
            let newest = begun.load(Ordering::SeqCst);
            for (key, answer) in keys.iter().zip(answers) {
                let Answer::Hit(value) = answer else { continue };
                let [of, version] =
                    [0, 8].map(|at| u64::from_le_bytes(value[at..at + 8].try_into().unwrap()));
                assert_eq!(of, *key);
                assert!((oldest..=newest).contains(&version), "{version} is not of {oldest} to {newest}");
                found += 1;
            }
        }
    });
    cache.flush().unwrap();
    let before = cache.stats().hits_flash;
    look_up(&cache, &mut Io::new(), &keys, By::Two);
    let stats = cache.stats();
    assert!(stats.hits_flash - before > OVERWRITTEN / 2 && found > OVERWRITTEN, "{found} found, {stats:?}");
    assert_eq!(stats.corrupt_blocks, 0);
}
