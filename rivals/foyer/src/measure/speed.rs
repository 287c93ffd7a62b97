//! How long a get takes, from RAM and from the device, and how many a second there are.

use super::{print, processor_seconds};
use crate::engine::{Engine, Kind, Sizes, value};
use granary_cache::{Io, Outcome, now};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SIZES: Sizes = Sizes { memory_bytes: 32 << 20, disk_bytes: 1280 << 20 };
const SECONDS: Duration = Duration::from_secs(2);

/// Keys of entries that are on the device only, each given once: a get copies it to RAM.
struct Cold {
    keys: Vec<u64>,
    next: AtomicU64,
}

impl Cold {
    fn next(&self) -> u64 {
        self.keys[self.next.fetch_add(1, Ordering::Relaxed) as usize % self.keys.len()]
    }
}

pub async fn measure(kind: Kind, folder: &Path, value_bytes: usize, entries: u64) {
    let engine = Engine::open(kind, folder, SIZES).await;
    let begun = Instant::now();
    engine.fill((0..entries).map(|key| (key, value(key, 1, value_bytes)))).await;
    engine.settle().await;
    print(kind, value_bytes, "fill", json!({ "per_second": entries as f64 / begun.elapsed().as_secs_f64() }));

    // The last tenth may be in RAM.
    let mut keys: Vec<u64> = (0..entries * 9 / 10).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut keys);
    let cold = Arc::new(Cold { keys, next: AtomicU64::new(0) });
    memory_latency(kind, &engine, value_bytes).await;
    flash_latency(kind, &engine, &cold, value_bytes).await;
    for tasks in [1, 8, 32] {
        throughput(kind, &engine, &cold, value_bytes, tasks).await;
    }
    if let Engine::Granary(cache) = &engine {
        for threads in [1, 8, 32] {
            let (count, seconds, processor) = blocking(cache, &cold, threads);
            let values = json!({ "at_once": threads, "per_second": count / seconds, "processor_us": processor / count * 1e6 });
            print(kind, value_bytes, "flash_blocking", values);
        }
        for keys in [8, 32, 256] {
            let (count, seconds, processor) = batches(cache, &cold, keys);
            let values = json!({ "at_once": keys, "per_second": count / seconds, "processor_us": processor / count * 1e6 });
            print(kind, value_bytes, "flash_batch", values);
        }
    }
    engine.close().await;
}

/// The `part`-th part of sorted times, in microseconds.
fn at(times: &[Duration], part: f64) -> f64 {
    times[((times.len() - 1) as f64 * part) as usize].as_nanos() as f64 / 1000.0
}

async fn memory_latency(kind: Kind, engine: &Engine, value_bytes: usize) {
    let hot: Vec<u64> = (0..(SIZES.memory_bytes / value_bytes / 8) as u64).collect();
    for _ in 0..3 {
        for key in &hot {
            engine.get(*key).await;
        }
    }
    let mut times = Vec::with_capacity(200_000);
    let mut missing = 0;
    for i in 0..200_000 {
        let key = hot[i % hot.len()];
        let begun = Instant::now();
        let found = engine.get(key).await;
        times.push(begun.elapsed());
        missing += u64::from(found.is_none());
    }
    times.sort_unstable();
    let values = json!({ "p50_us": at(&times, 0.5), "p99_us": at(&times, 0.99), "missing": missing });
    print(kind, value_bytes, "memory", values);
}

async fn flash_latency(kind: Kind, engine: &Engine, cold: &Cold, value_bytes: usize) {
    let (mut times, mut missing, begun) = (Vec::new(), 0, Instant::now());
    while begun.elapsed() < SECONDS {
        let key = cold.next();
        let begun = Instant::now();
        let found = engine.get(key).await;
        times.push(begun.elapsed());
        missing += u64::from(found.is_none());
    }
    times.sort_unstable();
    let values = json!({
        "p50_us": at(&times, 0.5), "p99_us": at(&times, 0.99), "gets": times.len(), "missing": missing
    });
    print(kind, value_bytes, "flash", values);
}

async fn throughput(kind: Kind, engine: &Engine, cold: &Arc<Cold>, value_bytes: usize, tasks: usize) {
    let (begun, processor) = (Instant::now(), processor_seconds());
    let readers: Vec<_> = (0..tasks)
        .map(|_| {
            let (engine, cold) = (engine.clone(), Arc::clone(cold));
            tokio::spawn(async move {
                let (mut gets, mut missing) = (0u64, 0u64);
                while begun.elapsed() < SECONDS {
                    missing += u64::from(engine.get(cold.next()).await.is_none());
                    gets += 1;
                }
                (gets, missing)
            })
        })
        .collect();
    let (mut gets, mut missing) = (0, 0);
    for reader in readers {
        let its = reader.await.expect("it ends well");
        (gets, missing) = (gets + its.0, missing + its.1);
    }
    let (seconds, processor) = (begun.elapsed().as_secs_f64(), processor_seconds() - processor);
    let values = json!({
        "at_once": tasks, "per_second": gets as f64 / seconds, "missing": missing,
        "processor_us": processor / gets as f64 * 1e6,
    });
    print(kind, value_bytes, "flash_gets", values);
}

type Granary = granary_cache::AsyncCache<u64, Vec<u8>>;

/// Threads that wait: gets, seconds, seconds of processors.
fn blocking(cache: &Granary, cold: &Cold, threads: usize) -> (f64, f64, f64) {
    let (begun, processor, gets) = (Instant::now(), processor_seconds(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while begun.elapsed() < SECONDS {
                    cache.typed().get(&cold.next());
                    gets.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (gets.into_inner() as f64, begun.elapsed().as_secs_f64(), processor_seconds() - processor)
}

/// Batches of one thread.
fn batches(cache: &Granary, cold: &Cold, keys: usize) -> (f64, f64, f64) {
    let cache = cache.typed().cache();
    let (begun, processor, mut gets, mut io) = (Instant::now(), processor_seconds(), 0, Io::new());
    while begun.elapsed() < SECONDS {
        let keys: Vec<[u8; 8]> = (0..keys).map(|_| cold.next().to_le_bytes()).collect();
        let asked: Vec<_> = keys.iter().map(|key| cache.key(key)).collect();
        cache.get_many(&mut io, &asked, now(), |i, outcome| {
            if let Outcome::Hit { value, .. } = outcome {
                assert_eq!(value[8..16], keys[i]);
            }
            gets += 1;
        });
    }
    (f64::from(gets), begun.elapsed().as_secs_f64(), processor_seconds() - processor)
}
