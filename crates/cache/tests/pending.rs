//! Background lookups, against a map that remembers all states of each key while its lookups were waiting.

mod common;
#[path = "../../log/tests/common/random.rs"]
mod random;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use common::{Hooked, get, options, put, put_alone};
use granary_cache::admission::Admission;
use granary_cache::{Cache, Engine, Entry, Io, Key, Outcome, Pending, testing};
use granary_log::device::{Device, Fault, Faults, FaultyDevice, FileDevice, MemoryDevice, Space};
use random::Random;
use std::collections::HashMap;
use std::sync::Arc;

const NOW: u32 = 1_000;

/// A version; `None`: the key is deleted.
type State = Option<u64>;

/// A waiting lookup, with its key's states since it began.
struct Asked {
    key: u64,
    states: Vec<State>,
}

struct Model {
    cache: Cache,
    pending: Pending,
    random: Random,
    keys: u64,
    newest: HashMap<u64, u64>,
    versions: u64,
    asked: HashMap<u64, Asked>,
    tickets: u64,
    found: u64,
    looked_up: u64,
}

/// A value of some length that tells its key and version.
fn value(key: u64, version: u64) -> Vec<u8> {
    let len = match version % 17 {
        // Over several blocks.
        0 => 1_500,
        n => 16 + n as usize * 11,
    };
    let mut bytes = [key.to_le_bytes(), version.to_le_bytes()].concat();
    bytes.resize(len, version as u8);
    bytes
}

fn version_of(key: u64, bytes: &[u8]) -> u64 {
    let version = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    assert!(bytes == value(key, version), "key {key}: not a value that was put");
    version
}

fn check(asked: &Asked, outcome: Outcome<'_>) -> bool {
    match outcome {
        Outcome::Hit { value, .. } => {
            let version = version_of(asked.key, value);
            assert!(
                asked.states.contains(&Some(version)),
                "key {}: {version} was never true since it was asked for: {:?}",
                asked.key,
                asked.states
            );
            true
        }
        Outcome::Miss => false,
        other => panic!("{other:?}"),
    }
}

impl Model {
    fn new(cache: Cache, engine: Engine, seed: u64, keys: u64) -> Self {
        let pending = Pending::with_engine(&cache, engine);
        Self {
            cache,
            pending,
            random: Random(seed),
            keys,
            newest: HashMap::new(),
            versions: 0,
            asked: HashMap::new(),
            tickets: 0,
            found: 0,
            looked_up: 0,
        }
    }

    fn note(&mut self, key: u64, state: State) {
        for asked in self.asked.values_mut().filter(|asked| asked.key == key) {
            asked.states.push(state);
        }
        match state {
            Some(version) => self.newest.insert(key, version),
            None => self.newest.remove(&key),
        };
    }

    fn change(&mut self) {
        let keys: Vec<u64> = (0..1 + self.random.below(30)).map(|_| self.random.below(self.keys)).collect();
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        if self.random.below(8) == 0 {
            self.cache.delete_many(&bytes.iter().map(|bytes| self.cache.key(bytes)).collect::<Vec<_>>());
            keys.into_iter().for_each(|key| self.note(key, None));
            return;
        }
        let first = self.versions;
        self.versions += keys.len() as u64;
        let values: Vec<Vec<u8>> =
            keys.iter().zip(first..).map(|(key, version)| value(*key, version)).collect();
        let entries: Vec<Entry<'_>> = bytes
            .iter()
            .zip(&values)
            .map(|(key, value)| Entry { key: self.cache.key(key), value: Some(value), expires_at: 0 })
            .collect();
        self.cache.put_many(&entries);
        for (key, version) in keys.into_iter().zip(first..) {
            self.note(key, Some(version));
        }
    }

