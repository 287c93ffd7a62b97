//! Examples to learn from: a few objects, what was known of each at one of its reads, and what came
//! after that.
//!
//! Of each object one read is remembered, the i-th with probability 1/i, so that objects read often and
//! seldom are met at all stages; none before the first read. The objects are those whose hash is below a
//! bound that falls when there are too many.

use super::candidate::COUNT_MAX;
use crate::key::KeyHash;
use crate::limits::{HASH_BITS, SAMPLES_MAX};
use fastrand::Rng;
use std::collections::{HashMap, VecDeque};

/// How often an object was read and updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub reads: u8,
    pub updates: u8,
}

/// What was known, and whether it was right to expect reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Example {
    pub counts: Counts,
    /// Reads after that, before an update or the end of the time.
    pub reads_after: u8,
}

#[derive(Default)]
struct Sample {
    counts: Counts,
    /// It was asked for and not found: what is put next is the same again, not an update.
    missed: bool,
    remembered: Option<Example>,
    /// When that was, to know it again in the queue.
    since: u64,
}

/// Objects of an application that are watched. The clock is bytes put, by all applications.
pub(super) struct Samples {
    below: u64,
    samples: HashMap<KeyHash, Sample>,
    /// (when, which) was remembered, the oldest first.
    queue: VecDeque<(u64, KeyHash)>,
    /// The time of the application's last put.
    clock: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self { below: 1 << HASH_BITS, samples: HashMap::new(), queue: VecDeque::new(), clock: 0 }
    }
}

/// What a key drew: the hash's own top bits choose shards.
#[inline]
pub(crate) fn sample_hash(hash: KeyHash) -> u64 {
    hash.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASH_BITS)
}

impl Samples {
    /// Keys that drew less are watched.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// An object is put, `now`. Gives the example that this ends.
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
            // It came again after it had left: what it did in DRAM begins anew.
            sample.counts = Counts::default();
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
            // Reads alone do not move the clock, nor shorten the queue: they must not lengthen it for ever.
            if !is_queued {
                self.queue.push_back((self.clock, hash));
            }
        }
    }

    /// An example whose time is over: `lifetime` bytes were put since.
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
