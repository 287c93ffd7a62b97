//! Keys that the index cannot tell apart: hints let them live side by side, and never let an old
//! version live. See docs/index.md, "One version of a key".

use granary_cache::{Cache, Engine, Entry, FlashOptions, Io, Key, Options, Outcome};
use granary_log::device::MemoryDevice;
use std::path::Path;
use std::time::Duration;

/// Two keys whose hashes agree in all the bits that the cache knows.
const ONE: u64 = 1_217_509;
const TWO: u64 = 31_017_174;

fn open(folder: &Path, segments: u64) -> Cache {
    let mut flash = FlashOptions::new(folder.join("c"), segments * 512);
    flash.block_size = 512;
    flash.write_buffer_size = 512;
    let options = Options { flash: Some(flash), memory_bytes: 0, memory_entries: None };
    Cache::open_on(Box::new(MemoryDevice::new(segments * 512)), options).unwrap()
}

/// Puts into a segment of its own, once the flusher has emptied its slot.
fn put(cache: &Cache, key: u64, version: u64) {
    let dropped = cache.stats().puts_dropped;
    let (key, value) = (key.to_le_bytes(), version.to_le_bytes());
    for _ in 0..1_000 {
        cache.put_many(&[Entry { key: Key::new(&key), value: Some(&value), expires_at: 0 }]);
        if cache.stats().puts_dropped == dropped {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    cache.flush();
    // For the next one.
    std::thread::sleep(Duration::from_millis(20));
}

fn get(cache: &Cache, key: u64) -> Option<u64> {
    let key = key.to_le_bytes();
    let mut version = None;
    cache.get_many(&mut Io::with_engine(Engine::Plain), &[Key::new(&key)], 1, |_, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            version = Some(u64::from_le_bytes(value.try_into().unwrap()));
        }
    });
    version
}

#[test]
fn keys_that_look_alike_do_not_drive_each_other_out_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 64);
    put(&cache, ONE, 1);
    assert_eq!(get(&cache, TWO), None, "and the cache notes where it is not");
    put(&cache, TWO, 2);
    assert_eq!((get(&cache, ONE), get(&cache, TWO)), (Some(1), Some(2)));
    cache.validate();
}

#[test]
fn a_hint_ends_with_the_segment_it_is_of() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 4);
    put(&cache, ONE, 1);
    assert_eq!(get(&cache, TWO), None, "and the cache notes where it is not");
    // The ring comes round: where that was noted, the key is now.
    (0..3).for_each(|filler| put(&cache, filler, 0));
    put(&cache, TWO, 1);
    put(&cache, TWO, 2);
    assert_eq!(get(&cache, TWO), Some(2));
    assert_eq!(cache.stats().puts_dropped, 0, "each went to the segment that it was meant for");
}