    fn begin(&mut self) {
        let keys: Vec<u64> = (0..1 + self.random.below(40)).map(|_| self.random.below(self.keys)).collect();
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let batch: Vec<Key<'_>> = bytes.iter().map(|bytes| self.cache.key(bytes)).collect();
        let states = |key: &u64| vec![self.newest.get(key).copied()];
        let (mut answers, mut begun) = (vec![0; keys.len()], vec![0; keys.len()]);
        let (mut found, first) = (0, self.tickets);
        let ticket = |i: usize| {
            begun[i] += 1;
            first + i as u64
        };
        self.cache.begin_many(&mut self.pending, &batch, NOW, ticket, |i, outcome| {
            answers[i] += 1;
            found += u64::from(check(&Asked { key: keys[i], states: states(&keys[i]) }, outcome));
        });
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(answers[i] + begun[i], 1, "every key is answered or begun");
            if begun[i] == 1 {
                self.asked.insert(first + i as u64, Asked { key: *key, states: states(key) });
            }
        }
        self.tickets += keys.len() as u64;
        self.found += found;
        self.looked_up += keys.len() as u64;
        assert_eq!(self.pending.len(), self.asked.len());
    }

    fn poll(&mut self) {
        let Self { cache, pending, asked, found, .. } = self;
        cache.poll(pending, NOW, |ticket, outcome| {
            let asked = asked.remove(&ticket).expect("every key begun has one outcome");
            *found += u64::from(check(&asked, outcome));
        });
        assert_eq!(self.pending.len(), self.asked.len());
    }

    fn step(&mut self) {
        match self.random.below(100) {
            // The device may fail.
            0 => _ = self.cache.flush(),
            1..30 => self.change(),
            30..60 => self.begin(),
            _ => self.poll(),
        }
    }

    /// Calls `poll` while `too_many` holds for the number of waiting lookups.
    fn go_on_while(&mut self, too_many: impl Fn(usize) -> bool) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while too_many(self.pending.len()) {
            self.poll();
            assert!(std::time::Instant::now() < deadline, "all that was begun ends");
            std::thread::yield_now();
        }
    }

    fn end(mut self) {
        self.go_on_while(|asked| asked > 0);
        testing::validate(&self.cache);
        assert!(self.cache.stats().hits_flash > 0);
        assert!(self.found * 20 > self.looked_up, "{} of {} were found", self.found, self.looked_up);
    }
}

fn steps() -> u64 {
    std::env::var("GRANARY_MODEL_OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(400_000) / 60
}

/// On a file that is reused all the time, with and without RAM, by each engine.
#[test]
fn outcomes_were_true_while_they_were_waited_for() {
    if Io::with_engine(Engine::Ring).engine() != Engine::Ring {
        skip::skipped("no io_uring: its reads are those of the thread pool");
    }
    let mut seed = 0;
    for engine in [Engine::Ring, Engine::Pool, Engine::Plain] {
        for (segments, blocks, memory, admission, partitions) in [
            (16, 16, 0, Admission::All, 1),
            (64, 32, 64 << 10, Admission::All, 1),
            (32, 16, 128 << 10, Admission::Probability(0.5), 1),
            (64, 16, 256 << 10, Admission::Probability(1.0), 4),
        ] {
            seed += 1;
            let folder = tempfile::tempdir().unwrap();
            let mut options = options(folder.path(), segments, blocks, memory);
            let flash = options.flash.as_mut().unwrap();
            (flash.admission, flash.partitions) = (admission, partitions);
            let mut model = Model::new(Cache::open(options).unwrap(), engine, seed, 900);
            (0..steps() / 12).for_each(|_| model.step());
            model.end();
        }
    }
}

#[test]
fn a_device_that_fails_costs_misses_only() {
    let mut struck: HashMap<String, u64> = HashMap::new();
    for seed in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let chances = Fault::ALL.into_iter().filter(|fault| *fault != Fault::Delay).map(|fault| (fault, 600));
        let faults = Faults { seed, chances: chances.collect(), crash_after_writes: None };
        let engine = [Engine::Ring, Engine::Pool, Engine::Plain][seed as usize % 3];
        let size = 32 * 16 * 512;
        let inner: Arc<dyn Device> = match engine {
            Engine::Plain => Arc::new(MemoryDevice::new(size)),
            Engine::Ring | Engine::Pool => {
                let path = folder.path().join("device");
                Arc::new(FileDevice::open_in_units(&path, size, 512, Space::Reserved).unwrap())
            }
        };
        let engine = match inner.descriptor() {
            Some(_) => Io::with_engine(engine).engine(),
            None => Engine::Plain,
        };
        if seed == 0 && engine != Engine::Ring {
            skip::skipped("no file here that a ring reads: its faults are those of other reads");
        }
        let device = Arc::new(FaultyDevice::new(inner, 512, faults));
        let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
        let cache = Cache::open_on(boxed, options(folder.path(), 32, 16, 0)).unwrap();
        // Faults of the start's reads, none of which go through the pool.
        let before = device.struck_reads(engine);
        let mut model = Model::new(cache, engine, seed, 900);
        for _ in 0..steps() / 4 {
            model.step();
            // The device is slower than this thread.
            model.go_on_while(|asked| asked > 100);
        }
        model.end();
        *struck.entry(format!("{engine:?}")).or_default() += device.struck_reads(engine) - before;
    }
    println!("faults struck reads: {struck:?}");
    assert!(struck.values().all(|struck| *struck > 10), "{struck:?}");
}

