//! Checksums of blocks on the device, for as many segments as there is memory.

use std::collections::{HashMap, VecDeque};
use std::sync::RwLock;

/// A bounded cache: slot -> checksums of the segment in it.
pub(crate) struct Checksums {
    segments: RwLock<Segments>,
    bytes_max: u64,
}

#[derive(Default)]
struct Segments {
    by_slot: HashMap<u64, (u64, Box<[u32]>)>,
    /// In the order in which they came.
    order: VecDeque<u64>,
    bytes: u64,
}

impl Checksums {
    pub fn new(bytes_max: u64) -> Self {
        Self { segments: RwLock::default(), bytes_max }
    }

    /// The checksum of a block of the segment `sequence` in a slot.
    pub fn get(&self, slot: u64, sequence: u64, index: u32) -> Option<u32> {
        let segments = self.segments.read().expect("no panic under the lock");
        let (known, sums) = segments.by_slot.get(&slot)?;
        if *known == sequence { sums.get(index as usize).copied() } else { None }
    }

    pub fn insert(&self, slot: u64, sequence: u64, sums: Box<[u32]>) {
        let mut segments = self.segments.write().expect("no panic under the lock");
        let bytes = size_of_val(&*sums) as u64;
        if segments.by_slot.insert(slot, (sequence, sums)).is_some() {
            return;
        }
        segments.bytes += bytes;
        segments.order.push_back(slot);
        while segments.bytes > self.bytes_max {
            let Some(oldest) = segments.order.pop_front() else { break };
            segments.remove(oldest);
        }
    }

    pub fn invalidate(&self, slot: u64) {
        let mut segments = self.segments.write().expect("no panic under the lock");
        segments.remove(slot);
        segments.order.retain(|other| *other != slot);
    }

    pub fn bytes_allocated(&self) -> u64 {
        self.segments.read().expect("no panic under the lock").bytes
    }
}

impl Segments {
    fn remove(&mut self, slot: u64) {
        if let Some((_, sums)) = self.by_slot.remove(&slot) {
            self.bytes -= size_of_val(&*sums) as u64;
        }
    }
}
