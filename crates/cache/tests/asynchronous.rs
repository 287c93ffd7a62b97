//! Lookups by tasks: against a map, with futures that are dropped, on devices that are slow or fail.
#![cfg(feature = "async")]

mod common;

use common::options;
use granary_cache::{AsyncCache, Cache, Error, OpenError, Refusal, TypedCache};
use granary_log::device::{Device, MemoryDevice};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

type Texts = AsyncCache<u64, String>;

fn texts(folder: &tempfile::TempDir, memory_bytes: u64) -> Texts {
    texts_of(Cache::open(options(folder.path(), 256, 64, memory_bytes)).unwrap())
}

fn texts_of(cache: Cache) -> Texts {
    AsyncCache::new(TypedCache::new(cache)).unwrap()
}

/// Long ones take several blocks.
fn text(key: u64, version: u64) -> String {
    let len = if key.is_multiple_of(5) { 2_000 } else { key as usize % 40 };
    format!("{key}:{version}:{}", "x".repeat(len))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn it_is_a_map_that_outlives_its_process() {
    const KEYS: u64 = 300;
    for memory_bytes in [0, 16 << 10, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = HashMap::new();
        for round in 0..4 {
            let cache = texts(&folder, memory_bytes);
            // A task finds its own changes at once, on the device as well.
            let tasks = (0..6).map(|task| {
                let (cache, mut own) = (cache.clone(), versions.clone());
                let mut random = fastrand::Rng::with_seed(round * 6 + task);
                tokio::spawn(async move {
                    for step in 0..400 {
                        let key = random.u64(0..KEYS / 6) * 6 + task;
                        match random.u64(0..10) {
                            0 => {
                                cache.remove(&key);
                                own.remove(&key);
                            }
                            1..4 => {
                                let version = round * 1_000 + step;
                                match cache.insert(&key, &text(key, version)) {
                                    Ok(()) => own.insert(key, version),
                                    // The device is behind: the older value is removed, too.
                                    Err(Error::Refused(Refusal::NoRoom)) => own.remove(&key),
                                    Err(error) => panic!("{error}"),
                                };
                            }
                            4 if step % 20 == 0 => cache.flush().await.unwrap(),
                            _ => {
                                let expected = own.get(&key).map(|version| text(key, *version));
                                assert_eq!(cache.get(&key).await, expected);
                                assert_eq!(cache.contains(&key).await, expected.is_some());
                            }
                        }
                    }
                    own.retain(|key, _| key % 6 == task);
                    own
                })
            });
            let tasks: Vec<_> = tasks.collect();
            versions.clear();
            for task in tasks {
                versions.extend(task.await.unwrap());
            }
            let keys: Vec<u64> = (0..KEYS).collect();
            let together = cache.get_many(&keys.iter().collect::<Vec<_>>()).await;
            for (key, found) in keys.iter().zip(together) {
                assert_eq!(found, versions.get(key).map(|version| text(*key, *version)), "{key}");
            }
            let stats = cache.typed().stats();
            assert!(stats.hits_flash > 0 || memory_bytes > 1 << 16, "{stats:?}");
            assert_eq!(stats.corrupt_blocks, 0);
            assert!(versions.len() > 100, "{} of {KEYS} are there", versions.len());
            cache.close().await.unwrap();
        }
    }
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(&Waker::from(Arc::new(Nothing))))
}

/// Waits without a runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A gate that threads pass while it is open.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set_closed(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.changed.notify_all();
    }

    /// Waits while the gate is closed, at most a minute.
    fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap();
        let limit = Duration::from_secs(60);
        drop(self.changed.wait_timeout_while(is_closed, limit, |is_closed| *is_closed).unwrap());
    }
}

