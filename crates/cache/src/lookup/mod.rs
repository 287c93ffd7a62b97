//! The steps of a lookup, a batch of keys at a time: plan, fetch, deliver, and again for keys not found where the index
//! pointed.
//!
//! Nothing here waits: how reads are made, and what happens until they complete, is up to the drivers (`drive`).

mod answers;
mod begun_reads;
mod buffered;
mod deliver;
mod order;
mod outcome;
mod plan;
mod probe;
mod reads;
mod scratch;
mod search;

pub(crate) use begun_reads::BegunReads;
pub(crate) use deliver::ArrivedBlock;
pub(crate) use order::order;
pub use outcome::Outcome;
pub(crate) use probe::{FalsePositive, LongEntry, Probe};
pub(crate) use reads::ReadSpan;
pub(crate) use scratch::{Scratch, Workspace};
pub(crate) use search::{KeyDigest, Search};

use crate::admission::sample_hash;
use crate::codec::{Codec, Decoder, StoredValue};
use crate::key::Key;
use crate::partition_state::PartitionState;
use crate::stats::add;
use answers::Delivered;
use granary_log::sync::atomic::{AtomicBool, Ordering};
use outcome::{OutcomeCounts, Tier};

/// One thread's lookup of a batch.
pub(crate) struct Lookup<'a, S> {
    pub shared: &'a PartitionState,
    pub keys: &'a [Key<'a>],
    /// Whether each key has an outcome. Another thread may be searching for it in another block.
    pub resolved: &'a [AtomicBool],
    now: u32,
    /// Called with each outcome, while no lock is held.
    sink: S,
    counts: OutcomeCounts,
    /// Taken when the first compressed value is delivered.
    decoder: Option<Decoder>,
    /// The admission policy needs to know of reads of keys with a smaller `sample_hash`.
    sample_threshold: u64,
    /// Whether entries found in the index get a found mark.
    pub sets_found_marks: bool,
    pub read_blocks: ReadBlocks,
}

/// The RAM tier's use of the blocks that a lookup reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReadBlocks {
    /// It keeps those that are worth it.
    #[default]
    Offered,
    /// It only notes that they were read: they are more than it keeps, and would replace each other.
    Noted,
    /// Nothing: another lookup has reported them.
    AlreadyReported,
}

impl<'a, S: FnMut(usize, Outcome<'_>)> Lookup<'a, S> {
    /// A lookup of a batch without outcomes.
    pub fn new(
        shared: &'a PartitionState,
        keys: &'a [Key<'a>],
        resolved: &'a [AtomicBool],
        now: u32,
        sink: S,
    ) -> Self {
        shared.note_time(now);
        let sample_threshold = shared
            .dram_first()
            .map_or(0, |(_, dram_first)| dram_first.sample_threshold.load(Ordering::Relaxed));
        Self {
            shared,
            keys,
            resolved,
            now,
            sink,
            counts: OutcomeCounts::default(),
            decoder: None,
            sample_threshold,
            sets_found_marks: true,
            read_blocks: ReadBlocks::default(),
        }
    }

    pub fn is_resolved(&self, key: u32) -> bool {
        self.resolved[key as usize].load(Ordering::Relaxed)
    }

    /// Claims the right to deliver a key's outcome; `false`: it has been claimed before. No data is handed over by it,
    /// so the order of memory accesses does not matter.
    #[inline]
    fn resolve(&self, key: u32) -> bool {
        !self.resolved[key as usize].swap(true, Ordering::Relaxed)
    }

    /// Delivers answers that were found under a lock, which is free again.
    #[inline]
    fn deliver_answers(&mut self, scratch: &mut Scratch) {
        scratch.answers.drain(|key, answer| match answer {
            Delivered::Miss => self.miss(key),
            Delivered::Entry { tier, value, expires_at } => self.deliver(key, tier, value, expires_at),
        });
    }

    #[inline(always)]
    fn deliver(&mut self, i: u32, tier: Tier, value: Option<StoredValue<'_>>, expires_at: u32) {
        match value {
            Some(stored) if stored.codec != Codec::None => self.deliver_decoded(i, tier, stored, expires_at),
            value => self.deliver_value(i, tier, value.map(|value| value.bytes), expires_at),
        }
    }

    /// Decompresses and delivers a value; if that fails, it is a miss.
    fn deliver_decoded(&mut self, i: u32, tier: Tier, stored: StoredValue<'_>, expires_at: u32) {
        let codecs = &self.shared.codecs;
        let mut decoder = self.decoder.take().unwrap_or_else(|| codecs.decoder());
        match codecs.decode(stored, &mut decoder) {
            Some(value) => self.deliver_value(i, tier, Some(value), expires_at),
            None => self.miss(i),
        }
        self.decoder = Some(decoder);
    }

    #[inline(always)]
    fn deliver_value(&mut self, i: u32, tier: Tier, value: Option<&[u8]>, expires_at: u32) {
        self.counts.tiers[tier as usize] += 1;
        let outcome = if expires_at != 0 && self.now > expires_at {
            self.counts.expired += 1;
            Outcome::Expired { value, expires_at }
        } else if let Some(value) = value {
            Outcome::Hit { value, expires_at }
        } else {
            self.counts.negative += 1;
            Outcome::Negative { expires_at }
        };
        self.tell_policy(i, !matches!(outcome, Outcome::Expired { .. }));
        (self.sink)(i as usize, outcome);
    }

    fn miss(&mut self, i: u32) {
        self.counts.misses += 1;
        self.tell_policy(i, false);
        (self.sink)(i as usize, Outcome::Miss);
    }

    /// Tells the admission policy of a read, if it learns of any.
    #[inline(always)]
    fn tell_policy(&self, i: u32, found: bool) {
        if self.sample_threshold > 0 {
            self.tell_sampled(i, found);
        }
    }

    /// Tells the policy of a read of a sampled key, unless it is busy: it does not need all of them.
    #[inline(never)]
    fn tell_sampled(&self, i: u32, found: bool) {
        let key = self.keys[i as usize];
        if sample_hash(key.hash()) < self.sample_threshold
            && let Some((_, dram_first)) = self.shared.dram_first()
            && let Ok(mut admitter) = dram_first.admitter.try_lock()
        {
            admitter.on_read(key, found);
        }
    }

    /// Adds what was counted to the cache's counters.
    pub fn count(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.shared.codecs.take_back(decoder);
        }
        let OutcomeCounts { tiers: [memory, block, buffer, flash], expired, negative, misses, of_blocks } =
            std::mem::take(&mut self.counts);
        let counters = &self.shared.counters;
        add(&counters.hits_memory, memory + block);
        add(&counters.hits_block, block);
        add(&counters.hits_buffer, buffer);
        add(&counters.hits_flash, flash);
        add(&counters.expired, expired);
        add(&counters.negative, negative);
        add(&counters.misses, misses);
        if let Some(blocks) = &self.shared.blocks {
            blocks.count(of_blocks);
        }
    }
}
