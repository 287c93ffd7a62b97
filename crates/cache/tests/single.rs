//! One key at a time: as a map, with lifetimes, and values that one thread makes for all.

mod common;

use common::options;
use granary_cache::{Cache, Options, Refusal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

fn on_flash() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 64, 16 << 10)).unwrap();
    (folder, cache)
}

#[test]
fn it_is_a_map_that_outlives_its_process() {
    let (folder, cache) = on_flash();
    let mut map = HashMap::new();
    for i in 0..3_000u64 {
        let key = (i % 700).to_string();
        match i % 5 {
            4 => {
                cache.remove(key.as_bytes());
                map.remove(&key);
            }
            _ => {
                cache.insert(key.as_bytes(), &i.to_le_bytes()).unwrap();
                map.insert(key, i.to_le_bytes().to_vec());
            }
        }
    }
    let check = |cache: &Cache| {
        for key in (0..700).map(|key| key.to_string()) {
            assert_eq!(cache.get(key.as_bytes()), map.get(&key).cloned(), "{key}");
            assert_eq!(cache.contains(key.as_bytes()), map.contains_key(&key), "{key}");
        }
        assert_eq!(cache.len(), map.len() as u64);
    };
    check(&cache);
    cache.close().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 64, 16 << 10)).unwrap();
    check(&cache);
    cache.clear().unwrap();
    assert!(cache.is_empty() && cache.get(b"1").is_none());
}

#[test]
fn values_expire() {
    let (_folder, cache) = on_flash();
    let stored = Instant::now();
    cache.insert_with_ttl(b"short", b"1", Duration::from_secs(3)).unwrap();
    cache.insert_with_ttl(b"long", b"2", Duration::from_secs(3_600)).unwrap();
    cache.insert_with_ttl(b"for ever", b"3", Duration::MAX).unwrap();
    while stored.elapsed() < Duration::from_secs(1) {
        let found = cache.get(b"short");
        // Unless a slow machine took so long that it may have expired.
        if stored.elapsed() < Duration::from_secs(2) {
            assert_eq!(found.as_deref(), Some(&b"1"[..]));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(3_100));
    assert_eq!(cache.get(b"short"), None);
    assert!(cache.contains(b"long") && cache.contains(b"for ever"));
}

#[test]
fn what_is_not_kept_is_an_error_and_leaves_nothing_older() {
    let (_folder, cache) = on_flash();
    cache.insert(b"key", b"old").unwrap();
    assert_eq!(cache.insert(b"key", &vec![0; 1 << 20]), Err(Refusal::TooLong));
    assert_eq!(cache.get(b"key"), None);
    assert!(Refusal::TooLong.to_string().contains("longer than a write buffer (write_buffer_size)"));
}

#[test]
fn one_thread_makes_a_value_for_all_that_want_it() {
    let cache = Cache::open(Options { memory_bytes: 1 << 20, ..Options::default() }).unwrap();
    let made = AtomicU64::new(0);
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for key in 0..50u64 {
                    together.wait();
                    let value = cache.get_or_insert_with(&key.to_le_bytes(), || {
                        made.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(2));
                        Ok::<_, ()>(key.to_string().into_bytes())
                    });
                    assert_eq!(value, Ok(key.to_string().into_bytes()));
                }
            });
        }
    });
    assert_eq!(made.into_inner(), 50);
}

#[test]
fn who_fails_or_panics_leaves_the_others_to_try() {
    let (_folder, cache) = on_flash();
    let tries = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let threads = [(); 6].map(|()| {
            scope.spawn(|| {
                cache.get_or_insert_with(b"key", || {
                    std::thread::sleep(Duration::from_millis(20));
                    match tries.fetch_add(1, Ordering::Relaxed) {
                        0 => Err("the source is down"),
                        1 => panic!("a bug of the caller's"),
                        _ => Ok(b"value".to_vec()),
                    }
                })
            })
        });
        let (mut made, mut failed, mut panicked) = (0, 0, 0);
        for thread in threads {
            match thread.join() {
                Ok(Ok(value)) => made += u32::from(value == b"value"),
                Ok(Err(_)) => failed += 1,
                Err(_) => panicked += 1,
            }
        }
        assert_eq!((made, failed, panicked), (4, 1, 1));
    });
    assert_eq!((tries.into_inner(), cache.get(b"key")), (3, Some(b"value".to_vec())));
}

/// The source of a value may change while it is made: then the made value is stale.
#[test]
fn what_is_changed_while_it_is_made_is_not_stored() {
    let (_folder, cache) = on_flash();
    let cache = Arc::new(cache);
    type Change = fn(&Cache);
    let changes: [(Change, Option<&[u8]>); 3] = [
        (|cache| cache.remove(b"key"), None),
        (|cache| cache.insert(b"key", b"newer").unwrap(), Some(b"newer")),
        (|cache| cache.clear().unwrap(), None),
    ];
    for (change, expected) in changes {
        cache.remove(b"key");
        let (begun, changed) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| {
                cache.get_or_insert_with(b"key", || {
                    begun.wait();
                    changed.wait();
                    Ok::<_, ()>(b"older".to_vec())
                })
            });
            begun.wait();
            change(&cache);
            // A later caller does not get the value whose making began before the change.
            let later = cache.get_or_insert_with(b"key", || Ok::<_, ()>(b"newer".to_vec()));
            assert_eq!(later, Ok(b"newer".to_vec()));
            if expected.is_none() {
                cache.remove(b"key");
            }
            changed.wait();
            assert_eq!(maker.join().unwrap(), Ok(b"older".to_vec()));
        });
        assert_eq!(cache.get(b"key").as_deref(), expected);
    }
}
