//! A stop of a DRAM-first cache whose device is slow or refuses writes loses no more than a kill would.

mod common;

#[path = "../../log/tests/common/gated.rs"]
mod gated;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use common::{get_version as get, options};
use gated::GatedDevice;
use granary_cache::admission::Admission;
use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use granary_cache::{Cache, Entry, Io, MemoryDevice, Options, Outcome, testing};
use granary_log::device::{Fault, Faults, FaultyDevice};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const KEYS: u64 = 2000;

/// 64 segments of 64 KiB.
const FILE_SIZE: u64 = 4 << 20;

/// DRAM first, with RAM for all entries, in files in `memory`.
fn dram_first(folder: &Path, memory: Option<&Path>) -> Options {
    let mut options = options(folder, 64, 128, 4 << 20);
    let flash = options.flash.as_mut().unwrap();
    flash.admission = Admission::Probability(1.0);
    flash.memory_folder = memory.map(Path::to_owned);
    options
}

fn put(cache: &Cache) {
    for key in 0..KEYS {
        let mut value = [0x5A; 400];
        value[..8].copy_from_slice(&key.to_le_bytes());
        let key = key.to_le_bytes();
        let entry = Entry { key: cache.key(&key), value: Some(&value), expires_at: 0 };
        assert!(cache.put_many(&[entry]).is_empty());
    }
}

fn found(cache: &Cache) -> u64 {
    (0..KEYS).filter(|key| get(cache, *key) == Some(*key)).count() as u64
}

fn memory_folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(DEFAULT_MEMORY_FOLDER).ok();
    if folder.is_none() {
        skip::skipped("a folder on tmpfs");
    }
    folder
}

type Faulty = Arc<FaultyDevice<MemoryDevice>>;

fn open(device: &Faulty, options: &Options) -> Cache {
    Cache::open_on(Box::new(Arc::clone(device)), options.clone()).unwrap()
}

/// A device, and a cache on it that was stopped while the device refused all writes, or one in so many; then it takes
/// writes again.
fn stopped_while_refusing(options: &Options, chance: u32) -> (Faulty, Result<(), granary_cache::Error>) {
    let device = Arc::new(FaultyDevice::new(MemoryDevice::new(FILE_SIZE), 512, Faults::default()));
    let cache = open(&device, options);
    put(&cache);
    let chances = vec![(Fault::Enospc, chance)];
    device.set_faults(Faults { chances, ..Faults::default() });
    let closed = cache.close();
    assert!(device.struck() > 0);
    device.set_faults(Faults::default());
    (device, closed)
}

#[test]
fn what_the_device_refuses_stays_where_a_kill_leaves_it() {
    let (folder, Some(memory)) = (tempfile::tempdir().unwrap(), memory_folder()) else { return };
    let options = dram_first(folder.path(), Some(memory.path()));
    let (device, closed) = stopped_while_refusing(&options, 65_536);
    let error = closed.unwrap_err().to_string();
    assert!(error.contains("stays in the RAM tier's file"), "{error}");
    for _ in 0..2 {
        let cache = open(&device, &options);
        assert_eq!(found(&cache), KEYS);
        testing::validate(&cache);
        cache.close().unwrap();
        assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0, "a clean stop leaves nothing there");
    }
}

#[test]
fn what_the_device_refuses_at_times_is_saved_or_stays() {
    for chance in [65_536 / 10, 65_536 / 3] {
        let (folder, Some(memory)) = (tempfile::tempdir().unwrap(), memory_folder()) else { return };
        let options = dram_first(folder.path(), Some(memory.path()));
        let (device, closed) = stopped_while_refusing(&options, chance);
        let is_left = std::fs::read_dir(memory.path()).unwrap().count() > 0;
        assert_eq!(closed.is_err(), is_left);
        assert_eq!(found(&open(&device, &options)), KEYS, "of a stop with {closed:?}");
    }
}

