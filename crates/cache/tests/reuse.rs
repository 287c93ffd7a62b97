//! What was on the device before is neither shown nor remembered once its segment is reused.

use granary_cache::{Cache, Engine, Entry, FlashOptions, Io, Key, Options, Outcome};
use granary_log::device::{Device, MemoryDevice};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Hook = Box<dyn FnOnce() + Send>;

/// Memory that calls back once, after a read of a lookup.
struct Hooked {
    memory: MemoryDevice,
    after_read: Mutex<Option<Hook>>,
}

impl Device for Hooked {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_at(offset, bytes)?;
        let hook = self.after_read.lock().unwrap().take();
        if let Some(call) = hook {
            call();
        }
        Ok(())
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.memory.write_at(offset, buffers)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Four segments of `blocks` blocks.
fn open(folder: &Path, blocks: u64) -> (Arc<Hooked>, Arc<Cache>) {
    let mut flash = FlashOptions::new(folder.join("c"), 4 * blocks * 512);
    flash.block_size = 512;
    flash.write_buffer_size = blocks * 512;
    let memory = MemoryDevice::new(flash.file_size);
    let device = Arc::new(Hooked { memory, after_read: Mutex::default() });
    let options = Options { flash: Some(flash), memory_bytes: 0, memory_entries: None };
    (Arc::clone(&device), Arc::new(Cache::open_on(Box::new(device), options).unwrap()))
}

/// Puts into a segment of its own, once the flusher has emptied its slot.
fn put(cache: &Cache, key: u64, value: &[u8]) {
    std::thread::sleep(Duration::from_millis(20));
    cache.put_many(&[Entry { key: Key::new(&key.to_le_bytes()), value: Some(value), expires_at: 0 }]);
    cache.flush();
}

#[test]
fn the_index_forgets_what_a_reused_segment_held() {
    for blocks in [1, 16] {
        let folder = tempfile::tempdir().unwrap();
        let (_, cache) = open(folder.path(), blocks);
        (0..40).for_each(|key| put(&cache, key, &[1; 100]));
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
        put(&cache, 1, &[1; 1_500]);
        let shared = Arc::clone(&cache);
        let hook: Hook = Box::new(move || (2..7).for_each(|key| put(&shared, key, &[key as u8; 1_500])));
        // The flusher reads too; the hook is for the read of the lookup, which is next: all is at rest.
        std::thread::sleep(Duration::from_millis(50));
        *device.after_read.lock().unwrap() = Some(hook);
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
