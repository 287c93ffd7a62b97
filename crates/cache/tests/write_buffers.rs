//! Write buffers in memory that outlives the process: after a kill their entries and deletions are there.

mod common;

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use common::{get, put};
use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use granary_cache::{Cache, FlashOptions, Options, PowerLoss, testing};
use granary_log::device::{Device, MemoryDevice};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

const KEYS: u64 = 30_000;

/// RAM for a small part of the entries, and flash for all.
fn options(folder: &Path, memory: &Path) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 32 << 20);
    flash.memory_folder = Some(memory.to_owned());
    Options { flash: Some(flash), memory_bytes: 256 << 10, ..Options::default() }
}

fn folders() -> Option<(tempfile::TempDir, tempfile::TempDir)> {
    let Ok(memory) = tempfile::tempdir_in(DEFAULT_MEMORY_FOLDER) else {
        skip::skipped("a folder on tmpfs");
        return None;
    };
    Some((tempfile::tempdir().unwrap(), memory))
}

/// Puts all keys, overwrites some, and deletes some of each kind.
fn change(cache: &Cache) {
    (0..KEYS).for_each(|key| put(cache, key, 1));
    (0..KEYS).step_by(3).for_each(|key| put(cache, key, 2));
    (0..KEYS).step_by(5).for_each(|key| delete(cache, key));
}

fn delete(cache: &Cache, key: u64) {
    cache.delete_many(&[cache.key(&key.to_le_bytes())]);
}

fn expected(key: u64) -> Option<u64> {
    match key {
        key if key.is_multiple_of(5) => None,
        key if key.is_multiple_of(3) => Some(2),
        _ => Some(1),
    }
}

#[test]
fn a_kill_costs_nothing_of_what_is_in_write_buffers() {
    let Some((folder, memory)) = folders() else { return };
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    change(&cache);
    assert!(cache.stats().memory_entries < KEYS / 3, "RAM has few of them");
    // Except for a few keys displaced by look-alikes, all puts are there.
    let before: Vec<Option<u64>> = (0..KEYS).map(|key| get(&cache, key)).collect();
    let as_put = (0..KEYS).zip(&before).filter(|(key, found)| expected(*key) == **found).count();
    assert!(as_put as u64 * 1000 >= KEYS * 999, "{as_put} of {KEYS}");
    testing::abandon(cache);
    for round in 0..3 {
        let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
        testing::validate(&cache);
        let found: Vec<Option<u64>> = (0..KEYS).map(|key| get(&cache, key)).collect();
        let others = found.iter().zip(&before).filter(|(now, before)| now != before);
        let (lost, wrong): (Vec<_>, Vec<_>) = others.partition(|(now, _)| now.is_none());
        assert!(wrong.is_empty(), "round {round}: {wrong:?}");
        // A key displaced by a look-alike was found in RAM, and may have left it by chance.
        assert!(lost.len() <= 3, "round {round}: {lost:?}");
        if round > 0 {
            assert_eq!(cache.stats().bytes_written, 0, "what was written once is not written again");
        }
        testing::abandon(cache);
    }
    Cache::open(options(folder.path(), memory.path())).unwrap().close().unwrap();
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0, "a clean stop leaves nothing there");
}

#[test]
fn without_them_what_they_had_is_lost_and_nothing_older_is_there() {
    let Some((folder, memory)) = folders() else { return };
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    change(&cache);
    testing::abandon(cache);
    for file in std::fs::read_dir(memory.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    let mut lost = 0;
    for key in 0..KEYS {
        let found = get(&cache, key);
        assert!(found.is_none() || found == expected(key), "key {key}: {found:?}");
        lost += u64::from(found != expected(key));
    }
    assert!(lost > 0, "something was in write buffers only");
}

/// The cache was opened without the folder meanwhile, so the files there are out of date.
#[test]
fn what_is_out_of_date_is_not_taken_over() {
    let Some((folder, memory)) = folders() else { return };
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    change(&cache);
    testing::abandon(cache);
    let mut without = options(folder.path(), memory.path());
    without.flash.as_mut().unwrap().memory_folder = None;
    let cache = Cache::open(without).unwrap();
    (0..KEYS).for_each(|key| delete(&cache, key));
    testing::abandon(cache);
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    assert_eq!((0..KEYS).filter(|key| get(&cache, *key).is_some()).count(), 0);
}

/// A device whose writes wait while it is shut, and whose syncs panic from a number on.
struct Gated {
    memory: MemoryDevice,
    is_shut: Mutex<bool>,
    opened: Condvar,
    has_waited: AtomicBool,
    syncs_left: AtomicU32,
}

impl Gated {
    fn of(bytes: &[u8], syncs: u32) -> Arc<Self> {
        let memory = MemoryDevice::new(bytes.len() as u64);
        memory.write_at(0, &[bytes]).unwrap();
        let (is_shut, opened, has_waited) = Default::default();
        Arc::new(Self { memory, is_shut, opened, has_waited, syncs_left: syncs.into() })
    }

    fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.opened.notify_all();
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.memory.size() as usize];
        self.memory.read_at(0, &mut bytes).unwrap();
        bytes
    }
}

impl Device for Gated {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.memory.read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> std::io::Result<()> {
        let mut is_shut = self.is_shut.lock().unwrap();
        while *is_shut {
            self.has_waited.store(true, Ordering::Release);
            is_shut = self.opened.wait(is_shut).unwrap();
        }
        self.memory.write_at(offset, buffers)
    }
    fn sync(&self) -> std::io::Result<()> {
        let left = self.syncs_left.load(Ordering::Acquire).checked_sub(1).expect("a kill at this sync");
        self.syncs_left.store(left, Ordering::Release);
        Ok(())
    }
}

