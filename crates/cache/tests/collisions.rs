//! Keys that the index cannot distinguish: noted collisions let them live side by side, and never keep an old version
//! reachable. See docs/index.md, "One version of a key".

mod common;

use common::{LOOK_ALIKES, get, options, put_alone};
use granary_cache::{Cache, testing};
use granary_log::device::MemoryDevice;
use std::path::Path;

const ONE: u64 = LOOK_ALIKES[0].0;
const TWO: u64 = LOOK_ALIKES[0].1;

/// Segments of one block.
fn open(folder: &Path, segments: u64) -> Cache {
    Cache::open_on(Box::new(MemoryDevice::new(segments * 512)), options(folder, segments, 1, 0)).unwrap()
}

#[test]
fn keys_that_look_alike_do_not_drive_each_other_out_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 64);
    put_alone(&cache, ONE, 1);
    assert_eq!(get(&cache, TWO), None, "and the cache notes where it is not");
    put_alone(&cache, TWO, 2);
    assert_eq!((get(&cache, ONE), get(&cache, TWO)), (Some(1), Some(2)));
    testing::validate(&cache);
}

#[test]
fn what_is_known_of_a_block_ends_with_its_segment() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 4);
    put_alone(&cache, ONE, 1);
    assert_eq!(get(&cache, TWO), None, "and the cache notes where it is not");
    // The ring wraps round: the key is now in the place where the collision was noted.
    (0..3).for_each(|filler| put_alone(&cache, filler, 0));
    put_alone(&cache, TWO, 1);
    put_alone(&cache, TWO, 2);
    assert_eq!(get(&cache, TWO), Some(2));
}
