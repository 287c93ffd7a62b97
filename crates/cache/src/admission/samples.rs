//! Examples to learn from: a few objects, the state of each at one of its reads, and its reads after that.
//!
//! One read of each object is remembered, the i-th with probability 1/i, so that objects read often and seldom are
//! sampled at all stages; none before the first read. Sampled are objects whose hash is below a bound that falls when
//! there are too many.

use super::candidate::COUNT_MAX;
use crate::key::KeyHash;
use crate::limits::{HASH_BITS, SAMPLES_MAX};
use fastrand::Rng;
use std::collections::{HashMap, VecDeque};

/// The numbers of an object's reads and updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectCounts {
    pub reads: u8,
    pub updates: u8,
}

/// An object's counts at a read, and its reads after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Example {
    pub counts: ObjectCounts,
    /// Reads after that, until an update or the end of the lifetime.
    pub reads_after: u8,
}

#[derive(Default)]
struct Sample {
    counts: ObjectCounts,
    /// The object was looked up and missed: the next put brings it back, and is no update.
    missed: bool,
    remembered: Option<Example>,
    /// The time at which the example was remembered; identifies its entry in the queue.
    since: u64,
}

/// The sampled objects of an application. The clock counts bytes put by all applications.
pub(super) struct Samples {
    below: u64,
    samples: HashMap<KeyHash, Sample>,
    /// (time, key) of remembered examples, oldest first.
    queue: VecDeque<(u64, KeyHash)>,
    /// The time of the application's last put.
    clock: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self { below: 1 << HASH_BITS, samples: HashMap::new(), queue: VecDeque::new(), clock: 0 }
    }
}

/// The value that decides whether a key is sampled. It is mixed, for the hash's top bits choose shards.
#[inline]
pub(crate) fn sample_hash(hash: KeyHash) -> u64 {
    hash.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASH_BITS)
}

impl Samples {
    /// Keys with a smaller [`sample_hash`] are sampled.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// Notes that an object is put at time `now`. Returns the example that this ends.
    pub fn on_put(&mut self, hash: KeyHash, now: u64) -> Option<Example> {
        self.clock = now;
        if sample_hash(hash) >= self.below {
            return None;
        }
        let Some(sample) = self.samples.get_mut(&hash) else {
            self.samples.insert(hash, Sample::default());
            self.bound();
            return None;
        };
        if std::mem::take(&mut sample.missed) {
            // It came back after it had left: its counts in DRAM begin anew.
            sample.counts = ObjectCounts::default();
            return None;
        }
        sample.counts.updates = (sample.counts.updates + 1).min(COUNT_MAX);
        sample.remembered.take()
    }

    pub fn on_read(&mut self, hash: KeyHash, found: bool, random: &mut Rng) {
        let Some(sample) = self.samples.get_mut(&hash) else { return };
        sample.missed = !found;
        if let Some(remembered) = &mut sample.remembered {
            remembered.reads_after = remembered.reads_after.saturating_add(1);
        }
        if !found {
            return;
        }
        sample.counts.reads = (sample.counts.reads + 1).min(COUNT_MAX);
        if random.u8(..sample.counts.reads) == 0 {
            let is_queued = sample.remembered.is_some() && sample.since == self.clock;
            sample.remembered = Some(Example { counts: sample.counts, reads_after: 0 });
            sample.since = self.clock;
            // One queue entry a key: reads alone move neither the clock nor the queue's front, so they would lengthen
            // it for ever.
            if !is_queued {
                self.queue.push_back((self.clock, hash));
            }
        }
    }

    /// The next example whose time is over: `lifetime` bytes were put since.
    pub fn next(&mut self, lifetime: u64) -> Option<Example> {
        while let Some((since, hash)) = self.queue.front().copied() {
            if since + lifetime > self.clock && self.queue.len() <= 2 * SAMPLES_MAX {
                return None;
            }
            self.queue.pop_front();
            if let Some(sample) = self.samples.get_mut(&hash).filter(|sample| sample.since == since)
                && let Some(example) = sample.remembered.take()
            {
                self.samples.remove(&hash);
                return Some(example);
            }
        }
        None
    }

    fn bound(&mut self) {
        while self.samples.len() > SAMPLES_MAX {
            self.below -= self.below / 8;
            let below = self.below;
            self.samples.retain(|hash, _| sample_hash(*hash) < below);
            self.queue.retain(|(_, hash)| sample_hash(*hash) < below);
        }
    }

    pub fn bytes_allocated(&self) -> usize {
        self.samples.capacity() * (size_of::<(KeyHash, Sample)>() + 1)
            + self.queue.capacity() * size_of::<(u64, KeyHash)>()
    }
}