/// Drops futures after one poll, during which the device is made to wait; returns how many lookups were pending then.
fn drop_futures(open: impl Fn() -> Result<Cache, OpenError>, device_waits: impl Fn(bool)) -> u32 {
    let cache = texts_of(open().unwrap());
    for key in 0..200 {
        cache.insert(&key, &text(key, 1)).unwrap();
    }
    wait(cache.flush()).unwrap();
    let mut pending = 0;
    for round in 0..20 {
        for key in 0..200 {
            device_waits(true);
            // Most are dropped while their reads are under way.
            pending += u32::from(poll_once(cache.get(&key)).is_pending());
            device_waits(false);
            if (key + round) % 10 == 0 {
                let other = (key + 77) % 200;
                assert_eq!(wait(cache.get(&other)), Some(text(other, 1)));
            }
        }
        let keys: Vec<u64> = (0..200).collect();
        let keys: Vec<&u64> = keys.iter().collect();
        let _ = poll_once(cache.get_many(&keys));
        assert!(poll_once(cache.insert_later(round)).is_ready());
    }
    for key in 0..200 {
        assert_eq!(wait(cache.get(&key)), Some(text(key, 1)));
    }
    // A flush dropped between its polls goes on, and keeps the cache open until it ends.
    let _ = poll_once(cache.flush());
    drop(cache);
    let deadline = Instant::now() + Duration::from_secs(60);
    let cache = loop {
        match open() {
            Err(OpenError::InUse { .. }) if Instant::now() < deadline => {}
            opened => break texts_of(opened.unwrap()),
        }
    };
    assert_eq!(wait(cache.get(&1_019)), Some("19".into()));
    assert_eq!(wait(cache.get(&7)), Some(text(7, 1)));
    pending
}

#[test]
fn futures_that_are_dropped_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pending = drop_futures(|| Cache::open(options(folder.path(), 256, 64, 0)), |_| ());
    println!("{pending} lookups waited");
}

#[test]
fn futures_that_are_dropped_while_they_wait_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let device = Arc::new(Odd {
        memory: MemoryDevice::new(256 * 64 * 512),
        before_read: Box::new(move || passed.pass()),
        before_write: Box::new(|| ()),
    });
    let open = || Cache::open_on(Box::new(Arc::clone(&device)), options(folder.path(), 256, 64, 0));
    let pending = drop_futures(open, |waits| gate.set_closed(waits));
    assert_eq!(pending, 20 * 200, "each lookup waited");
}

/// `close` waits for the device also if a flush whose future was dropped is still running.
#[test]
fn a_close_waits_for_a_flush_whose_future_was_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let written = Arc::new(AtomicBool::new(false));
    let gate = Arc::new(Gate::default());
    let (told, passed) = (Arc::clone(&written), Arc::clone(&gate));
    let slow = Odd {
        memory: MemoryDevice::new(256 * 64 * 512),
        before_read: Box::new(|| ()),
        before_write: Box::new(move || {
            passed.pass();
            told.store(true, Ordering::SeqCst);
        }),
    };
    let cache = Cache::open_on(Box::new(slow), options(folder.path(), 256, 64, 0)).unwrap();
    let cache = texts_of(cache);
    cache.insert(&1, &text(1, 1)).unwrap();
    written.store(false, Ordering::SeqCst);
    gate.set_closed(true);
    assert!(poll_once(cache.flush()).is_pending());
    let mut close = pin!(cache.close());
    let polled = close.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "the device takes nothing");
    let opening = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        gate.set_closed(false);
    });
    wait(close).unwrap();
    assert!(written.load(Ordering::SeqCst));
    opening.join().unwrap();
}

trait InsertLater {
    fn insert_later(&self, round: u64) -> impl Future<Output = ()>;
}

impl InsertLater for Texts {
    async fn insert_later(&self, round: u64) {
        self.insert(&(1_000 + round), &round.to_string()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn one_task_makes_a_value_for_all_that_want_it_and_threads_too() {
    let folder = tempfile::tempdir().unwrap();
    let cache = texts(&folder, 0);
    let made = Arc::new(AtomicU64::new(0));
    for key in 0..30 {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (cache, made) = (cache.clone(), Arc::clone(&made));
                tokio::spawn(async move {
                    let make = || async {
                        made.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        Ok::<_, ()>(text(key, 1))
                    };
                    cache.get_or_insert_with(&key, make).await
                })
            })
            .collect();
        let (threads_cache, threads_made) = (cache.clone(), Arc::clone(&made));
        let thread = tokio::task::spawn_blocking(move || {
            threads_cache.typed().get_or_insert_with(&key, || {
                threads_made.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
                Ok::<_, ()>(text(key, 1))
            })
        });
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(text(key, 1)));
        }
        assert_eq!(thread.await.unwrap(), Ok(text(key, 1)));
    }
    assert_eq!(made.load(Ordering::Relaxed), 30);
}