/// A stop that the device refuses keeps the entries that were on flash before, whether all writes fail or one in three.
#[test]
fn what_is_refused_and_in_private_memory_is_reported_as_lost() {
    for (admission, chance) in [
        (Admission::Probability(1.0), 65_536),
        (Admission::Probability(1.0), 65_536 / 3),
        (Admission::All, 65_536),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = dram_first(folder.path(), None);
        options.flash.as_mut().unwrap().admission = admission.clone();
        let device = Arc::new(FaultyDevice::new(MemoryDevice::new(FILE_SIZE), 512, Faults::default()));
        let cache = open(&device, &options);
        // What is large goes to flash at once.
        let large = |key: u64| [&b"large"[..], &key.to_le_bytes()].concat();
        for key in 0..30 {
            assert!(cache.insert(&large(key), &[7; 40_000]).is_ok());
        }
        cache.flush().unwrap();
        put(&cache);
        let chances = vec![(Fault::Enospc, chance)];
        device.set_faults(Faults { chances, ..Faults::default() });
        let closed = cache.close();
        device.set_faults(Faults::default());
        let cache = open(&device, &options);
        let there = (0..30).filter(|key| cache.get(&large(*key)).is_some()).count();
        assert_eq!(there, 30, "{admission:?}, {chance}: {closed:?}");
        assert!(closed.is_err() || found(&cache) == KEYS, "{admission:?}, {chance}");
        testing::validate(&cache);
    }
}

/// A device that takes nothing for longer than a stop waits for room, and then goes on, gets all that is in RAM.
#[test]
fn a_slow_device_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory_folder();
    let options = dram_first(folder.path(), memory.as_ref().map(|memory| memory.path()));
    let device = GatedDevice::new(FILE_SIZE);
    let open = || Cache::open_on(Box::new(device.clone()), options.clone()).unwrap();
    let cache = open();
    // Once round the ring: slots have to be emptied from here on, which a flusher that waits does not. What is large
    // goes to flash at once.
    for key in 0..150u64 {
        let key = key.to_le_bytes();
        let large = [&b"large"[..], &key].concat();
        assert!(cache.insert(&large, &[7; 40_000]).is_ok());
        cache.flush().unwrap();
    }
    device.set_open(false);
    put(&cache);
    let gate = device.clone();
    let opens = std::thread::spawn(move || {
        std::thread::sleep(granary_cache::limits::SAVE_TIMEOUT + Duration::from_millis(500));
        gate.set_open(true);
    });
    cache.close().unwrap();
    opens.join().unwrap();
    let cache = open();
    assert_eq!(found(&cache), KEYS);
    testing::validate(&cache);
}

/// What no segment or block can hold is refused when it is put, rather than lost at the stop; without writes RAM alone
/// is the bound.
#[test]
fn what_could_never_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (long_key, long_value) = (vec![b'k'; 600], vec![7; 100_000]);
    let entries = [(&b"key"[..], &long_value[..]), (&long_key[..], &b"value"[..])];
    for (admission, is_kept) in [(Admission::Reuse, false), (Admission::None, true)] {
        let mut options = dram_first(folder.path(), None);
        options.flash.as_mut().unwrap().admission = admission;
        let cache = Cache::open(options).unwrap();
        for (key, value) in entries {
            let key = cache.key(key);
            cache.put_many(&[Entry { key, value: Some(b"old"), expires_at: 0 }]);
            let refused = cache.put_many(&[Entry { key, value: Some(value), expires_at: 0 }]);
            assert_eq!(refused.is_empty(), is_kept, "{refused:?}");
            let mut seen = None;
            cache.get_many(&mut Io::new(), &[key], 1, |_, outcome| {
                if let Outcome::Hit { value, .. } = outcome {
                    seen = Some(value.to_vec());
                }
            });
            assert_eq!(seen.as_deref(), is_kept.then_some(value), "older versions are removed");
        }
        testing::validate(&cache);
    }
}
