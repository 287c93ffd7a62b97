//! LRU: a cache of its own, and the DRAM in front of flash.

use super::{Clock, Model, Object, Place};

/// Objects in DRAM, in order of their last use.
pub struct Lru {
    capacity: u64,
    used: u64,
    /// Bytes of the object, by key; 0 is absent.
    bytes: Vec<u32>,
    /// Neighbours towards the newer and the older; the last element is the ring's own, between the oldest
    /// and the newest.
    newer: Vec<u32>,
    older: Vec<u32>,
    objects: u64,
}

impl Lru {
    /// A cache for keys `0..keys`.
    pub fn new(capacity: u64, keys: u32) -> Self {
        let ring: Vec<u32> = (0..=keys).collect();
        Self {
            capacity,
            used: 0,
            bytes: vec![0; keys as usize],
            newer: ring.clone(),
            older: ring,
            objects: 0,
        }
    }

    fn ring(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn link(&mut self, key: u32) {
        let ring = self.ring();
        let newest = self.older[ring as usize];
        self.older[key as usize] = newest;
        self.newer[key as usize] = ring;
        self.newer[newest as usize] = key;
        self.older[ring as usize] = key;
    }

    fn unlink(&mut self, key: u32) {
        let (newer, older) = (self.newer[key as usize], self.older[key as usize]);
        self.older[newer as usize] = older;
        self.newer[older as usize] = newer;
    }

    /// Whether an object is in the cache.
    pub(super) fn contains(&self, key: u32) -> bool {
        self.bytes[key as usize] > 0
    }

    /// Whether an object of `bytes` bytes fits without another one leaving.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        self.used + u64::from(bytes) <= self.capacity
    }

    /// Makes an object the newest.
    pub(super) fn touch(&mut self, key: u32) {
        self.unlink(key);
        self.link(key);
    }

    /// Removes an object, and returns its size.
    pub(super) fn take(&mut self, key: u32) -> Option<u32> {
        let bytes = std::mem::take(&mut self.bytes[key as usize]);
        if bytes == 0 {
            return None;
        }
        self.unlink(key);
        self.used -= u64::from(bytes);
        self.objects -= 1;
        Some(bytes)
    }

    /// Inserts an object as the newest, and passes evicted ones to `left` (itself, if it is too large).
    pub(super) fn put(&mut self, key: u32, bytes: u32, mut left: impl FnMut(u32, u32)) {
        self.take(key);
        if u64::from(bytes) > self.capacity {
            return left(key, bytes);
        }
        self.evict_beyond(self.capacity - u64::from(bytes), left);
        self.bytes[key as usize] = bytes;
        self.used += u64::from(bytes);
        self.objects += 1;
        self.link(key);
    }

    /// Changes the capacity, and passes objects evicted for it to `left`.
    pub(super) fn resize(&mut self, capacity: u64, left: impl FnMut(u32, u32)) {
        self.capacity = capacity;
        self.evict_beyond(capacity, left);
    }

    fn evict_beyond(&mut self, most: u64, mut left: impl FnMut(u32, u32)) {
        while self.used > most {
            let oldest = self.newer[self.ring() as usize];
            let bytes = self.take(oldest).expect("there is one as long as bytes are used");
            left(oldest, bytes);
        }
    }

    /// Bytes of all objects.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Number of objects.
    pub(super) fn objects(&self) -> u64 {
        self.objects
    }

    pub(super) fn check(&self) {
        let mut key = self.newer[self.ring() as usize];
        let (mut objects, mut used) = (0, 0);
        while key != self.ring() {
            assert!(self.bytes[key as usize] > 0, "what is linked is there");
            objects += 1;
            used += u64::from(self.bytes[key as usize]);
            assert_eq!(self.older[self.newer[key as usize] as usize], key);
            key = self.newer[key as usize];
        }
        assert_eq!((objects, used), (self.objects, self.used));
        assert_eq!(self.bytes.iter().filter(|bytes| **bytes > 0).count() as u64, objects);
        assert!(used <= self.capacity);
    }
}

/// DRAM of a plain cache's index: a hash chain and two links, as in memcached.
pub(super) const DRAM_INDEX_BYTES: u64 = 24;

impl Model for Lru {
    fn place(&self, key: u32) -> Place {
        if self.contains(key) { Place::Dram } else { Place::Absent }
    }

    fn read(&mut self, object: &Object, _: Clock) -> Place {
        let place = self.place(object.key);
        if place == Place::Dram {
            self.touch(object.key);
        }
        place
    }

    fn store(&mut self, object: &Object, _: Clock) {
        self.put(object.key, object.bytes, |_, _| ());
    }

    fn remove(&mut self, key: u32) {
        self.take(key);
    }

    fn flash_bytes_written(&self) -> u64 {
        0
    }

    fn dram_bytes(&self) -> u64 {
        self.used
    }

    fn index_bytes(&self) -> u64 {
        self.objects * DRAM_INDEX_BYTES
    }

    fn validate(&self) {
        self.check();
    }
}