#[tokio::test]
async fn who_is_dropped_or_fails_leaves_the_others_to_make_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = texts(&folder, 16 << 10);
    let (started, has_started) = tokio::sync::oneshot::channel();
    let first = tokio::spawn({
        let cache = cache.clone();
        async move {
            let make = || async {
                started.send(()).unwrap();
                std::future::pending::<Result<String, &str>>().await
            };
            cache.get_or_insert_with(&1, make).await
        }
    });
    has_started.await.unwrap();
    let waiting: Vec<_> = ["the source is down", ""]
        .map(|error| {
            let cache = cache.clone();
            tokio::spawn(async move {
                let make = || async move {
                    tokio::task::yield_now().await;
                    if error.is_empty() { Ok("value".to_string()) } else { Err(error) }
                };
                cache.get_or_insert_with(&1, make).await
            })
        })
        .into();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    first.abort();
    let mut results = Vec::new();
    for task in waiting {
        results.push(task.await.unwrap());
    }
    assert_eq!(results, [Err("the source is down"), Ok("value".into())]);
    assert_eq!(cache.get(&1).await, Some("value".into()));
}

/// A device in memory that calls `before_read` before each read.
struct Odd {
    memory: MemoryDevice,
    before_read: Box<dyn Fn() + Send + Sync>,
    before_write: Box<dyn Fn() + Send + Sync>,
}

impl Device for Odd {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (self.before_read)();
        self.memory.read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        (self.before_write)();
        self.memory.write_at(offset, buffers)
    }
    fn sync(&self) -> io::Result<()> {
        self.memory.sync()
    }
}

fn over(folder: &tempfile::TempDir, before_read: impl Fn() + Send + Sync + 'static) -> Texts {
    let odd = Odd {
        memory: MemoryDevice::new(64 * 64 * 512),
        before_read: Box::new(before_read),
        before_write: Box::new(|| ()),
    };
    let cache = Cache::open_on(Box::new(odd), options(folder.path(), 64, 64, 0)).unwrap();
    AsyncCache::new(TypedCache::new(cache)).unwrap()
}

/// On a runtime with one thread, for every call that waits for the device: the device answers only once another task
/// was polled a hundred times.
#[tokio::test(flavor = "current_thread")]
async fn a_slow_device_holds_up_no_task() {
    let folder = tempfile::tempdir().unwrap();
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let turns = Arc::new((Mutex::new(0), Condvar::new()));
    let waited = Arc::new(AtomicU64::new(0));
    let (seen, waiting) = (Arc::clone(&turns), Arc::clone(&waited));
    let cache = over(&folder, move || {
        if !slow.load(Ordering::Relaxed) {
            return;
        }
        let now = seen.0.lock().unwrap();
        let end = *now + 100;
        let (now, _) = seen.1.wait_timeout_while(now, Duration::from_secs(60), |now| *now < end).unwrap();
        assert!(*now >= end, "a task was held up");
        waiting.fetch_add(1, Ordering::Relaxed);
    });
    cache.insert(&1, &text(1, 1)).unwrap();
    cache.insert(&5, &text(5, 1)).unwrap();
    cache.flush().await.unwrap();
    is_slow.store(true, Ordering::Relaxed);
    let done = Arc::new(AtomicBool::new(false));
    let ticks = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            while !done.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
                *turns.0.lock().unwrap() += 1;
                turns.1.notify_all();
            }
        }
    });
    assert_eq!(cache.get(&1).await, Some(text(1, 1)));
    assert_eq!(cache.get(&5).await, Some(text(5, 1)));
    assert_eq!(cache.typed().stats().hits_flash, 2);
    assert!(waited.load(Ordering::Relaxed) >= 2, "the device was waited for");
    done.store(true, Ordering::Relaxed);
    ticks.await.unwrap();
}

