//! S3-FIFO (Yang et al., SOSP 2023): a small queue that most objects do not survive, a main queue with second chances,
//! and the keys that left the small queue.

use super::lru::DRAM_INDEX_BYTES;
use super::{Clock, Model, Object, Place};
use std::collections::VecDeque;

/// The small queue has 1/SMALL of the space.
const SMALL: u64 = 10;
const READS_MAX: u8 = 3;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Queue {
    #[default]
    None,
    Small,
    Main,
    Ghost,
}

#[derive(Clone, Copy, Default)]
struct S3FifoEntry {
    bytes: u32,
    /// Tells the key's current place in the queues from stale ones.
    stamp: u32,
    reads: u8,
    queue: Queue,
}

/// The cache, in DRAM.
pub struct S3Fifo {
    capacity: u64,
    entries: Vec<S3FifoEntry>,
    /// (key, stamp), oldest first; pairs with another stamp are stale.
    small: VecDeque<(u32, u32)>,
    main: VecDeque<(u32, u32)>,
    ghost: VecDeque<(u32, u32)>,
    small_bytes: u64,
    main_bytes: u64,
    /// Bytes of the objects of the ghost's keys.
    ghost_bytes: u64,
    objects: u64,
}

impl S3Fifo {
    /// A cache for keys `0..keys`.
    pub fn new(capacity: u64, keys: u32) -> Self {
        Self {
            capacity,
            entries: vec![S3FifoEntry::default(); keys as usize],
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
            small_bytes: 0,
            main_bytes: 0,
            ghost_bytes: 0,
            objects: 0,
        }
    }

    fn enter(&mut self, key: u32, queue: Queue) {
        let entry = &mut self.entries[key as usize];
        entry.stamp = entry.stamp.wrapping_add(1);
        entry.queue = queue;
        let (place, bytes) = ((key, entry.stamp), u64::from(entry.bytes));
        match queue {
            Queue::Small => (self.small.push_back(place), self.small_bytes += bytes).0,
            Queue::Main => (self.main.push_back(place), self.main_bytes += bytes).0,
            Queue::Ghost => (self.ghost.push_back(place), self.ghost_bytes += bytes).0,
            Queue::None => {}
        }
    }

    fn leave(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        let bytes = u64::from(entry.bytes);
        match std::mem::take(&mut entry.queue) {
            Queue::Small => self.small_bytes -= bytes,
            Queue::Main => self.main_bytes -= bytes,
            Queue::Ghost => self.ghost_bytes -= bytes,
            Queue::None => {}
        }
    }

    /// Takes the oldest object that is still in a queue.
    fn oldest(queue: &mut VecDeque<(u32, u32)>, entries: &[S3FifoEntry], which: Queue) -> Option<u32> {
        while let Some((key, stamp)) = queue.pop_front() {
            let entry = entries[key as usize];
            if entry.stamp == stamp && entry.queue == which {
                return Some(key);
            }
        }
        None
    }

    /// Evicts an object, or moves it to another queue.
    fn evict(&mut self) {
        if (self.small_bytes >= self.capacity / SMALL || self.main_bytes == 0)
            && let Some(key) = Self::oldest(&mut self.small, &self.entries, Queue::Small)
        {
            self.leave(key);
            if self.entries[key as usize].reads > 1 {
                self.entries[key as usize].reads = 0;
                self.enter(key, Queue::Main);
            } else {
                self.objects -= 1;
                self.enter(key, Queue::Ghost);
                self.bound_ghost();
            }
            return;
        }
        if let Some(key) = Self::oldest(&mut self.main, &self.entries, Queue::Main) {
            self.leave(key);
            if self.entries[key as usize].reads > 0 {
                self.entries[key as usize].reads -= 1;
                self.enter(key, Queue::Main);
            } else {
                self.objects -= 1;
            }
        }
    }

    /// Bounds the ghost to the keys of as many bytes as the main queue has room for.
    fn bound_ghost(&mut self) {
        while self.ghost_bytes > self.capacity - self.capacity / SMALL {
            match Self::oldest(&mut self.ghost, &self.entries, Queue::Ghost) {
                Some(key) => self.leave(key),
                None => return,
            }
        }
    }

    fn held(&self, key: u32) -> bool {
        matches!(self.entries[key as usize].queue, Queue::Small | Queue::Main)
    }
}

impl Model for S3Fifo {
    fn place(&self, key: u32) -> Place {
        if self.held(key) { Place::Dram } else { Place::Absent }
    }

    fn read(&mut self, object: &Object, _: Clock) -> Place {
        let place = self.place(object.key);
        if place == Place::Dram {
            let reads = &mut self.entries[object.key as usize].reads;
            *reads = (*reads + 1).min(READS_MAX);
        }
        place
    }

    fn store(&mut self, object: &Object, _: Clock) {
        let known = self.entries[object.key as usize].queue;
        if self.held(object.key) {
            self.objects -= 1;
        }
        self.leave(object.key);
        if u64::from(object.bytes) > self.capacity {
            return;
        }
        while self.small_bytes + self.main_bytes + u64::from(object.bytes) > self.capacity {
            self.evict();
        }
        let entry = &mut self.entries[object.key as usize];
        entry.bytes = object.bytes;
        if known == Queue::None || known == Queue::Ghost {
            entry.reads = 0;
        }
        // An object that is overwritten keeps its queue.
        let queue = if matches!(known, Queue::Ghost | Queue::Main) { Queue::Main } else { Queue::Small };
        self.enter(object.key, queue);
        self.objects += 1;
    }

    fn remove(&mut self, key: u32) {
        if self.held(key) {
            self.objects -= 1;
        }
        self.leave(key);
    }

    fn flash_bytes_written(&self) -> u64 {
        0
    }

    fn dram_bytes(&self) -> u64 {
        self.small_bytes + self.main_bytes
    }

    fn index_bytes(&self) -> u64 {
        self.objects * DRAM_INDEX_BYTES
    }

    fn validate(&self) {
        let of = |queue: Queue| self.entries.iter().filter(move |entry| entry.queue == queue);
        let bytes = |queue| of(queue).map(|entry| u64::from(entry.bytes)).sum::<u64>();
        let sums = (bytes(Queue::Small), bytes(Queue::Main), bytes(Queue::Ghost));
        assert_eq!(sums, (self.small_bytes, self.main_bytes, self.ghost_bytes));
        assert!(self.small_bytes + self.main_bytes <= self.capacity);
        assert_eq!((of(Queue::Small).count() + of(Queue::Main).count()) as u64, self.objects);
    }
}
