//! The RAM tier of a killed process is taken over, even if that process is slow to end, or the folder was filled
//! meanwhile.

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use granary_cache::admission::Admission;
use granary_cache::{Cache, Entry, FlashOptions, Io, OpenError, Options, Outcome, testing};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const KEYS: u64 = 10_000;

/// DRAM first: entries are in RAM only.
fn options(folder: &Path, memory_folder: &Path) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 64 << 20);
    flash.admission = Admission::Reuse;
    flash.memory_folder = Some(memory_folder.to_owned());
    Options { flash: Some(flash), memory_bytes: 32 << 20, ..Options::default() }
}

/// A process that puts, and is killed.
fn put_and_abandon(options: Options) {
    put_and_abandon_behind(options, || ());
}

/// Does what [`put_and_abandon`] does, with something that happens once the cache is open.
fn put_and_abandon_behind(options: Options, then: impl FnOnce()) {
    let cache = Cache::open(options).unwrap();
    let names: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let entries: Vec<Entry<'_>> = names
        .iter()
        .map(|name| Entry { key: cache.key(name), value: Some(&[7; 100]), expires_at: 0 })
        .collect();
    then();
    assert!(cache.put_many(&entries).is_empty());
    testing::abandon(cache);
}

fn has_all(cache: &Cache) {
    let names: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let keys: Vec<_> = names.iter().map(|name| cache.key(name)).collect();
    let mut hits = 0;
    cache.get_many(&mut Io::new(), &keys, 1, |_, outcome| {
        hits += u64::from(matches!(outcome, Outcome::Hit { value, .. } if value == [7; 100]));
    });
    assert_eq!(hits, KEYS);
}

/// A folder that is a tmpfs of this size, until it is dropped.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(mib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(folder.path()).output();
        if !mount.is_ok_and(|mount| mount.status.success()) {
            skip::skipped("mounting a tmpfs");
            return None;
        }
        Some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(self.path()).status().unwrap().success());
    }
}

/// Takes the locks that an ending process still holds.
fn lock(folder: &Path, memory_folder: &Path) -> Vec<File> {
    let files = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let memory = files(memory_folder).filter(|path| path.to_string_lossy().contains("granary-"));
    let state = files(folder).filter(|path| path.to_string_lossy().ends_with(".state"));
    let paths: Vec<PathBuf> = memory.chain(state).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    let locked = paths.into_iter().map(|path| File::open(path).unwrap());
    locked.inspect(|file| flock(file, FlockOperation::NonBlockingLockExclusive).unwrap()).collect()
}

#[test]
fn a_process_that_is_slow_to_end_keeps_its_ram_tier_for_the_next() {
    let (folder, Some(memory)) = (tempfile::tempdir().unwrap(), Tmpfs::new(128)) else { return };
    put_and_abandon(options(folder.path(), memory.path()));
    let locked = lock(folder.path(), memory.path());
    let is_in_use = |opened: Result<Cache, OpenError>| matches!(opened, Err(OpenError::InUse { .. }));
    assert!(is_in_use(Cache::open(options(folder.path(), memory.path()))), "the process is still there");
    let ends = std::thread::spawn(move || {
        // Longer than the second that one lock is waited for: two are taken one after the other.
        std::thread::sleep(Duration::from_millis(1100));
        drop(locked);
    });
    // On a slow machine both waits may be over by then.
    let cache = loop {
        match Cache::open(options(folder.path(), memory.path())) {
            Err(OpenError::InUse { .. }) => {}
            opened => break opened.unwrap(),
        }
    };
    ends.join().unwrap();
    has_all(&cache);
    testing::abandon(cache);
}

/// A cache whose files were removed, and which is closed after another one was made in their place.
#[test]
fn a_cache_that_is_replaced_leaves_the_next_its_ram_tier() {
    let (folder, Some(memory)) = (tempfile::tempdir().unwrap(), Tmpfs::new(128)) else { return };
    let options = || options(folder.path(), memory.path());
    let replaced = Cache::open(options()).unwrap();
    options().flash.unwrap().remove_files().unwrap();
    put_and_abandon_behind(options(), || drop(replaced.close()));
    let cache = Cache::open(options()).unwrap();
    has_all(&cache);
    testing::abandon(cache);
}

#[test]
fn a_folder_that_others_have_filled_keeps_what_is_in_it() {
    let (folder, Some(memory)) = (tempfile::tempdir().unwrap(), Tmpfs::new(64)) else { return };
    put_and_abandon(options(folder.path(), memory.path()));
    let others = File::create(memory.path().join("others")).unwrap();
    rustix::fs::fallocate(&others, rustix::fs::FallocateFlags::empty(), 0, 50 << 20).unwrap();
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    has_all(&cache);
    testing::abandon(cache);
}