fn files(folders: &[&Path]) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    paths.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// A start without the folder counts the write buffers as lost; if it is killed early, no later start uses them either.
#[test]
fn a_start_without_them_that_is_killed_leaves_none() {
    const SEGMENT: u64 = 16 * 512;
    let Some((folder, memory)) = folders() else { return };
    let mut options = options(folder.path(), memory.path());
    let flash = options.flash.as_mut().unwrap();
    (flash.file_size, flash.write_buffer_size, flash.block_size) = (8 * SEGMENT, SEGMENT, 512);
    flash.power_loss = PowerLoss::ServeOlder;
    let open = |device: &Arc<Gated>, options: &Options| {
        Cache::open_on(Box::new(Arc::clone(device)), options.clone()).unwrap()
    };
    let device = Gated::of(&[0; 8 * SEGMENT as usize], u32::MAX);
    let cache = open(&device, &options);
    // The oldest segments are reused at once.
    for key in [0, 2, 1] {
        put(&cache, key, 7);
        cache.flush().unwrap();
    }
    device.shut(true);
    let dropped = cache.stats().puts_dropped;
    for key in 1_000.. {
        put(&cache, key, 1);
        if cache.stats().puts_dropped > dropped {
            break;
        }
    }
    while !device.has_waited.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    // The deletion waits for room: the journal has it for the segment after all those in write buffers.
    delete(&cache, 1);
    assert_eq!(get(&cache, 1), None);
    let (left, bytes) = (files(&[folder.path(), memory.path()]), device.bytes());
    device.shut(false);
    cache.close().unwrap();
    for (path, bytes) in left {
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    let mut without = options.clone();
    without.flash.as_mut().unwrap().memory_folder = None;
    let device = Gated::of(&bytes, 1);
    let killed = std::panic::AssertUnwindSafe(|| open(&device, &without));
    assert!(std::panic::catch_unwind(killed).is_err(), "it is killed at the second sync");
    let device = Gated::of(&device.bytes(), u32::MAX);
    let cache = open(&device, &options);
    assert_eq!(get(&cache, 1), None, "its deletion was answered");
    testing::abandon(cache);
}

/// Repeated puts of a few keys that find no room: the waiting deletions are bounded by the number of keys.
#[test]
fn puts_that_find_no_room_wait_once_each() {
    const SEGMENT: u64 = 16 * 512;
    let folder = tempfile::tempdir().unwrap();
    let options = common::options(folder.path(), 16, 16, 0);
    let device = Gated::of(&[0; 16 * SEGMENT as usize], u32::MAX);
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), options.clone()).unwrap();
    (0..10).for_each(|key| put(&cache, key, 1));
    cache.flush().unwrap();
    device.shut(true);
    for key in 1_000.. {
        put(&cache, key, 1);
        if cache.stats().puts_dropped > 0 {
            break;
        }
    }
    let journals = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap());
        let journals = files.filter(|file| file.file_name().to_string_lossy().contains("journal"));
        journals.map(|file| file.metadata().unwrap().len()).sum::<u64>()
    };
    (0..10).for_each(|key| put(&cache, key, 2));
    let before = journals();
    for version in 3..1_000 {
        (0..10).for_each(|key| put(&cache, key, version));
        delete(&cache, version % 10);
    }
    let after = journals();
    device.shut(false);
    assert_eq!(after, before, "the journal has them");
    cache.flush().unwrap();
    (0..10).for_each(|key| assert_eq!(get(&cache, key), None));
    testing::abandon(cache);
    let cache = Cache::open_on(Box::new(device), options).unwrap();
    (0..10).for_each(|key| assert_eq!(get(&cache, key), None));
    cache.close().unwrap();
}

/// A lost segment's changes are in the journal, and a later segment is found: keys put again there stay.
#[test]
fn what_was_put_behind_a_lost_segment_stays() {
    const SEGMENTS: u64 = 16;
    const SEGMENT: u64 = 16 * 512;
    let folder = tempfile::tempdir().unwrap();
    let options = common::options(folder.path(), SEGMENTS, 16, 0);
    let device = Gated::of(&[0; (SEGMENTS * SEGMENT) as usize], u32::MAX);
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), options.clone()).unwrap();
    (0..10).for_each(|key| common::put_alone(&cache, key, 1));
    device.shut(true);
    put(&cache, 1, 2);
    put(&cache, 2, 2);
    put(&cache, 3, 2);
    (1_000..1_000 + 16 * 20).for_each(|key| put(&cache, key, 1));
    put(&cache, 1, 3);
    delete(&cache, 2);
    let left = files(&[folder.path()]);
    device.shut(false);
    cache.flush().unwrap();
    let mut bytes = device.bytes();
    testing::abandon(cache);
    // The eleventh segment is lost.
    let slot = (11 * SEGMENT) as usize;
    bytes[slot..slot + SEGMENT as usize].fill(0);
    for (path, bytes) in left {
        std::fs::write(&path, bytes).unwrap();
    }
    let mut device = Gated::of(&bytes, u32::MAX);
    for round in 0..4 {
        let cache = Cache::open_on(Box::new(Arc::clone(&device)), options.clone()).unwrap();
        let versions: Vec<_> = (0..4).map(|key| get(&cache, key)).collect();
        assert_eq!(versions, [Some(1), Some(3), None, None], "round {round}");
        if round % 2 == 0 {
            testing::abandon(cache)
        } else {
            cache.close().unwrap()
        }
        device = Gated::of(&device.bytes(), u32::MAX);
    }
}
