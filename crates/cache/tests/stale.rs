//! Ways in which an old value could come back, each forced to happen: colliding hashes, a ring that wraps round during
//! a read, a kill in the middle of recovery. And a lock order.

mod common;

use common::{HASH_SEED, Hooked, LOOK_ALIKES, copy_as_killed, get, options, put, put_alone};
use granary_cache::limits::{HASH_BITS, SHARDS};
use granary_cache::{Cache, Engine, Io, KeyHasher, MemoryDivision, Options, testing};
use granary_log::device::{Device, MemoryDevice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

#[test]
fn a_key_is_not_taken_for_another_of_the_same_hash() {
    for (one, two) in LOOK_ALIKES.into_iter().chain(LOOK_ALIKES.map(|(one, two)| (two, one))) {
        let hasher = KeyHasher::with_seed(HASH_SEED);
        assert_eq!(hasher.hash(&one.to_le_bytes()), hasher.hash(&two.to_le_bytes()));
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(options(folder.path(), 64, 2, 0)).unwrap();
        put(&cache, one, 1);
        cache.flush().unwrap();
        assert_eq!(get(&cache, one), Some(1));
        assert_eq!(get(&cache, two), None, "and the cache notes where it is not");
        put(&cache, one, 2);
        cache.flush().unwrap();
        assert_eq!(get(&cache, one), Some(2));
        put(&cache, two, 3);
        cache.flush().unwrap();
        put(&cache, one, 4);
        assert_eq!(get(&cache, one), Some(4));
        assert!(matches!(get(&cache, two), None | Some(3)));
        cache.delete_many(&[cache.key(&one.to_le_bytes())]);
        assert_eq!(get(&cache, one), None);
        drop(cache);
        let cache = Cache::open(options(folder.path(), 64, 2, 0)).unwrap();
        assert_eq!(get(&cache, one), None);
        assert!(matches!(get(&cache, two), None | Some(3)));
    }
}

/// A value read before the ring came round must not enter the RAM tier although the index has the
/// same key at the same place again: it is a newer version.
#[test]
fn a_slow_reader_does_not_promote_what_was_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let device = Hooked::new(Arc::new(MemoryDevice::new(4 * 512)));
    let open = || {
        let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
        let memory_division = MemoryDivision::Fixed { blocks_percent: 0 };
        let options = Options { memory_division, ..options(folder.path(), 4, 1, 1 << 20) };
        Arc::new(Cache::open_on(boxed, options).unwrap())
    };
    let cache = open();
    put_alone(&cache, 1, 1);
    drop(cache);
    let cache = open();
    let shared = Arc::clone(&cache);
    device.after_next_read(move || {
        for (key, version) in [(1, 2), (8, 0), (9, 0), (1, 3)] {
            put_alone(&shared, key, version);
        }
    });
    get(&cache, 1);
    assert_eq!(get(&cache, 1), Some(3), "version 1 was read before version 2 was put");
}

/// Likewise for a block for the RAM tier, which was read before the ring wrapped round and would be kept after that.
#[test]
fn a_slow_reader_does_not_keep_a_block_that_was_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let device = Hooked::new(Arc::new(MemoryDevice::new(4 * 512)));
    let open = || {
        let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
        let memory_division = MemoryDivision::Fixed { blocks_percent: 50 };
        // RAM for one entry a shard: another key of the shard evicts it, and lookups need its block.
        let memory_entries = Some(SHARDS as u64);
        let options = Options { memory_division, memory_entries, ..options(folder.path(), 4, 1, 1 << 20) };
        Arc::new(Cache::open_on(boxed, options).unwrap())
    };
    let cache = open();
    put_alone(&cache, 1, 1);
    drop(cache);
    let cache = open();
    let shard = |key: u64| cache.key(&key.to_le_bytes()).hash().to_bits() >> (HASH_BITS - SHARDS.ilog2());
    let other = (100..).find(|key| shard(*key) == shard(1)).unwrap();
    let shared = Arc::clone(&cache);
    device.after_next_read(move || {
        for (key, version) in [(1, 2), (8, 0), (9, 0), (1, 3), (other, 0)] {
            put_alone(&shared, key, version);
        }
    });
    get(&cache, 1);
    let before = cache.stats();
    assert_eq!(get(&cache, 1), Some(3), "version 1 was read before version 2 was put");
    assert_eq!(cache.stats().hits_flash, before.hits_flash + 1, "and version 3 is in RAM no more");
    assert_eq!(get(&cache, 1), Some(3));
    assert_eq!(cache.stats().hits_block, 1, "its block is, from now on");
}

/// The folder of the small files, and the device.
type Image = (String, Arc<MemoryDevice>);

