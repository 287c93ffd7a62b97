//! What a caller passes to the cache, to be called with outcomes, entries or refusals, may use the cache again, also for
//! the same keys: no lock is held meanwhile.

mod common;

use common::options;
use granary_cache::admission::Admission;
use granary_cache::{Cache, Compression, Engine, Entry, Io, Key, Options, Outcome, Pending, testing};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Enough for two threads to share a batch of all of them.
const KEYS: u64 = 9_000;

const NOW: u32 = 1_000;

/// Runs `work`, which ends unless it waits for itself.
fn without_deadlock(name: &str, work: impl FnOnce() + Send + 'static) {
    let (ended, end) = channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = ended.send(());
    });
    match end.recv_timeout(Duration::from_secs(120)) {
        Err(RecvTimeoutError::Timeout) => panic!("{name}: the callback and its caller wait for each other"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => thread.join().unwrap(),
    }
}

/// The value of a key before callbacks change it (`number` 0), and after.
fn value(key: u64, number: u64) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&key.to_le_bytes());
    value[8..].copy_from_slice(&number.to_le_bytes());
    value
}

fn number_of(key: u64, bytes: &[u8]) -> u64 {
    assert_eq!((bytes.len(), &bytes[..8]), (16, &key.to_le_bytes()[..]), "another key's value");
    u64::from_le_bytes(bytes[8..].try_into().unwrap())
}

fn key_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn put(cache: &Cache, keys: [u64; 2], number: u64) {
    let bytes = keys.map(u64::to_le_bytes);
    let values = keys.map(|key| value(key, number));
    let entries = [0, 1].map(|i| Entry { key: cache.key(&bytes[i]), value: Some(&values[i]), expires_at: 0 });
    cache.put_many(&entries);
}

/// What a callback does that was called for `key`: it gets, removes and puts that key and a neighbour.
fn use_again(cache: &Cache, key: u64) {
    let next = (key + 1) % KEYS;
    let bytes = [key, next].map(u64::to_le_bytes);
    let keys = [cache.key(&bytes[0]), cache.key(&bytes[1])];
    cache.get_many(&mut Io::with_engine(Engine::Plain), &keys, NOW, |i, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            number_of([key, next][i], value);
        }
    });
    cache.delete_many(&keys);
    put(cache, [key, next], 1);
    cache.get(&bytes[0]).inspect(|value| assert_eq!(number_of(key, value), 1));
    match key % 1000 {
        0 => cache.flush().unwrap(),
        1 => cache.sync_changes().unwrap(),
        2 => assert!(cache.stats().entries > 0),
        _ => {}
    }
}

/// A cache of all keys.
fn filled(options: Options, is_flushed: bool) -> Arc<Cache> {
    let cache = Cache::open(options).unwrap();
    for key in 0..KEYS {
        let (bytes, value) = (key.to_le_bytes(), value(key, 0));
        let entry = Entry { key: cache.key(&bytes), value: Some(&value), expires_at: 0 };
        cache.put_many_waiting(&[entry], Duration::from_secs(60), |_, why| panic!("{why:?}"));
    }
    if is_flushed {
        cache.flush().unwrap();
    }
    Arc::new(cache)
}

/// The options of a cache in a folder.
type OptionsIn = fn(&Path) -> Options;

/// Runs `work` on caches whose entries lie in RAM only, in RAM before flash, in a write buffer, on flash, and on flash
/// below blocks and entries in RAM, compressed and in partitions.
fn on_each_cache(name: &str, work: fn(&Cache)) {
    let shapes: [(&str, OptionsIn, bool); 5] = [
        ("RAM", |_| Options { memory_bytes: 8 << 20, ..Options::default() }, false),
        (
            "DRAM first",
            |folder| {
                let mut options = options(folder, 32, 256, 8 << 20);
                options.flash.as_mut().unwrap().admission = Admission::Probability(0.5);
                options
            },
            false,
        ),
        ("write buffer", |folder| options(folder, 4, 4096, 0), false),
        ("flash", |folder| options(folder, 64, 64, 0), true),
        (
            "all",
            |folder| {
                let mut options = options(folder, 64, 64, 256 << 10);
                options.flash.as_mut().unwrap().partitions = 4;
                options.compression = Compression::Zstd;
                options
            },
            true,
        ),
    ];
    for (shape, options, is_flushed) in shapes {
        let folder = tempfile::tempdir().unwrap();
        let cache = filled(options(folder.path()), is_flushed);
        let shared = Arc::clone(&cache);
        without_deadlock(&format!("{name}, {shape}"), move || work(&shared));
        testing::validate(&cache);
        for key in 0..KEYS {
            cache
                .get(&key.to_le_bytes())
                .inspect(|value| assert_eq!(number_of(key, value), 1, "{name}, {shape}: {key} is stale"));
        }
    }
}

