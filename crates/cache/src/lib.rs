//! Key -> value on flash: index, RAM tier, admission, eviction.
//! (API sketch over a plain map; the flash engine replaces what is behind it.)

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// A key with its hash, computed once.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
}
impl<'a> Key<'a> {
    /// Hashes `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// What a lookup of one key yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The value, not expired.
    Hit {
        value: &'a [u8],
        expires_at: u32,
    },
    /// The source does not have this key; not expired.
    Negative {
        expires_at: u32,
    },
    /// Known once, expired now; `None`: was negative.
    Expired {
        value: Option<&'a [u8]>,
        expires_at: u32,
    },
    Miss,
}

/// An entry to store.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub key: Key<'a>,
    /// `None`: the source does not have this key.
    pub value: Option<&'a [u8]>,
    /// Unix time in seconds after which (`now > expires_at`) the entry is expired; 0: never.
    pub expires_at: u32,
}

/// Where and how big. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct FlashOptions {
    pub path: PathBuf,
    pub file_size: u64,
    pub block_size: u64,
    pub write_buffer_size: u64,
    pub max_stored_keys: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// `None`: RAM only.
    pub flash: Option<FlashOptions>,
    /// Budget of the RAM tier in bytes (0: no RAM tier; only with flash).
    pub memory_bytes: u64,
    /// Most entries in the RAM tier, whatever their size.
    pub memory_entries: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub entries: u64,
    pub capacity: u64,
    pub bytes_allocated: u64,
    pub index_bytes: u64,
    pub hits_memory: u64,
    pub hits_buffer: u64,
    pub hits_flash: u64,
    pub misses: u64,
    pub block_reads: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub puts: u64,
    pub puts_dropped: u64,
    pub corrupt_blocks: u64,
}

/// Per-thread I/O state (ring, buffers). One per calling thread.
#[derive(Default)]
pub struct Io {}
impl Io {
    pub fn new() -> Self {
        Self {}
    }
}

pub struct Cache {
    map: Mutex<HashMap<Vec<u8>, (Option<Vec<u8>>, u32)>>,
}

impl Cache {
    pub fn open(_options: Options) -> std::io::Result<Cache> {
        Ok(Cache { map: Mutex::default() })
    }
    /// Looks up a batch. `sink(i, outcome)` is called once for each key, in any order.
    pub fn get_many(
        &self,
        _io: &mut Io,
        keys: &[Key<'_>],
        now: u32,
        mut sink: impl FnMut(usize, Outcome<'_>),
    ) {
        let map = self.map.lock().unwrap();
        for (i, key) in keys.iter().enumerate() {
            let outcome = match map.get(key.bytes) {
                None => Outcome::Miss,
                Some((value, at)) if *at != 0 && now > *at => {
                    Outcome::Expired { value: value.as_deref(), expires_at: *at }
                }
                Some((Some(value), at)) => Outcome::Hit { value, expires_at: *at },
                Some((None, at)) => Outcome::Negative { expires_at: *at },
            };
            sink(i, outcome);
        }
    }
    /// Stores a batch; never waits for the device.
    pub fn put_many(&self, entries: &[Entry<'_>]) {
        let mut map = self.map.lock().unwrap();
        for e in entries {
            map.insert(e.key.bytes.to_vec(), (e.value.map(<[u8]>::to_vec), e.expires_at));
        }
    }
    /// Removes keys; final, across crashes too.
    pub fn delete_many(&self, keys: &[Key<'_>]) {
        let mut map = self.map.lock().unwrap();
        for k in keys {
            map.remove(k.bytes);
        }
    }
    /// Visits every resident entry (expired and negative ones too): key, value, expires_at.
    pub fn scan(&self, _io: &mut Io, mut visit: impl FnMut(&[u8], Option<&[u8]>, u32)) {
        for (k, (v, at)) in self.map.lock().unwrap().iter() {
            visit(k, v.as_deref(), *at);
        }
    }
    /// Forgets everything.
    pub fn clear(&self) {
        self.map.lock().unwrap().clear();
    }
    pub fn stats(&self) -> Stats {
        Stats { entries: self.map.lock().unwrap().len() as u64, ..Stats::default() }
    }
}
// Drop = clean stop: everything is sealed and served again at the next open.
