//! One file as several caches.

mod common;

use common::{get, options, put};
use granary_cache::{
    Cache, Engine, Entry, FlashOptions, Io, Key, Occupant, OpenError, Options, Outcome, testing,
};
use std::path::Path;

fn divided(folder: &Path, partitions: u64) -> Options {
    let mut options = options(folder, 64, 16, 0);
    options.flash.as_mut().unwrap().partitions = partitions;
    options
}

fn open(folder: &Path, partitions: u64) -> Cache {
    Cache::open(divided(folder, partitions)).unwrap()
}

fn flash(folder: &Path, partitions: u64) -> FlashOptions {
    divided(folder, partitions).flash.unwrap()
}

fn found(cache: &Cache, keys: std::ops::Range<u64>) -> usize {
    keys.filter(|key| get(cache, *key).is_some()).count()
}

#[test]
fn a_batch_is_one_whatever_partitions_its_keys_are_in() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 8);
    let bytes: Vec<[u8; 8]> = (0..3_000u64).map(u64::to_le_bytes).collect();
    let keys: Vec<Key<'_>> = bytes.iter().map(|bytes| cache.key(bytes)).collect();
    // The last entry of a key counts, even if others are put in between.
    let values: [&[u8]; 2] = [&[1], &[7; 10]];
    let of = |value| keys.iter().map(move |key| Entry { key: *key, value: Some(value), expires_at: 0 });
    cache.put_many(&Vec::from_iter(values.into_iter().flat_map(of)));
    cache.delete_many(&keys[..1_000]);
    cache.flush().unwrap();
    for parallel in [false, true] {
        let outcomes = std::sync::Mutex::new(vec![0; keys.len()]);
        let note = |i: usize, outcome: Outcome<'_>| {
            let mut outcomes = outcomes.lock().unwrap();
            outcomes[i] += match outcome {
                Outcome::Hit { value, .. } if value == [7; 10] => 1,
                Outcome::Miss => 10,
                other => panic!("{i}: {other:?}"),
            }
        };
        let mut io = Io::with_engine(Engine::Plain);
        match parallel {
            false => cache.get_many(&mut io, &keys, 1, note),
            true => cache.get_many_parallel(&mut io, &keys, 1, [note, note]),
        }
        let outcomes = outcomes.into_inner().unwrap();
        assert!(outcomes[..1_000].iter().all(|outcome| *outcome == 10));
        assert!(outcomes[1_000..].iter().all(|outcome| *outcome == 1));
    }
    let stats = cache.stats();
    assert_eq!((stats.puts, stats.entries), (6_000, 2_000));
}

#[test]
fn partitions_are_warm_after_a_stop_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 4);
    (0..2_000).for_each(|key| put(&cache, key, 1));
    drop(cache);
    let cache = open(folder.path(), 4);
    assert_eq!(found(&cache, 0..2_000), 2_000);
    // Overwritten in a buffer only: the old version must not be there after a kill.
    (0..2_000).for_each(|key| put(&cache, key, 2));
    testing::abandon(cache);
    let cache = open(folder.path(), 4);
    assert!((0..2_000).all(|key| get(&cache, key).is_none_or(|version| version == 2)));
}

/// The content under one number of partitions is void once another number was open: keys had other places there, and
/// changed.
#[test]
fn another_number_of_partitions_starts_empty_and_leaves_nothing_behind() {
    for (first, second) in [(4, 2), (4, 1), (2, 4), (1, 4), (8, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), first);
        (0..1_000).for_each(|key| put(&cache, key, 1));
        drop(cache);
        assert_eq!(flash(folder.path(), first).occupant().unwrap(), Occupant::Fitting);
        assert!(matches!(flash(folder.path(), second).occupant().unwrap(), Occupant::OtherLog(_)));
        let cache = open(folder.path(), second);
        assert_eq!(found(&cache, 0..1_000), 0, "{first} to {second}");
        put(&cache, 1, 2);
        drop(cache);
        // Exactly the files that `files` lists exist.
        let mut files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        let mut said = flash(folder.path(), second).files().unwrap();
        // Nothing is compressed.
        said.retain(|file| file.extension().is_none_or(|extension| extension != "dictionaries"));
        files.sort();
        said.sort();
        assert_eq!(files, said, "{first} to {second}");
        let cache = open(folder.path(), first);
        assert_eq!(found(&cache, 0..1_000), 0, "{first} to {second} and back");
    }
}

/// Whether the cache is open or not. After a kill the remaining files open as an empty cache, and do not count as
/// foreign.
#[test]
fn files_are_removed_whole_or_are_void() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for is_open in [true, false] {
        let cache = open(folder.path(), 4);
        (0..1_000).for_each(|key| put(&cache, key, 1));
        let held = is_open.then_some(cache);
        std::fs::write(flash(folder.path(), 4).files().unwrap()[1].with_extension("0.new"), "left").unwrap();
        flash(folder.path(), 4).remove_files().unwrap();
        assert_eq!(files(), 0);
        let next = open(folder.path(), 4);
        assert_eq!(found(&next, 0..1_000), 0);
        if let Some(held) = held {
            assert!(found(&held, 0..1_000) > 0, "it goes on");
        }
        put(&next, 1, 2);
        drop(next);
        assert_eq!(get(&open(folder.path(), 4), 1), Some(2));
        flash(folder.path(), 4).remove_files().unwrap();
    }
    let of_state = |i: usize| flash(folder.path(), 4).files().unwrap()[3 * i].clone();
    for stays in (0..4)
        .flat_map(|i| [of_state(i).with_extension("journal.1"), of_state(i).with_extension("journal.0")])
    {
        let cache = open(folder.path(), 4);
        (0..1_000).for_each(|key| put(&cache, key, 1));
        drop(cache);
        // A file that cannot be removed ends the removal where a kill might.
        std::fs::remove_file(&stays).unwrap();
        std::fs::create_dir(&stays).unwrap();
        flash(folder.path(), 4).remove_files().unwrap_err();
        std::fs::remove_dir(&stays).unwrap();
        assert_eq!(flash(folder.path(), 4).occupant().unwrap(), Occupant::Fitting, "{stays:?}");
        assert_eq!(found(&open(folder.path(), 4), 0..1_000), 0, "{stays:?}");
        flash(folder.path(), 4).remove_files().unwrap();
        assert_eq!(files(), 0);
    }
}

#[test]
fn a_file_is_divided_into_a_power_of_two_of_partitions_with_whole_segments() {
    let folder = tempfile::tempdir().unwrap();
    for (segments, partitions) in [(64, 0), (64, 3), (60, 8), (128, 128)] {
        let mut options = options(folder.path(), segments, 16, 0);
        options.flash.as_mut().unwrap().partitions = partitions;
        let error = Cache::open(options).err().unwrap();
        assert!(matches!(error, OpenError::Geometry(_) | OpenError::Invalid { .. }), "{error}");
        assert!(error.to_string().contains("partitions"), "{error}");
    }
}

#[test]
fn a_cleared_cache_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 4);
    (0..1_000).for_each(|key| put(&cache, key, 1));
    cache.flush().unwrap();
    cache.clear().unwrap();
    assert_eq!(found(&cache, 0..1_000), 0);
    testing::abandon(cache);
    assert_eq!(found(&open(folder.path(), 4), 0..1_000), 0);
}
