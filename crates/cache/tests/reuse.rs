//! What was on the device before is neither shown nor remembered once its segment is reused.

mod common;

use common::{Hooked, options, put_value_alone};
use granary_cache::{Cache, Engine, Io, Key, Outcome};
use granary_log::device::MemoryDevice;
use std::path::Path;
use std::sync::Arc;

/// Four segments of `blocks` blocks.
fn open(folder: &Path, blocks: u64) -> (Arc<Hooked>, Arc<Cache>) {
    let device = Hooked::new(Arc::new(MemoryDevice::new(4 * blocks * 512)));
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), options(folder, 4, blocks, 0));
    (device, Arc::new(cache.unwrap()))
}

#[test]
fn the_index_forgets_what_a_reused_segment_held() {
    for blocks in [1, 16] {
        let folder = tempfile::tempdir().unwrap();
        let (_, cache) = open(folder.path(), blocks);
        (0..40).for_each(|key| put_value_alone(&cache, key, &[1; 100]));
        let stats = cache.stats();
        assert_eq!(stats.puts_dropped, 0);
        assert!((2..=4).contains(&stats.entries), "{} entries in four segments of one each", stats.entries);
    }
}

/// The first block of a long entry was read; before the others are, the ring comes round and another
/// key's entry of the same length takes their place.
#[test]
fn a_long_entry_that_is_overwritten_while_it_is_read_is_a_miss() {
    for blocks in [8, 32] {
        let folder = tempfile::tempdir().unwrap();
        let (device, cache) = open(folder.path(), blocks);
        put_value_alone(&cache, 1, &[1; 1_500]);
        let shared = Arc::clone(&cache);
        device.after_next_read(move || {
            (2..7).for_each(|key| put_value_alone(&shared, key, &[key as u8; 1_500]));
        });
        let key = 1u64.to_le_bytes();
        let mut misses = 0;
        cache.get_many(&mut Io::with_engine(Engine::Plain), &[Key::new(&key)], 1, |_, outcome| {
            assert_eq!(outcome, Outcome::Miss);
            misses += 1;
        });
        assert_eq!(misses, 1);
        assert_eq!(cache.stats().puts_dropped, 0);
    }
}
