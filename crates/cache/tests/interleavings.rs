//! The cache under interleavings chosen by a model checker: readers, writers and the flusher, each
//! lock and wait a place to switch. `cargo test -p granary-cache --features shuttle --test interleavings`

use granary_cache::admission::Admission;
use granary_cache::{
    Cache, Engine, Entry, FlashOptions, Io, Key, Options, Outcome, Refusal, Reinsertion, testing,
};
use granary_log::device::MemoryDevice;
use shuttle::rand::{RngCore, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

/// The seed of the interleavings; SHUTTLE_RANDOM_SEED for others.
const SEED: u64 = 1;

fn open(folder: &std::path::Path, memory_bytes: u64) -> Cache {
    open_with(folder, memory_bytes, Admission::All)
}

/// A shard of 4 KiB of RAM, of which half a dozen entries take a good part.
fn open_dram_first(folder: &std::path::Path) -> Cache {
    open_with(folder, 256 << 10, Admission::Probability(0.8))
}

fn open_with(folder: &std::path::Path, memory_bytes: u64, admission: Admission) -> Cache {
    let mut flash = FlashOptions::new(folder.join("c"), 8 << 10);
    flash.block_size = 512;
    flash.write_buffer_size = 1024;
    flash.reinsertion = Reinsertion::Read;
    flash.admission = admission;
    flash.hash_seed = Some(thread_rng().next_u64());
    let options = Options { flash: Some(flash), memory_bytes, ..Options::default() };
    Cache::open_on(Box::new(MemoryDevice::new(8 << 10)), options).unwrap()
}

fn put(cache: &Cache, key: u64, version: u64) {
    let mut value = [0xAB; 100];
    value[..8].copy_from_slice(&version.to_le_bytes());
    let key = key.to_le_bytes();
    cache.put_many(&[Entry { key: cache.key(&key), value: Some(&value), expires_at: 0 }]);
}

fn get(cache: &Cache, io: &mut Io, key: u64) -> Option<u64> {
    let key = key.to_le_bytes();
    let mut version = None;
    cache.get_many(io, &[cache.key(&key)], 1, |_, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            assert_eq!(&value[8..], &[0xAB; 92], "torn");
            version = Some(u64::from_le_bytes(value[..8].try_into().unwrap()));
        }
    });
    version
}

fn random(test: impl Fn() + Send + Sync + 'static) {
    random_times(60, test);
}

fn random_times(iterations: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(5_000_000);
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(SEED, iterations);
    shuttle::Runner::new(scheduler, config).run(test);
}

/// The versions of keys `0..keys`, looked up by two threads.
fn get_parallel(cache: &Cache, io: &mut Io, keys: u64) -> Vec<Option<u64>> {
    let bytes: Vec<[u8; 8]> = (0..keys).map(u64::to_le_bytes).collect();
    let keys: Vec<Key<'_>> = bytes.iter().map(|bytes| cache.key(bytes)).collect();
    let mut told = [Vec::new(), Vec::new()];
    let sinks = told.each_mut().map(|told| {
        |i: usize, outcome: Outcome<'_>| {
            let version = |value: &[u8]| u64::from_le_bytes(value[..8].try_into().unwrap());
            told.push((
                i,
                if let Outcome::Hit { value, .. } = outcome { Some(version(value)) } else { None },
            ));
        }
    });
    cache.get_many_parallel(io, &keys, 1, sinks);
    let mut told = told.concat();
    told.sort_unstable();
    assert!(told.iter().map(|(i, _)| *i).eq(0..keys.len()), "each key is answered once");
    told.into_iter().map(|(_, version)| version).collect()
}

#[test]
fn two_threads_with_one_batch_never_go_back() {
    // With a team and a RAM tier (too small for any entry here), they only read together.
    for (memory_bytes, threads) in [(0, 1), (4 << 10, 1024), (1 << 20, 1)] {
        random(move || {
            const KEYS: u64 = 4;
            let folder = tempfile::tempdir().unwrap();
            let cache = Arc::new(open(folder.path(), memory_bytes));
            let _team = cache.helpers().team(threads);
            let written: Arc<[AtomicU64; KEYS as usize]> = Arc::default();
            let writer = {
                let (cache, written) = (Arc::clone(&cache), Arc::clone(&written));
                thread::spawn(move || {
                    for version in 1..=6 {
                        for key in 0..KEYS {
                            put(&cache, key, version);
                            written[key as usize].store(version, Ordering::SeqCst);
                            put(&cache, 100 + version * KEYS + key, 1);
                        }
                    }
                })
            };
            let mut io = Io::with_engine(Engine::Plain);
            let mut seen = [0; KEYS as usize];
            for _ in 0..8 {
                let least: Vec<u64> = written.iter().map(|version| version.load(Ordering::SeqCst)).collect();
                for (key, version) in get_parallel(&cache, &mut io, KEYS).into_iter().enumerate() {
                    if let Some(version) = version {
                        let floor = least[key].max(seen[key]);
                        assert!(version >= floor, "key {key}: read {version} after {floor}");
                        seen[key] = version;
                    }
                }
            }
            writer.join().unwrap();
            testing::validate(&cache);
        });
    }
}

