//! Events between the append of a put's entries and their publication.

use crate::limits::DEFAULT_MEMORY_FOLDER;
use crate::skip::skipped;
use crate::{Cache, Engine, Entry, FlashOptions, Io, Key, KeyHasher, Options, Outcome};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A long put is published at its end; by then the flusher may have emptied slots of its first segments for later ones.
#[test]
fn what_the_ring_passed_before_it_was_published_is_not_published() {
    const SEGMENTS: usize = 64;
    const HASH_SEED: u64 = 1;
    // A put publishes its entries shard by shard, in the order of the hashes.
    let bytes: Vec<[u8; 8]> = (0..1_008u64).map(u64::to_le_bytes).collect();
    let hasher = KeyHasher::with_seed(HASH_SEED);
    let keys: Vec<Key<'_>> = bytes.iter().map(|key| hasher.key(key)).collect();
    let mut by_hash = keys[..1_000].to_vec();
    by_hash.sort_by_key(|key| key.hash());
    let gate = by_hash[0];
    for blocks in [1, 16] {
        let folder = tempfile::tempdir().unwrap();
        let mut flash = FlashOptions::new(folder.path().join("c"), SEGMENTS as u64 * blocks * 512);
        (flash.block_size, flash.write_buffer_size, flash.hash_seed) = (512, blocks * 512, Some(HASH_SEED));
        let cache = Cache::open(Options { flash: Some(flash), ..Options::default() }).unwrap();
        // Each entry fills a segment, all together the file; the gate is published first.
        let value = vec![7; 300 * blocks as usize];
        let batch: Vec<Entry<'_>> = by_hash[1_001 - SEGMENTS..]
            .iter()
            .chain([&gate])
            .map(|key| Entry { key: *key, value: Some(&value), expires_at: 0 })
            .collect();
        std::thread::scope(|scope| {
            let shard = cache.partitions[0].shared.shard(gate.hash());
            let put = scope.spawn(|| cache.put_many(&batch));
            // Meanwhile the flusher writes what is full and empties slots.
            await_written(&cache, SEGMENTS as u64 / 2);
            std::thread::sleep(Duration::from_millis(100));
            assert!(!put.is_finished(), "it waits for the lock of the shard");
            drop(shard);
        });
        // Overwrites the emptied slots.
        for key in &keys[1_000..] {
            // The flusher may be behind with emptying the next slot.
            let entry = Entry { key: *key, value: Some(&value), expires_at: 0 };
            cache.put_many_waiting(&[entry], Duration::from_secs(60), |_, why| panic!("{why}"));
            cache.flush().unwrap();
        }
        assert_eq!(cache.stats().puts_dropped, 0);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let entries = cache.stats().entries;
            let mut found = 0;
            cache.get_many(&mut Io::with_engine(Engine::Plain), &keys, 1, |_, outcome| {
                found += u64::from(matches!(outcome, Outcome::Hit { .. }));
            });
            if entries == found {
                break;
            }
            // The flusher may be emptying slots.
            assert!(
                Instant::now() < deadline,
                "{blocks} blocks: the index has {entries} entries, of which {found} can be found"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The number of segments that a cache has written. The cache's own statistics wait for the shards.
fn written(cache: &Cache) -> u64 {
    cache.partitions[0].shared.flash.as_ref().unwrap().log.segments_written()
}

/// Waits until a cache has written so many segments.
fn await_written(cache: &Cache, segments: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while written(cache) < segments {
        assert!(Instant::now() < deadline, "{segments} segments are full and are written");
        std::thread::yield_now();
    }
}

fn files(folders: &[&Path]) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// A kill during a batch longer than a segment, when segments of it are on the device and RAM still has the older
/// state.
#[test]
fn after_a_kill_in_a_long_batch_each_start_finds_the_same() {
    const KEYS: u64 = 40;
    const SEGMENT: u64 = 16 << 10;
    let Ok(memory) = tempfile::tempdir_in(DEFAULT_MEMORY_FOLDER) else {
        return skipped("a folder on tmpfs");
    };
    let folder = tempfile::tempdir().unwrap();
    let mut flash = FlashOptions::new(folder.path().join("c"), 64 * SEGMENT);
    (flash.block_size, flash.write_buffer_size) = (512, SEGMENT);
    flash.memory_folder = Some(memory.path().to_owned());
    let options = Options { flash: Some(flash), memory_bytes: 1 << 20, ..Options::default() };
    let open = || Cache::open(options.clone()).unwrap();
    let cache = open();
    let names: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let put = |cache: &Cache, version: u8| {
        let value = [version; 1000];
        let of = |name| Entry { key: cache.key(name), value: Some(&value), expires_at: 0 };
        let entries: Vec<Entry<'_>> = names.iter().map(|name| of(name)).collect();
        cache.put_many(&entries);
    };
    put(&cache, 1);
    cache.flush().unwrap();
    let before = written(&cache);
    let first = names.iter().map(|name| cache.key(name)).min_by_key(|key| key.hash()).unwrap();
    let left = std::thread::scope(|scope| {
        let shard = cache.partitions[0].shared.shard(first.hash());
        let putting = scope.spawn(|| put(&cache, 2));
        await_written(&cache, before + 2);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!putting.is_finished(), "it waits for the lock of the shard");
        let left = files(&[folder.path(), memory.path()]);
        drop(shard);
        left
    });
    cache.close().unwrap();
    for (path, bytes) in left {
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let found = |cache: &Cache| {
        let keys: Vec<Key<'_>> = names.iter().map(|name| cache.key(name)).collect();
        let mut found = vec![0; keys.len()];
        cache.get_many(&mut Io::with_engine(Engine::Plain), &keys, 1, |i, outcome| {
            if let Outcome::Hit { value, .. } = outcome {
                found[i] = value[0];
            }
        });
        found
    };
    let cache = open();
    let after_the_kill = found(&cache);
    assert!(!after_the_kill.contains(&0), "{after_the_kill:?}");
    cache.close().unwrap();
    // RAM has nothing of the batch any more.
    assert_eq!(found(&open()), after_the_kill);
}
