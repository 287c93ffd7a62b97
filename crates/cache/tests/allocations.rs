//! Lookups allocate nothing once their scratch space has grown: allocations are counted by thread while a cache is
//! looked up again and again.

mod common;
#[path = "../../log/tests/common/counting.rs"]
mod counting;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use counting::{ALONE, allocations, allocations_by_this_thread};
use granary_cache::admission::Admission;
use granary_cache::{Cache, Compression, Engine, Entry, FlashOptions, Io, Key, Options, Outcome, Pending};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys in the cache; as many others are not in it.
const KEYS: u64 = 10_000;

const NOW: u32 = 1_000;

/// The place where the entries are found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tier {
    Memory,
    Buffer,
    Flash,
}

fn options(folder: &Path, tier: Tier) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 64 << 20);
    flash.block_size = 4096;
    flash.write_buffer_size = if tier == Tier::Flash { 1 << 20 } else { 8 << 20 };
    if tier == Tier::Memory {
        flash.admission = Admission::Probability(1.0);
    }
    let memory_bytes = if tier == Tier::Memory { 32 << 20 } else { 0 };
    Options { flash: Some(flash), memory_bytes, ..Options::default() }
}

/// A value; every 50th is longer than a block.
fn value(key: u64) -> Vec<u8> {
    let text = format!("the value of key {key}, which is compressible, compressible, and {}", key % 50);
    let len = if key.is_multiple_of(50) { 6_000 } else { 80 + key as usize % 100 };
    text.bytes().cycle().take(len).collect()
}

fn fill(cache: &Cache, tier: Tier) {
    for key in 0..KEYS {
        let (bytes, value) = (key.to_le_bytes(), value(key));
        let entry = Entry { key: cache.key(&bytes), value: Some(&value), expires_at: 0 };
        let timeout = std::time::Duration::from_secs(60);
        cache.put_many_waiting(&[entry], timeout, |_, why| panic!("{why:?}"));
    }
    if tier == Tier::Flash {
        cache.flush().unwrap();
    }
}

/// The most batches that are looked up.
const BATCHES_MAX: usize = 300;

/// Looks keys up with `look_up`, in batches of `batch` keys; `count` counts the allocations.
fn measure(cache: &Cache, batch: usize, count: fn() -> i64, mut look_up: impl FnMut(&[Key<'_>])) -> PerBatch {
    // In an order of their own; every other one is not there.
    let bytes: Vec<[u8; 8]> = (0..2 * KEYS).map(|i| (i * 7919 % (2 * KEYS)).to_le_bytes()).collect();
    let keys: Vec<Key<'_>> = bytes.iter().map(|bytes| cache.key(bytes)).collect();
    let batches = keys.chunks_exact(batch).take(BATCHES_MAX);
    // The first rounds grow the scratch space.
    for _ in 0..2 {
        batches.clone().for_each(&mut look_up);
    }
    let (number, reads, before) = (batches.len() as f64, cache.stats().reads, count());
    batches.for_each(&mut look_up);
    let allocations = (count() - before) as f64 / number;
    PerBatch { allocations, reads: (cache.stats().reads - reads) as f64 / number }
}

/// The ways to look a batch up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Driver {
    /// `contains`, of one key.
    Map,
    Blocking,
    Parallel,
    Polled,
}

/// Allocations of so many batches, and the reads that they made, per batch.
#[derive(Debug)]
struct PerBatch {
    allocations: f64,
    reads: f64,
}

fn run(cache: &Cache, engine: Engine, driver: Driver, batch: usize) -> PerBatch {
    let found = AtomicU64::new(0);
    let note = |outcome: Outcome<'_>| {
        if let Outcome::Hit { value, .. } = outcome {
            found.fetch_add(u64::from(!value.is_empty()), Ordering::Relaxed);
        }
    };
    let mut io = Io::with_engine(engine);
    let per_batch = match driver {
        Driver::Map => measure(cache, 1, allocations_by_this_thread, |keys| {
            found.fetch_add(u64::from(cache.contains(keys[0].bytes())), Ordering::Relaxed);
        }),
        Driver::Blocking => measure(cache, batch, allocations_by_this_thread, |keys| {
            cache.get_many(&mut io, keys, NOW, |_, outcome| note(outcome));
        }),
        Driver::Parallel => measure(cache, batch, allocations, |keys| {
            let sink = |_, outcome: Outcome<'_>| note(outcome);
            cache.get_many_parallel(&mut io, keys, NOW, [sink, sink]);
        }),
        Driver::Polled => {
            let mut pending = Pending::with_engine(cache, engine);
            measure(cache, batch, allocations_by_this_thread, |keys| {
                cache.begin_many(&mut pending, keys, NOW, |i| i as u64, |_, outcome| note(outcome));
                while !pending.is_empty() {
                    cache.poll(&mut pending, NOW, |_, outcome| note(outcome));
                }
            })
        }
    };
    assert!(found.into_inner() > 100, "{driver:?}: keys are found");
    per_batch
}