/// Begins a lookup that needs a read, which is not yet submitted.
fn begin(cache: &Cache, pending: &mut Pending, key: u64) {
    cache.begin_many(
        pending,
        &[cache.key(&key.to_le_bytes())],
        1,
        |_| key,
        |_, outcome| panic!("{outcome:?}"),
    );
    assert_eq!(pending.len(), 1);
}

fn end(cache: &Cache, pending: &mut Pending) -> Option<u64> {
    let mut found = None;
    cache.poll(pending, 1, |_, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            found = Some(u64::from_le_bytes(value.try_into().unwrap()));
        }
    });
    assert!(pending.is_empty());
    found
}

/// The block is overwritten between plan and read, once by a segment that has the key's newer version.
#[test]
fn what_moved_while_it_was_waited_for_is_looked_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let device = Hooked::new(Arc::new(MemoryDevice::new(4 * 512)));
    let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
    let cache = Cache::open_on(boxed, options(folder.path(), 4, 1, 0)).unwrap();
    let mut pending = Pending::new(&cache);
    put_alone(&cache, 1, 1);
    begin(&cache, &mut pending, 1);
    for (key, version) in [(8, 0), (1, 2), (9, 0), (10, 0)] {
        put_alone(&cache, key, version);
    }
    assert_eq!(end(&cache, &mut pending), Some(2));
    begin(&cache, &mut pending, 1);
    cache.delete_many(&[cache.key(&1u64.to_le_bytes())]);
    for key in [11, 12, 13, 14] {
        put_alone(&cache, key, 0);
    }
    assert_eq!(end(&cache, &mut pending), None);
}

/// A newer version lies in a write buffer when the older one's block has gone.
#[test]
fn what_moved_to_a_write_buffer_is_found_there() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 4, 1, 0)).unwrap();
    let mut pending = Pending::new(&cache);
    put_alone(&cache, 1, 1);
    begin(&cache, &mut pending, 1);
    for key in [8, 9, 10, 11] {
        put_alone(&cache, key, 0);
    }
    put(&cache, 1, 2);
    let mut found = None;
    while !pending.is_empty() {
        cache.poll(&mut pending, 1, |_, outcome| {
            if let Outcome::Hit { value, .. } = outcome {
                found = Some(u64::from_le_bytes(value.try_into().unwrap()));
            }
        });
    }
    assert_eq!(found, get(&cache, 1));
}

#[test]
fn lookups_given_up_harm_nothing() {
    for engine in [Engine::Ring, Engine::Pool, Engine::Plain] {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(options(folder.path(), 64, 16, 0)).unwrap();
        (0..200).for_each(|key| put(&cache, key, key));
        cache.flush().unwrap();
        for _ in 0..20 {
            let mut pending = Pending::with_engine(&cache, engine);
            for key in 0u64..200 {
                cache.begin_many(&mut pending, &[cache.key(&key.to_le_bytes())], 1, |_| key, |_, _| ());
            }
            assert!(!pending.is_empty());
            cache.poll(&mut pending, 1, |_, _| ());
            drop(pending);
        }
        drop(cache);
        testing::validate(&Cache::open(options(folder.path(), 64, 16, 0)).unwrap());
    }
}

#[test]
fn a_cache_in_ram_waits_for_nothing() {
    let options = granary_cache::Options { memory_bytes: 1 << 20, ..granary_cache::Options::default() };
    let cache = Cache::open(options).unwrap();
    put(&cache, 1, 5);
    let mut pending = Pending::new(&cache);
    assert!(pending.event().is_none());
    let mut seen = Vec::new();
    let keys = [1u64, 2].map(u64::to_le_bytes);
    let keys = [cache.key(&keys[0]), cache.key(&keys[1])];
    cache.begin_many(
        &mut pending,
        &keys,
        1,
        |_| unreachable!(),
        |i, outcome| {
            seen.push((i, matches!(outcome, Outcome::Hit { .. })));
        },
    );
    seen.sort_unstable();
    assert_eq!(seen, [(0, true), (1, false)]);
    cache.poll(&mut pending, 1, |_, _| panic!("nothing was begun"));
}
