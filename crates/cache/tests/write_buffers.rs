//! Write buffers in memory that outlives the process: after a kill, what was in them only is there, deletions too.

mod common;

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use common::{get, put};
use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use granary_cache::{Cache, FlashOptions, Options};
use std::path::Path;

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
    // But for a few that lost their places to keys that look alike, what was put is there.
    let before: Vec<Option<u64>> = (0..KEYS).map(|key| get(&cache, key)).collect();
    let as_put = (0..KEYS).zip(&before).filter(|(key, found)| expected(*key) == **found).count();
    assert!(as_put as u64 * 1000 >= KEYS * 999, "{as_put} of {KEYS}");
    cache.abandon();
    for round in 0..3 {
        let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
        cache.validate();
        let wrong: Vec<u64> = (0..KEYS).filter(|key| get(&cache, *key) != before[*key as usize]).collect();
        assert!(wrong.is_empty(), "round {round}: {} keys, {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
        if round > 0 {
            assert_eq!(cache.stats().bytes_written, 0, "what was written once is not written again");
        }
        cache.abandon();
    }
    Cache::open(options(folder.path(), memory.path())).unwrap().close().unwrap();
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0, "a clean stop leaves nothing there");
}

#[test]
fn without_them_what_they_had_is_lost_and_nothing_older_is_there() {
    let Some((folder, memory)) = folders() else { return };
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    change(&cache);
    cache.abandon();
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

/// Opened without the folder meanwhile, the cache has changed behind the back of what lies there.
#[test]
fn what_is_out_of_date_is_not_taken_over() {
    let Some((folder, memory)) = folders() else { return };
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    change(&cache);
    cache.abandon();
    let mut without = options(folder.path(), memory.path());
    without.flash.as_mut().unwrap().memory_folder = None;
    let cache = Cache::open(without).unwrap();
    (0..KEYS).for_each(|key| delete(&cache, key));
    cache.abandon();
    let cache = Cache::open(options(folder.path(), memory.path())).unwrap();
    assert_eq!((0..KEYS).filter(|key| get(&cache, *key).is_some()).count(), 0);
}
