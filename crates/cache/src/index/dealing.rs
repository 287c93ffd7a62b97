//! Redistribution of all entries of a table over new buckets.

use super::bits::Line;
use super::bucket::BucketEntry;
use super::placing::choose;
use super::shape::{Capacity, Shape};

/// Entries collected by bucket, unordered; each bucket is encoded once, when it is complete.
pub(super) struct Dealing {
    shape: Shape,
    /// The number of each bucket's entries.
    taken: Vec<u8>,
    /// The entries of each bucket, encoded as numbers.
    numbers: Vec<u64>,
}

impl Dealing {
    /// Builds `buckets` buckets by `deal_all`; while that reports no room, retries with a few more.
    pub fn of(
        capacity: &Capacity,
        mut buckets: usize,
        deal_all: impl Fn(&mut Self) -> bool,
    ) -> (Shape, Vec<Line>) {
        loop {
            let mut dealing = Self::new(capacity, buckets);
            if deal_all(&mut dealing) {
                return dealing.finish();
            }
            buckets += (buckets / 64).max(1);
        }
    }

    fn new(capacity: &Capacity, buckets: usize) -> Self {
        let shape = Shape::new(capacity, buckets);
        Self { shape, taken: vec![0; shape.buckets], numbers: vec![0; shape.buckets * shape.slots] }
    }

    /// Adds an entry to the one of its buckets with more room. `false`: both are full, and no entry could be moved.
    pub fn deal(&mut self, hash: u64, is_found: bool, block: u64) -> bool {
        let (home, tag) = self.shape.home(hash);
        let buckets = [home, self.shape.other(home, tag)];
        let taken = buckets.map(|bucket| usize::from(self.taken[bucket]));
        let Some(chosen) = choose(self.shape.slots, taken, |i| self.make_room(buckets[*i])) else {
            return false;
        };
        self.push(buckets[chosen], BucketEntry { tag, other: chosen == 1, is_found, block });
        true
    }

    fn finish(self) -> (Shape, Vec<Line>) {
        let mut lines = self.shape.lines();
        let numbers = self.numbers.chunks_exact(self.shape.slots);
        for ((line, numbers), taken) in lines.iter_mut().zip(numbers).zip(&self.taken) {
            // A line without entries is empty already.
            if *taken > 0 {
                self.shape.write(line, &numbers[..usize::from(*taken)]);
            }
        }
        (self.shape, lines)
    }

    fn has_room(&self, bucket: usize) -> bool {
        usize::from(self.taken[bucket]) < self.shape.slots
    }

    fn push(&mut self, bucket: usize, entry: BucketEntry) {
        self.numbers[bucket * self.shape.slots + usize::from(self.taken[bucket])] = self.shape.number(entry);
        self.taken[bucket] += 1;
    }

    /// Moves one entry of a full bucket to its other bucket.
    fn make_room(&mut self, bucket: usize) -> bool {
        let first = bucket * self.shape.slots;
        let numbers = self.numbers[first..first + self.shape.slots].iter();
        let entries = numbers.map(|number| self.shape.entry(*number)).enumerate();
        let movable = self.shape.movable(bucket, entries, |target| self.has_room(target));
        let Some((slot, entry, target)) = movable else { return false };
        // The last entry takes the slot.
        self.taken[bucket] -= 1;
        self.numbers[first + slot] = self.numbers[first + usize::from(self.taken[bucket])];
        self.push(target, entry);
        true
    }
}