#[tokio::test]
async fn a_thread_that_ends_leaves_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&fails);
    let cache = over(&folder, move || assert!(!told.load(Ordering::Relaxed), "the device has a bug"));
    for key in 0..100 {
        cache.insert(&key, &text(key, 1)).unwrap();
    }
    cache.flush().await.unwrap();
    assert_eq!(cache.get(&1).await, Some(text(1, 1)));
    fails.store(true, Ordering::Relaxed);
    for key in 0..100 {
        assert_eq!(cache.get(&key).await, None);
    }
    let keys: Vec<u64> = (0..100).collect();
    assert!(cache.get_many(&keys.iter().collect::<Vec<_>>()).await.iter().all(Option::is_none));
}

#[tokio::test]
async fn without_flash_no_thread_is_needed() {
    let cache: AsyncCache =
        AsyncCache::new(TypedCache::new(Cache::builder().memory(1 << 20).open().unwrap())).unwrap();
    cache.insert(b"key", &b"value".to_vec()).unwrap();
    assert_eq!(poll_once(cache.get(b"key")), Poll::Ready(Some(b"value".to_vec())));
    assert_eq!(poll_once(cache.get(b"other")), Poll::Ready(None));
    cache.clear().await.unwrap();
    assert_eq!(cache.get(b"key").await, None);
    cache.close().await.unwrap();
}

/// Values longer than a block are read at once, those longer than any read in parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_all_lengths_are_read() {
    const LENGTHS: [usize; 9] = [0, 1, 4_000, 4_090, 5_000, 60_000, 128 << 10, 140_000, 700_000];
    let folder = tempfile::tempdir().unwrap();
    let open = || Cache::builder().flash(folder.path().join("c"), 64 << 20).open().unwrap();
    let value = |key: usize| vec![key as u8; LENGTHS[key % LENGTHS.len()]];
    let cache: AsyncCache<u32, Vec<u8>> = AsyncCache::new(TypedCache::new(open())).unwrap();
    for key in 0..45 {
        while cache.insert(&(key as u32), &value(key)).is_err() {
            cache.flush().await.unwrap();
        }
    }
    cache.close().await.unwrap();
    let cache: AsyncCache<u32, Vec<u8>> = AsyncCache::new(TypedCache::new(open())).unwrap();
    let tasks = (0..45).map(|key| {
        let cache = cache.clone();
        (key, tokio::spawn(async move { cache.get(&(key as u32)).await }))
    });
    for (key, task) in tasks.collect::<Vec<_>>() {
        assert!(task.await.unwrap() == Some(value(key)), "{key}");
    }
    let keys: Vec<u32> = (0..45).collect();
    let keys: Vec<&u32> = keys.iter().collect();
    let expected: Vec<_> = (0..45).map(|key| Some(value(key))).collect();
    assert!(cache.get_many(&keys).await == expected);
    assert!(cache.typed().get_many(&keys) == expected, "by a thread that waits");
    let stats = cache.typed().stats();
    assert_eq!((stats.hits_flash, stats.corrupt_blocks), (3 * 45, 0));
}

/// Tasks have batches and lifetimes, as threads do.
#[tokio::test]
async fn batches_and_lifetimes() {
    let folder = tempfile::tempdir().unwrap();
    let cache = texts(&folder, 0);
    let (one, two) = (text(1, 1), text(2, 1));
    assert!(cache.insert_many(&[(&1, &one), (&2, &two)]).is_empty());
    let make = |ttl| cache.get_or_insert_with_ttl(&3, ttl, || async { Ok::<_, ()>(text(3, 1)) });
    assert_eq!(make(Duration::from_secs(1)).await, Ok(text(3, 1)));
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(cache.get_many(&[&1, &2, &3]).await, [Some(one), Some(two), None]);
    assert_eq!(make(Duration::from_secs(3_600)).await, Ok(text(3, 1)));
    cache.remove_many(&[&1, &2]);
    assert_eq!(cache.get_many(&[&1, &2, &3]).await, [None, None, Some(text(3, 1))]);
}
