//! The files of RAM tiers in folders that their cache does not use any more take no RAM for long.

mod common;

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use common::{get, options, put};
use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use granary_cache::{Cache, FlashOptions, Options, testing};
use std::path::Path;

/// Tests that need a tmpfs.
fn folders() -> Option<(tempfile::TempDir, tempfile::TempDir)> {
    let Ok(memory) = tempfile::tempdir_in(DEFAULT_MEMORY_FOLDER) else {
        skip::skipped("a folder on tmpfs");
        return None;
    };
    Some((tempfile::tempdir().unwrap(), memory))
}

fn in_memory_folder(folder: &Path, memory: &Path) -> Options {
    let mut options = options(folder, 16, 64, 1 << 20);
    options.flash.as_mut().unwrap().memory_folder = Some(memory.to_owned());
    options
}

/// Whether the cache's file is in its memory folder.
fn has_file(options: &Options) -> bool {
    options.flash.as_ref().unwrap().files().unwrap().last().unwrap().exists()
}

fn kill(options: &Options) {
    let cache = Cache::open(options.clone()).unwrap();
    put(&cache, 1, 7);
    testing::abandon(cache);
    assert!(has_file(options));
}

#[test]
fn a_start_with_another_folder_removes_the_file_in_the_default_one() {
    let Some((folder, memory)) = folders() else { return };
    let before = in_memory_folder(folder.path(), Path::new(DEFAULT_MEMORY_FOLDER));
    kill(&before);
    let now = in_memory_folder(folder.path(), memory.path());
    let cache = Cache::open(now.clone()).unwrap();
    assert!(has_file(&now) && !has_file(&before));
    testing::abandon(cache);
    // By whatever path.
    let linked = folder.path().join("link");
    std::os::unix::fs::symlink(DEFAULT_MEMORY_FOLDER, &linked).unwrap();
    let linked = in_memory_folder(folder.path(), &linked);
    kill(&linked);
    assert_eq!(get(&Cache::open(linked).unwrap(), 1), Some(7));
}

#[test]
fn what_is_made_void_leaves_no_file() {
    let Some((folder, memory)) = folders() else { return };
    for memory in [memory.path(), Path::new(DEFAULT_MEMORY_FOLDER)] {
        let options = in_memory_folder(folder.path(), memory);
        kill(&options);
        let path = &options.flash.as_ref().unwrap().path;
        let cache = Cache::open(options.clone()).unwrap();
        assert!(FlashOptions::invalidate(path, Some(memory)).is_err() && has_file(&options), "it is open");
        testing::abandon(cache);
        assert!(FlashOptions::invalidate(path, Some(memory)).unwrap());
        assert!(!has_file(&options));
        assert_eq!(get(&Cache::open(options).unwrap(), 1), None);
    }
}
