//! Rare interleavings, forced to happen: values that were overwritten or deleted must not come back.

mod common;

use common::{HASH_SEED, Hooked, copy_as_killed, get_version as get, options};
use granary_cache::admission::Admission;
use granary_cache::limits::{HASH_BITS, SHARDS};
use granary_cache::{Cache, Entry, KeyHasher, Options, testing};
use granary_log::device::{Device, MemoryDevice};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

fn dram_first(folder: &Path, memory_bytes: u64, admission: Admission) -> Options {
    let mut options = options(folder, 64, 128, memory_bytes);
    options.flash.as_mut().expect("on flash").admission = admission;
    options
}

fn put_bytes(cache: &Cache, key: u64, version: u64, len: usize) {
    let mut value = vec![0x5A; len];
    value[..8].copy_from_slice(&version.to_le_bytes());
    cache.put_many(&[Entry { key: cache.key(&key.to_le_bytes()), value: Some(&value), expires_at: 0 }]);
}

fn put(cache: &Cache, key: u64, version: u64) {
    put_bytes(cache, key, version, 400);
}

fn delete(cache: &Cache, key: u64) {
    cache.delete_many(&[cache.key(&key.to_le_bytes())]);
}

fn hash(key: u64) -> u64 {
    KeyHasher::with_seed(HASH_SEED).hash(&key.to_le_bytes()).to_bits()
}

fn shard(key: u64) -> u64 {
    hash(key) >> (HASH_BITS - SHARDS.ilog2())
}

/// A single segment is emptied for its own reuse: deletions after that would be undone by a clean stop.
#[test]
fn one_segment_is_refused_dram_first() {
    let folder = tempfile::tempdir().unwrap();
    let open = |segments, admission| {
        let mut options = options(folder.path(), segments, 128, 256 << 10);
        options.flash.as_mut().expect("on flash").admission = admission;
        Cache::open(options)
    };
    let refused = open(1, Admission::Probability(1.0)).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|error| error.contains("at least twice write_buffer_size")));
    assert!(open(2, Admission::Probability(1.0)).is_ok());
}

/// The most hash bits that the index of such a small cache keeps: 6 for the shard and 28 below.
fn prefix(key: u64) -> u64 {
    hash(key) >> (HASH_BITS - SHARDS.ilog2() - 28)
}

/// The fewest hash bits that it keeps.
fn short_prefix(key: u64) -> u64 {
    hash(key) >> (HASH_BITS - SHARDS.ilog2() - 15)
}

/// Two keys that it cannot distinguish.
fn lookalikes() -> (u64, u64) {
    let mut seen = std::collections::HashMap::new();
    for key in 0u64.. {
        if let Some(other) = seen.insert(prefix(key), key)
            && hash(other) != hash(key)
        {
            return (other, key);
        }
    }
    unreachable!()
}

/// A look-alike is admitted and takes the place of another key, whose new version is then in RAM only; a kill follows
/// before the look-alike's segment is on the device.
#[test]
fn a_kill_does_not_bring_back_what_a_lookalike_took_over() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("first")).unwrap();
    let shape = |name: &str| dram_first(&at(name), 96 << 10, Admission::Probability(1.0));
    // In memory, for a slow disk would make entries leave RAM for good.
    let memory = Arc::new(MemoryDevice::new(64 * SEGMENT_BYTES));
    let device = Arc::new(RefusesOne::new(Arc::clone(&memory)));
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), shape("first")).unwrap();
    let (k, k2) = lookalikes();
    let mut fillers = (1_000_000u64..).filter(|f| shard(*f) == shard(k) && prefix(*f) != prefix(k));
    put(&cache, k, 1);
    put(&cache, k2, 1);
    assert_eq!(get(&cache, k2), Some(1));
    // K goes to flash; K2 was read and goes round once more.
    let deadline = Instant::now() + Duration::from_secs(60);
    while cache.stats().admitted == 0 {
        assert!(Instant::now() < deadline, "nothing leaves for flash: {:?}", cache.stats());
        put(&cache, fillers.next().unwrap(), 7);
        assert_eq!(cache.stats().left_unseen, 0);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    cache.flush().unwrap();
    let before = cache.stats();
    assert_eq!(get(&cache, k), Some(1));
    assert_eq!(cache.stats().hits_flash, before.hits_flash + 1, "K is on flash");
    // K2 goes to the write buffer, and stays there.
    let held = device.hold();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "K2 stays in RAM: {:?}", cache.stats());
        put(&cache, fillers.next().unwrap(), 7);
        std::thread::sleep(std::time::Duration::from_millis(2));
        let before = cache.stats();
        assert_eq!(get(&cache, k2), Some(1));
        if cache.stats().hits_buffer > before.hits_buffer {
            break;
        }
        // A read in RAM would make it go round for ever.
        for _ in 0..300 {
            put(&cache, fillers.next().unwrap(), 7);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    put(&cache, k, 2);
    assert_eq!(get(&cache, k), Some(2));
    let left = copy_as_killed(&at("first"), &at("second"), &memory);
    drop(held);
    testing::abandon(cache);
    let cache = Cache::open_on(Box::new(left), shape("second")).unwrap();
    assert_ne!(get(&cache, k), Some(1), "version 2 was put before the kill");
}