/// Calls `look_up` with all keys, in batches of `batch` keys.
fn in_batches(cache: &Cache, batch: usize, mut look_up: impl FnMut(&[u64], &[Key<'_>])) {
    let numbers: Vec<u64> = (0..KEYS).map(|i| i * 7919 % KEYS).collect();
    let bytes: Vec<[u8; 8]> = numbers.iter().map(|key| key.to_le_bytes()).collect();
    let keys: Vec<Key<'_>> = bytes.iter().map(|bytes| cache.key(bytes)).collect();
    numbers.chunks(batch).zip(keys.chunks(batch)).for_each(|(numbers, keys)| look_up(numbers, keys));
}

#[test]
fn a_lookup_that_waits() {
    on_each_cache("blocking", |cache| {
        let mut io = Io::new();
        in_batches(cache, 500, |numbers, keys| {
            cache.get_many(&mut io, keys, NOW, |i, _| use_again(cache, numbers[i]));
        });
    });
}

#[test]
fn a_lookup_by_two_threads() {
    on_each_cache("parallel", |cache| {
        in_batches(cache, KEYS as usize, |numbers, keys| {
            let sink = |i: usize, _: Outcome<'_>| use_again(cache, numbers[i]);
            cache.get_many_parallel(&mut Io::new(), keys, NOW, [sink, sink]);
        });
    });
}

#[test]
fn a_lookup_in_the_background() {
    on_each_cache("polled", |cache| {
        let engines = [Engine::Ring, Engine::Pool, Engine::Plain];
        let mut pending = engines.map(|engine| Pending::with_engine(cache, engine));
        let mut turns = 0;
        in_batches(cache, 500, |numbers, keys| {
            let pending = &mut pending[turns % 3];
            turns += 1;
            let ticket = |i: usize| {
                // Reads the key that the lookup is about to wait for.
                cache.contains(&numbers[i].to_le_bytes());
                numbers[i]
            };
            cache.begin_many(pending, keys, NOW, ticket, |i, _| use_again(cache, numbers[i]));
            while !pending.is_empty() {
                cache.poll(pending, NOW, |key, _| use_again(cache, key));
            }
        });
    });
}

#[test]
fn a_scan() {
    on_each_cache("scan", |cache| {
        cache.scan(&mut Io::new(), |key, _, _| use_again(cache, key_of(key)));
        // It may miss what moved meanwhile.
        (0..KEYS).for_each(|key| use_again(cache, key));
        cache.next_victim(|key, _| use_again(cache, key_of(key.bytes())));
    });
}

/// Values that are too large are refused, which is told once they are gone; values are made by callers.
#[test]
fn puts() {
    on_each_cache("puts", |cache| {
        let large = vec![7; 16 << 20];
        let mut refused = 0;
        for key in (0..KEYS).step_by(50) {
            let bytes = key.to_le_bytes();
            let entry = Entry { key: cache.key(&bytes), value: Some(&large), expires_at: 0 };
            cache.put_many_with(&[entry], |_, _| {
                refused += 1;
                use_again(cache, key);
            });
            cache.remove(&bytes);
            let made = cache.get_or_insert_with(&bytes, || {
                use_again(cache, key);
                Ok::<_, std::convert::Infallible>(value(key, 1).to_vec())
            });
            assert_eq!(made, Ok(value(key, 1).to_vec()));
        }
        assert_eq!(refused, KEYS / 50);
        (0..KEYS).for_each(|key| use_again(cache, key));
    });
}