/// Opens and fills a cache of `tier`, and passes it on.
fn with_cache(tier: Tier, compression: Compression, partitions: u64, then: impl FnOnce(&Cache)) {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), tier);
    options.compression = compression;
    options.flash.as_mut().unwrap().partitions = partitions;
    let cache = Cache::open(options).unwrap();
    fill(&cache, tier);
    then(&cache);
    let stats = cache.stats();
    let hits = [stats.hits_memory, stats.hits_buffer, stats.hits_flash];
    let others: u64 = hits.iter().sum::<u64>() - hits[tier as usize];
    assert_eq!((others, hits[tier as usize] > 0), (0, true), "{tier:?}: {stats:?}");
}

/// Engines that read on the calling thread.
fn engines() -> Vec<Engine> {
    if Io::with_engine(Engine::Ring).engine() == Engine::Ring {
        return vec![Engine::Ring, Engine::Plain];
    }
    skip::skipped("no io_uring: only reads one after the other are counted");
    vec![Engine::Plain]
}

const TIERS: [Tier; 3] = [Tier::Memory, Tier::Buffer, Tier::Flash];

#[test]
fn lookups_allocate_nothing() {
    for (tier, compression) in TIERS
        .into_iter()
        .flat_map(|tier| [(tier, Compression::None), (tier, Compression::Zstd), (tier, Compression::Lz4)])
    {
        with_cache(tier, compression, 1, |cache| {
            for engine in engines() {
                for batch in [1, 64, 1000] {
                    for driver in [Driver::Blocking, Driver::Map] {
                        let PerBatch { allocations, .. } = run(cache, engine, driver, batch);
                        assert_eq!(
                            allocations, 0.0,
                            "{tier:?} {compression:?} {engine:?} {driver:?} {batch}"
                        );
                    }
                    let PerBatch { allocations, .. } = run(cache, engine, Driver::Polled, batch);
                    // Lists of the keys that wait for a read grow still, for reads complete in another order each time.
                    let growing = if tier == Tier::Flash { batch as f64 / 50.0 } else { 0.0 };
                    assert!(
                        allocations <= growing,
                        "{tier:?} {compression:?} {engine:?} {batch}: {allocations}"
                    );
                }
            }
        });
    }
}

/// The lists of a partition's keys and of their places in the batch; one key needs none.
#[test]
fn a_batch_over_several_partitions_allocates_two_lists() {
    for tier in TIERS {
        with_cache(tier, Compression::None, 4, |cache| {
            for (batch, lists) in [(1, 0.0), (64, 2.0), (1000, 2.0)] {
                let PerBatch { allocations, .. } = run(cache, engines()[0], Driver::Blocking, batch);
                assert_eq!(allocations, lists, "{tier:?} {batch}");
            }
        });
    }
}

/// The task of the helping thread, and what the two threads exchange: nothing that grows with the batch's keys.
#[test]
fn two_threads_allocate_some_lists_for_a_batch() {
    for tier in TIERS {
        with_cache(tier, Compression::None, 1, |cache| {
            for batch in [1000, 2 * KEYS as usize] {
                let PerBatch { allocations, .. } = run(cache, engines()[0], Driver::Parallel, batch);
                assert!(allocations <= 50.0, "{tier:?} {batch}: {allocations}");
            }
        });
    }
}

/// Where io_uring is refused: the file is handed to the pool, and each read is answered over a channel.
#[test]
fn the_pool_allocates_a_little_for_each_read() {
    for driver in [Driver::Blocking, Driver::Polled] {
        with_cache(Tier::Flash, Compression::None, 1, |cache| {
            for batch in [1, 64, 1000] {
                let PerBatch { allocations, reads } = run(cache, Engine::Pool, driver, batch);
                assert!(allocations <= 4.0 + 3.0 * reads, "{driver:?} {batch}: {allocations}, {reads} reads");
            }
        });
    }
}