/// A device in memory whose writes wait in one mode, and which then refuses writes to the first segment written.
struct RefusesOne {
    memory: Arc<MemoryDevice>,
    mode: Mutex<Mode>,
    changed: Condvar,
}

enum Mode {
    Takes,
    Waits,
    Refuses(Option<u64>),
}

const SEGMENT_BYTES: u64 = 128 * 512;

impl RefusesOne {
    /// A device that takes writes.
    fn new(memory: Arc<MemoryDevice>) -> Self {
        Self { memory, mode: Mutex::new(Mode::Takes), changed: Condvar::new() }
    }

    fn turn(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
        self.changed.notify_all();
    }

    /// Has writes wait until the result is dropped.
    fn hold(&self) -> HeldWrites<'_> {
        self.turn(Mode::Waits);
        HeldWrites(self)
    }
}

/// Writes of a device that wait: not for ever, for a cache that ends in a test that fails waits for them.
struct HeldWrites<'a>(&'a RefusesOne);

impl Drop for HeldWrites<'_> {
    fn drop(&mut self) {
        self.0.turn(Mode::Takes);
    }
}

impl Device for RefusesOne {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.memory.read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> std::io::Result<()> {
        let mode = self.mode.lock().unwrap();
        let mut mode = self.changed.wait_while(mode, |mode| matches!(mode, Mode::Waits)).unwrap();
        if let Mode::Refuses(segment) = &mut *mode
            && *segment.get_or_insert(offset / SEGMENT_BYTES) == offset / SEGMENT_BYTES
        {
            return Err(std::io::Error::from_raw_os_error(5));
        }
        self.memory.write_at(offset, buffers)
    }
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The deletion of K removes its look-alike L from the index; then L is deleted, in RAM only. The device refuses the
/// segment of K's deletion, but takes the next one, which has K again.
#[test]
fn what_was_deleted_behind_a_refused_segment_stays_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryDevice::new(64 * SEGMENT_BYTES));
    let device = Arc::new(RefusesOne::new(memory));
    let open = || {
        let options = dram_first(folder.path(), 96 << 10, Admission::Probability(1.0));
        Cache::open_on(Box::new(Arc::clone(&device)), options).unwrap()
    };
    let (k, l) = lookalikes();
    let cache = open();
    put(&cache, l, 1);
    drop(cache);
    let cache = open();
    assert_eq!(cache.stats().entries, 1, "a clean stop saves it to flash");
    device.turn(Mode::Waits);
    delete(&cache, k);
    assert_eq!(get(&cache, l), None, "the index cannot tell them apart");
    delete(&cache, l);
    // No look-alikes: their deletions would be noted behind the refused segment.
    let mut seen = std::collections::HashSet::from([short_prefix(k)]);
    let mut fillers = (1_000_000u64..).filter(|filler| seen.insert(short_prefix(*filler)));
    // The segment is filled, and K goes to a later one.
    for key in fillers.by_ref().take(500).chain([k]).collect::<Vec<_>>() {
        put(&cache, key, 7);
    }
    fillers.take(500).for_each(|filler| put(&cache, filler, 7));
    assert_eq!(cache.stats().left_unseen, 0);
    device.turn(Mode::Refuses(None));
    cache.flush().expect_err("a segment is lost, now or a moment ago");
    assert!(cache.stats().write_errors > 0);
    testing::abandon(cache);
    device.turn(Mode::Takes);
    let cache = open();
    assert_eq!(get(&cache, l), None, "it was deleted before the kill");
    assert_eq!(get(&cache, k), Some(7), "it was in the segment after that");
    // Nor at the start after that.
    testing::abandon(cache);
    assert_eq!(get(&open(), l), None, "it was deleted before the kill");
}