/// One writer raises the version of each key; once a put has returned, no reader may see an older one.
fn readers_never_go_back(fillers: u64, open: impl Fn(&std::path::Path) -> Cache + Send + Sync + 'static) {
    const KEYS: u64 = 3;
    random(move || {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(open(folder.path()));
        let written: Arc<[AtomicU64; KEYS as usize]> = Arc::default();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (cache, written) = (Arc::clone(&cache), Arc::clone(&written));
                thread::spawn(move || {
                    let mut io = Io::with_engine(Engine::Plain);
                    let mut seen = [0; KEYS as usize];
                    for i in 0..12 {
                        let key = i % KEYS;
                        let least = written[key as usize].load(Ordering::SeqCst);
                        if let Some(version) = get(&cache, &mut io, key) {
                            let floor = least.max(seen[key as usize]);
                            assert!(version >= floor, "key {key}: read {version} after {floor}");
                            seen[key as usize] = version;
                        }
                    }
                })
            })
            .collect();
        let mut filler = 100;
        for version in 1..=5 {
            for key in 0..KEYS {
                put(&cache, key, version);
                written[key as usize].store(version, Ordering::SeqCst);
                // Others push the ring round, so that segments are reused under the readers.
                for _ in 0..fillers {
                    put(&cache, filler, 1);
                    filler += 1;
                }
            }
        }
        for reader in readers {
            reader.join().unwrap();
        }
        testing::validate(&cache);
    });
}

#[test]
fn readers_never_go_back_on_flash() {
    readers_never_go_back(1, |folder| open(folder, 0));
}

#[test]
fn readers_never_go_back_with_a_ram_tier() {
    readers_never_go_back(1, |folder| open(folder, 1 << 20));
}

#[test]
fn readers_never_go_back_with_dram_first() {
    readers_never_go_back(60, open_dram_first);
}

#[test]
fn what_is_deleted_stays_deleted_with_dram_first() {
    what_is_deleted_stays_deleted(open_dram_first);
}

#[test]
fn what_is_deleted_stays_deleted_with_a_ram_tier() {
    what_is_deleted_stays_deleted(|folder| open(folder, 1 << 20));
}

fn what_is_deleted_stays_deleted(open: impl Fn(&std::path::Path) -> Cache + Send + Sync + 'static) {
    random(move || {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(open(folder.path()));
        put(&cache, 1, 1);
        let other = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                let mut io = Io::with_engine(Engine::Plain);
                for i in 0..8 {
                    get(&cache, &mut io, 1);
                    put(&cache, 200 + i, 1);
                }
            })
        };
        for i in 0..8 {
            put(&cache, 100 + i, 1);
        }
        let key = 1u64.to_le_bytes();
        cache.delete_many(&[cache.key(&key)]);
        let mut io = Io::with_engine(Engine::Plain);
        for i in 0..8 {
            assert_eq!(get(&cache, &mut io, 1), None);
            put(&cache, 300 + i, 1);
        }
        other.join().unwrap();
        assert_eq!(get(&cache, &mut io, 1), None);
    });
}

#[test]
fn clearing_races_with_everything() {
    random(|| {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(open(folder.path(), 0));
        let writer = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || (0..30).for_each(|i| put(&cache, i % 5, i)))
        };
        let mut io = Io::with_engine(Engine::Plain);
        for i in 0..4 {
            get(&cache, &mut io, i);
        }
        cache.clear().unwrap();
        writer.join().unwrap();
        cache.clear().unwrap();
        assert!((0..5).all(|key| get(&cache, &mut io, key).is_none()));
        testing::validate(&cache);
    });
}

/// A thread that writes to the source and then to the cache does not find the source's older value in the cache, though
/// other threads were making it.
#[test]
fn a_value_that_was_made_does_not_replace_one_that_is_put() {
    random_times(1000, || {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(open(folder.path(), 1 << 20));
        let source = Arc::new(AtomicU64::new(1));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (cache, source) = (Arc::clone(&cache), Arc::clone(&source));
                let make = move || Ok::<_, ()>(source.load(Ordering::SeqCst).to_le_bytes().to_vec());
                thread::spawn(move || cache.get_or_insert_with(b"key", make))
            })
            .collect();
        let new = 2u64.to_le_bytes();
        source.store(2, Ordering::SeqCst);
        let is_kept = match cache.insert(b"key", &new) {
            Ok(()) => true,
            Err(Refusal::Superseded) => false,
            Err(other) => panic!("{other}"),
        };
        let is_new = || cache.get(b"key").map_or(!is_kept, |value| value == new);
        assert!(is_new());
        others.into_iter().for_each(|other| _ = other.join().unwrap());
        assert!(is_new());
    });
}

/// A put that meets a made value does not put again what another thread has removed.
#[test]
fn a_put_is_done_once_while_others_make_a_value() {
    random_times(1000, || {
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(open(folder.path(), 1 << 20));
        let spawn = |work: fn(&Cache)| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || work(&cache))
        };
        let maker = spawn(|cache| drop(cache.get_or_insert_with(b"key", || Ok::<_, ()>(b"made".to_vec()))));
        let putter = spawn(|cache| {
            let put = cache.insert(b"key", b"put");
            assert!(matches!(put, Ok(()) | Err(Refusal::Superseded)), "{put:?}");
        });
        let was_put = cache.get(b"key").as_deref() == Some(b"put");
        cache.remove(b"key");
        putter.join().unwrap();
        assert!(!was_put || cache.get(b"key").as_deref() != Some(b"put"), "it was removed");
        maker.join().unwrap();
    });
}