/// More deletions than a segment holds are lost in a kill; the next start, which appends them again, is killed after
/// each of its writes.
#[test]
fn a_kill_during_recovery_brings_nothing_back() {
    const KEYS: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("first")).unwrap();
    let shape = |name: &str| options(&at(name), 1024, 16, 0);
    let memory = Arc::new(MemoryDevice::new(1024 * 8192));
    let device = Hooked::new(Arc::clone(&memory));
    let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
    let cache = Cache::open_on(boxed, shape("first")).unwrap();
    (0..KEYS).for_each(|key| put(&cache, key, 1));
    cache.flush().unwrap();
    assert!((0..KEYS).filter(|key| get(&cache, *key).is_some()).count() > KEYS as usize * 9 / 10);
    // From here on the device does not come back from its next write.
    let gate = Arc::new((Mutex::new(true), Condvar::new()));
    let closed = Arc::clone(&gate);
    device.after_each_write(move || {
        drop(closed.1.wait_while(closed.0.lock().unwrap(), |closed| *closed).unwrap());
    });
    for key in 0..KEYS {
        cache.delete_many(&[cache.key(&key.to_le_bytes())]);
    }
    let killed = Arc::new(copy_as_killed(&at("first"), &at("second"), &memory));
    *gate.0.lock().unwrap() = false;
    gate.1.notify_all();
    testing::abandon(cache);

    let device = Hooked::new(Arc::clone(&killed));
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let (taken, from) = (Arc::clone(&images), at("second"));
    let root = folder.path().to_owned();
    let mut writes = 0;
    device.after_each_write(move || {
        let mut taken = taken.lock().unwrap();
        writes += 1;
        // Every second write is that of a summary: from then on the segment is found.
        if writes % 2 == 0 && taken.len() < 4 {
            let name = format!("image-{}", taken.len());
            let copy = Arc::new(copy_as_killed(&from, &root.join(&name), &killed));
            taken.push((name, copy));
        }
    });
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), shape("second")).unwrap();
    assert!((0..KEYS).all(|key| get(&cache, key).is_none()));
    cache.flush().unwrap();
    testing::abandon(cache);
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 1);
    for (name, memory) in images {
        let cache = Cache::open_on(Box::new(memory), shape(&name)).unwrap();
        let back = (0..KEYS).filter(|key| get(&cache, *key).is_some()).count();
        assert_eq!(back, 0, "{name}: {back} of {KEYS} deleted keys are back");
    }
}

#[test]
fn a_scan_does_not_lock_up_with_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let memory = Box::new(MemoryDevice::new(64 * 8192));
        let cache = Cache::open_on(memory, options(&path, 64, 16, 0)).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers = [0u64, 1].map(|thread| {
                let (cache, stop) = (&cache, &stop);
                scope.spawn(move || {
                    for i in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        put(cache, (i * 7 + thread) % 300, i);
                        if i % 64 == 0 {
                            cache.flush().unwrap();
                        }
                    }
                })
            });
            let mut io = Io::with_engine(Engine::Plain);
            let until = std::time::Instant::now() + Duration::from_millis(1_500);
            while std::time::Instant::now() < until {
                cache.scan(&mut io, |_, value, _| assert_eq!(value.map(<[u8]>::len), Some(8)));
            }
            stop.store(true, Ordering::Relaxed);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        done.send(()).unwrap();
    });
    finished.recv_timeout(Duration::from_secs(60)).expect("nobody waits for ever");
}

/// Neither state nor data may be shared.
#[test]
fn one_path_belongs_to_one_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 2, 0)).unwrap();
    put(&cache, 1, 1);
    cache.flush().unwrap();
    // Another size: the second cache must not cut the file before it learns that it is not its own.
    let second = Cache::open(options(folder.path(), 8, 2, 0));
    assert!(matches!(second, Err(granary_cache::OpenError::InUse { .. })));
    assert_eq!(std::fs::metadata(folder.path().join("c.bin")).unwrap().len(), 64 * 1024);
    let mut elsewhere = options(folder.path(), 64, 2, 0);
    elsewhere.flash.as_mut().unwrap().state_path = Some(folder.path().join("other"));
    let second = Cache::open(elsewhere);
    assert!(matches!(second, Err(granary_cache::OpenError::InUse { .. })), "the same data, another state");
    assert_eq!(get(&cache, 1), Some(1));
    drop(cache);
    assert!(Cache::open(options(folder.path(), 8, 2, 0)).is_ok());
}

/// Readers that hold places of cleared content find blocks of another instance there, which do not count as damaged.
#[test]
fn a_cache_that_is_cleared_beside_readers_has_no_damaged_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 16, 128, 0)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, done) = (&cache, &done);
            scope.spawn(move || {
                let mut io = Io::new();
                let names: Vec<[u8; 8]> = (0..4_000u64).map(|key| (key * 4 + thread).to_le_bytes()).collect();
                while !done.load(Ordering::Relaxed) {
                    let keys: Vec<_> = names.iter().map(|name| cache.key(name)).collect();
                    cache.get_many(&mut io, &keys, 1, |_, _| ());
                }
            });
        }
        for round in 0..60 {
            (0..4_000).for_each(|key| put(&cache, key, round));
            cache.flush().unwrap();
            cache.clear().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let stats = cache.stats();
    assert!(stats.block_reads > 0 && stats.corrupt_blocks == 0, "{stats:?}");
}
