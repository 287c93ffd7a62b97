//! All entries of a table dealt out over other buckets.

use super::bucket::Slot;
use super::shape::{Capacity, Shape};
use crate::limits::BUCKET_BYTES;

/// Buckets that are being filled, in no order: each is written once, when it has all that it gets.
pub(super) struct Dealing {
    shape: Shape,
    /// How many entries each bucket has.
    taken: Vec<u8>,
    /// The entries of each bucket, as numbers.
    numbers: Vec<u64>,
}

impl Dealing {
    pub fn new(capacity: &Capacity, buckets: usize) -> Self {
        let shape = Shape::new(capacity, buckets);
        Self { shape, taken: vec![0; shape.buckets], numbers: vec![0; shape.buckets * shape.slots] }
    }

    /// Puts an entry into the one of its buckets that has more room. `false`: there is none, and none could be made.
    pub fn deal(&mut self, hash: u64, recent: bool, place: u64) -> bool {
        let (home, tag) = self.shape.home(hash);
        let buckets = [home, self.shape.other(home, tag)];
        let other = self.taken[buckets[1]] < self.taken[home];
        let other = if self.has_room(buckets[usize::from(other)]) {
            other
        } else {
            let Some(bucket) = (0..2).find(|bucket| self.make_room(buckets[*bucket])) else { return false };
            bucket == 1
        };
        self.push(buckets[usize::from(other)], Slot { tag, other, recent, place });
        true
    }

    /// The table's bytes.
    pub fn finish(self) -> (Shape, Vec<u8>) {
        let mut bytes = vec![0; self.shape.bytes()];
        let (buckets, _) = bytes.as_chunks_mut::<BUCKET_BYTES>();
        let numbers = self.numbers.chunks_exact(self.shape.slots);
        for ((bucket, numbers), taken) in buckets.iter_mut().zip(numbers).zip(&self.taken) {
            self.shape.write(bucket, &numbers[..usize::from(*taken)]);
        }
        (self.shape, bytes)
    }

    fn has_room(&self, bucket: usize) -> bool {
        usize::from(self.taken[bucket]) < self.shape.slots
    }

    fn push(&mut self, bucket: usize, entry: Slot) {
        self.numbers[bucket * self.shape.slots + usize::from(self.taken[bucket])] = self.shape.number(entry);
        self.taken[bucket] += 1;
    }

    /// Moves one entry of a full bucket to its other bucket.
    fn make_room(&mut self, bucket: usize) -> bool {
        let first = bucket * self.shape.slots;
        for slot in first..first + self.shape.slots {
            let entry = self.shape.entry(self.numbers[slot]);
            let target = self.shape.other(bucket, entry.tag);
            if target != bucket && self.has_room(target) {
                self.numbers[slot] = self.numbers[first + self.shape.slots - 1];
                self.taken[bucket] -= 1;
                self.push(target, Slot { other: !entry.other, ..entry });
                return true;
            }
        }
        false
    }
}
