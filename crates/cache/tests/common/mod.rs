//! Small caches of numbered keys with versions, and memory that calls back.

#![allow(dead_code, reason = "each test uses its part")]

use granary_cache::{Cache, Engine, Entry, FlashOptions, Io, Options, Outcome};
use granary_log::device::{Device, MemoryDevice};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The seed of the caches here: a key's hash is known beforehand.
pub const HASH_SEED: u64 = 0;

/// Pairs of keys whose hashes, under that seed, agree in all bits that the cache keeps.
pub const LOOK_ALIKES: [(u64, u64); 2] = [(1_217_509, 31_017_174), (6_505_845, 12_274_539)];

/// `segments` segments of `blocks` blocks of 512 bytes.
pub fn options(folder: &Path, segments: u64, blocks: u64, memory_bytes: u64) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), segments * blocks * 512);
    flash.block_size = 512;
    flash.write_buffer_size = blocks * 512;
    flash.hash_seed = Some(HASH_SEED);
    Options { flash: Some(flash), memory_bytes, ..Options::default() }
}

pub fn put(cache: &Cache, key: u64, version: u64) {
    put_value(cache, key, &version.to_le_bytes());
}

fn put_value(cache: &Cache, key: u64, value: &[u8]) {
    cache.put_many(&[Entry { key: cache.key(&key.to_le_bytes()), value: Some(value), expires_at: 0 }]);
}

/// Puts into a segment of its own.
pub fn put_alone(cache: &Cache, key: u64, version: u64) {
    put_value_alone(cache, key, &version.to_le_bytes());
}

/// Puts into a segment of its own, once the flusher has emptied its slot.
pub fn put_value_alone(cache: &Cache, key: u64, value: &[u8]) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let dropped = cache.stats().puts_dropped;
        put_value(cache, key, value);
        if cache.stats().puts_dropped == dropped {
            break;
        }
        assert!(Instant::now() < until, "there is no room for key {key}");
        std::thread::sleep(Duration::from_millis(1));
    }
    cache.flush().unwrap();
    // Time to empty the slot for the next put.
    std::thread::sleep(Duration::from_millis(20));
}

pub fn get(cache: &Cache, key: u64) -> Option<u64> {
    let key = key.to_le_bytes();
    let mut version = None;
    cache.get_many(&mut Io::with_engine(Engine::Plain), &[cache.key(&key)], 1, |_, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            version = Some(u64::from_le_bytes(value.try_into().unwrap()));
        }
    });
    version
}

/// The version that begins a value of any length.
pub fn get_version(cache: &Cache, key: u64) -> Option<u64> {
    let mut version = None;
    cache.get_many(&mut Io::with_engine(Engine::Plain), &[cache.key(&key.to_le_bytes())], 1, |_, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            version = value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        }
    });
    version
}

/// Memory that calls back after a read or a write, with no lock of its own held.
pub struct Hooked {
    memory: Arc<MemoryDevice>,
    after_read: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    after_write: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Hooked {
    pub fn new(memory: Arc<MemoryDevice>) -> Arc<Self> {
        Arc::new(Self { memory, after_read: Mutex::default(), after_write: Mutex::default() })
    }

    /// Calls `hook` after the next read of a lookup.
    pub fn after_next_read(&self, hook: impl FnOnce() + Send + 'static) {
        *self.after_read.lock().unwrap() = Some(Box::new(hook));
    }

    /// Calls `hook` after every write from here on, except those made while it runs.
    pub fn after_each_write(&self, hook: impl FnMut() + Send + 'static) {
        *self.after_write.lock().unwrap() = Some(Box::new(hook));
    }
}

impl Device for Hooked {
    fn size(&self) -> u64 {
        self.memory.size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_at(offset, bytes)?;
        // Flusher and evictor read, too, ahead of the writer.
        if matches!(std::thread::current().name(), Some("granary-flush" | "granary-evict")) {
            return Ok(());
        }
        let hook = self.after_read.lock().unwrap().take();
        if let Some(call) = hook {
            call();
        }
        Ok(())
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.memory.write_at(offset, buffers)?;
        let taken = self.after_write.lock().unwrap().take();
        if let Some(mut call) = taken {
            call();
            self.after_write.lock().unwrap().get_or_insert(call);
        }
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Leaves what a kill would leave now: copies of a cache's files in another folder, and of its device, which must be idle.
pub fn copy_as_killed(from: &Path, to: &Path, memory: &MemoryDevice) -> MemoryDevice {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    let mut bytes = vec![0; memory.size() as usize];
    memory.read_at(0, &mut bytes).unwrap();
    let copy = MemoryDevice::new(memory.size());
    copy.write_at(0, &[&bytes]).unwrap();
    copy
}
