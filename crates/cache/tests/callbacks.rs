//! What a caller passes to the cache, to be called with outcomes, entries or refusals, may use the cache again, also
//! for the same keys: no lock is held meanwhile. So may the wakers of tasks.

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

/// Does what a callback does that was called for `key`: it gets, removes and puts that key and a neighbour.
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

/// Wakers of tasks, whose clones and drops are code of the task's runtime.
#[cfg(feature = "async")]
mod wakers {
    use super::{options, without_deadlock};
    use granary_cache::{AsyncCache, Cache, TypedCache};
    use std::convert::Infallible;
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

    type Texts = AsyncCache<u64, String>;

    /// The work that the clones and drops of a waker call while it is armed.
    struct Callback {
        is_armed: AtomicBool,
        work: Box<dyn Fn() + Send + Sync>,
    }

    impl Callback {
        fn arm(&self, is_armed: bool) {
            self.is_armed.store(is_armed, Ordering::SeqCst);
        }

        fn call(&self) {
            if self.is_armed.load(Ordering::SeqCst) {
                (self.work)();
            }
        }
    }

    static CALLING: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the waker has a share of this `Arc`.
        unsafe {
            (*data.cast::<Callback>()).call();
            Arc::increment_strong_count(data.cast::<Callback>());
        }
        RawWaker::new(data, &CALLING)
    }

    /// Calls nothing: it is the cache's thread that wakes, and must not wait for itself.
    unsafe fn wake(data: *const ()) {
        // SAFETY: it takes the waker's share.
        drop(unsafe { Arc::from_raw(data.cast::<Callback>()) });
    }

    fn wake_by_ref(_: *const ()) {}

    unsafe fn release(data: *const ()) {
        // SAFETY: it takes the waker's share.
        let callback = unsafe { Arc::from_raw(data.cast::<Callback>()) };
        callback.call();
    }

    fn waker(callback: &Arc<Callback>) -> Waker {
        let data = Arc::into_raw(Arc::clone(callback)).cast::<()>();
        // SAFETY: each waker has a share of the `Arc`, which is shared by threads.
        unsafe { Waker::from_raw(RawWaker::new(data, &CALLING)) }
    }

    /// The times at which a waker calls back.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum When {
        Cloned,
        /// It makes room for the next poll's.
        Replaced,
        /// Its future is dropped.
        Dropped,
    }

    const WHENS: [When; 3] = [When::Cloned, When::Replaced, When::Dropped];

    fn is_ready<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> bool {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Polls a future with a waker that calls `work`, and ends it; `go_on` is called meanwhile.
    fn poll_calling(
        mut future: Pin<Box<dyn Future<Output = ()> + '_>>,
        when: When,
        work: impl Fn() + Send + Sync + 'static,
        mut go_on: impl FnMut(),
    ) {
        let callback = Arc::new(Callback { is_armed: AtomicBool::new(false), work: Box::new(work) });
        let waker = waker(&callback);
        callback.arm(when == When::Cloned);
        let mut has_ended = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        callback.arm(when == When::Replaced);
        if when != When::Dropped {
            has_ended = has_ended || is_ready(&mut future);
            callback.arm(false);
            while !has_ended {
                go_on();
                std::thread::yield_now();
                has_ended = is_ready(&mut future);
            }
        }
        callback.arm(when == When::Dropped);
        drop(future);
        callback.arm(false);
    }

    #[test]
    fn of_a_task_that_reads() {
        const KEYS: u64 = 300;
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(options(folder.path(), 64, 64, 0)).unwrap();
        let cache: Texts = AsyncCache::new(TypedCache::new(cache)).unwrap();
        for key in 0..KEYS {
            cache.insert(&key, &key.to_string()).unwrap();
        }
        cache.typed().flush().unwrap();
        without_deadlock("reading", move || {
            for (key, when) in (0..KEYS).flat_map(|key| WHENS.map(|when| (key, when))) {
                let read = async { assert_eq!(cache.get(&key).await, Some(key.to_string())) };
                let shared = cache.clone();
                // By the same thread of the cache, which must not wait for this one.
                let read_again = move || {
                    let mut again: Pin<Box<dyn Future<Output = Option<String>>>> = Box::pin(shared.get(&key));
                    while !is_ready(&mut again) {
                        std::thread::yield_now();
                    }
                };
                poll_calling(Box::pin(read), when, read_again, || ());
            }
        });
    }

    #[test]
    fn of_a_task_that_waits_for_a_value_being_made() {
        without_deadlock("single flight", || {
            for when in WHENS {
                let cache = Cache::builder().memory(1 << 20).open().unwrap();
                let cache: Texts = AsyncCache::new(TypedCache::new(cache)).unwrap();
                let make = |polls: u64| async move {
                    let mut left = polls;
                    poll_fn(|_| {
                        left = left.saturating_sub(1);
                        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                    Ok::<_, Infallible>("made".to_owned())
                };
                let mut maker: Pin<Box<dyn Future<Output = ()> + '_>> =
                    Box::pin(async { drop(cache.get_or_insert_with(&7, || make(2)).await) });
                assert!(!is_ready(&mut maker), "it waits for its value");
                let waiter = async { drop(cache.get_or_insert_with(&7, || make(1)).await) };
                let shared = cache.clone();
                let change = move || shared.insert(&7, &"put".to_owned()).unwrap();
                let mut has_made = false;
                let go_on = || has_made = has_made || is_ready(&mut maker);
                poll_calling(Box::pin(waiter), when, change, go_on);
                assert_eq!(cache.typed().get(&7).as_deref(), Some("put"));
            }
        });
    }
}