/// Puts and deletions while another thread clears the cache; then a kill.
#[test]
fn what_is_deleted_during_a_clear_stays_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("first")).unwrap();
    let shape = |name: &str| dram_first(&at(name), 1 << 20, Admission::Probability(1.0));
    let memory = Arc::new(MemoryDevice::new(64 * 128 * 512));
    let device = Hooked::new(Arc::clone(&memory));
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), shape("first")).unwrap();
    put(&cache, 1, 1);
    drop(cache);
    let cache = Arc::new(Cache::open_on(Box::new(Arc::clone(&device)), shape("first")).unwrap());
    assert_eq!(get(&cache, 1), Some(1));
    // Something in the write buffer, which the device does not take.
    put_bytes(&cache, 2, 1, 20_000);
    let gate = Arc::new((Mutex::new(true), Condvar::new()));
    let waits = Arc::new(AtomicBool::new(false));
    let (closed, is_waiting) = (Arc::clone(&gate), Arc::clone(&waits));
    device.after_each_write(move || {
        is_waiting.store(true, Ordering::Release);
        drop(closed.1.wait_while(closed.0.lock().unwrap(), |closed| *closed).unwrap());
    });
    let clearing = {
        let cache = Arc::clone(&cache);
        std::thread::spawn(move || cache.clear().unwrap())
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while get(&cache, 1).is_some() || !waits.load(Ordering::Acquire) {
        assert!(Instant::now() < deadline, "nothing is cleared");
        std::thread::yield_now();
    }
    // In a thread, for a deletion may wait for the clear.
    let (told, done) = std::sync::mpsc::channel();
    let deleting = {
        let cache = Arc::clone(&cache);
        std::thread::spawn(move || {
            delete(&cache, 1);
            let _ = told.send(());
        })
    };
    let deleted = done.recv_timeout(std::time::Duration::from_millis(500)).is_ok();
    let open_gate = || {
        *gate.0.lock().unwrap() = false;
        gate.1.notify_all();
    };
    let mut threads = vec![clearing, deleting];
    if !deleted {
        // It waits for the clear: the kill comes after both.
        open_gate();
        threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
    // The kill.
    let copy = copy_as_killed(&at("first"), &at("second"), &memory);
    open_gate();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let killed = Cache::open_on(Box::new(copy), shape("second")).unwrap();
    assert_eq!(get(&killed, 1), None, "it was deleted before the kill");
}

/// Copies of large objects enter RAM only where there is room.
#[test]
fn ram_stays_in_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let budget = 4u64 << 20;
    let options = dram_first(folder.path(), budget, Admission::Probability(1.0));
    let cache = Cache::open_on(Box::new(MemoryDevice::new(64 * 128 * 512)), options).unwrap();
    // RAM is filled as far as the evictor allows.
    let mut key = 0;
    while cache.stats().memory_bytes < budget * 9 / 10 && key < 20_000 {
        put(&cache, key, key);
        key += 1;
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut shards = std::collections::HashSet::new();
    // Copies of all of them are more than the tenth that is free.
    let large: Vec<u64> = (1_000_000..).filter(|key| shards.insert(shard(*key))).take(SHARDS / 4).collect();
    for key in &large {
        put_bytes(&cache, *key, *key, 40_000);
        let stats = cache.stats();
        assert!(stats.memory_bytes <= budget, "{stats:?}");
        cache.flush().unwrap();
    }
    assert!(large.iter().all(|key| get(&cache, *key) == Some(*key)));
}

/// A device whose reads by the flusher wait once the gate is closed.
struct SlowFlusher {
    memory: Arc<MemoryDevice>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Device for SlowFlusher {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let armed = *self.gate.0.lock().unwrap();
        if std::thread::current().name() != Some("granary-flush") {
            if armed {
                // The flusher is first.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        } else {
            drop(self.gate.1.wait_while(self.gate.0.lock().unwrap(), |closed| *closed).unwrap());
        }
        self.memory.read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> std::io::Result<()> {
        self.memory.write_at(offset, buffers)
    }
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// At open, only one thread empties slots ahead of the writer: the flusher, which is slow here, would empty one that is
/// in use again.
#[test]
fn a_slow_flusher_at_open_brings_no_old_version_back() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryDevice::new(4 * 1024));
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let open = || {
        let device = SlowFlusher { memory: Arc::clone(&memory), gate: Arc::clone(&gate) };
        let mut options = options(folder.path(), 4, 2, 0);
        options.flash.as_mut().unwrap().reinsertion = granary_cache::Reinsertion::Read;
        Cache::open_on(Box::new(device), options).unwrap()
    };
    let cache = open();
    for (key, version) in [(1, 1), (8, 0), (9, 0), (10, 0)] {
        put_bytes(&cache, key, version, 200);
        cache.flush().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(cache);
    *gate.0.lock().unwrap() = true;
    let cache = open();
    put_bytes(&cache, 1, 2, 300);
    assert_eq!(get(&cache, 1), Some(2));
    *gate.0.lock().unwrap() = false;
    gate.1.notify_all();
    // The flusher ends what it has begun before it writes this.
    cache.flush().unwrap();
    assert_ne!(get(&cache, 1), Some(1));
}
