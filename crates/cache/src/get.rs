//! Lookup of a batch: plan, fetch, deliver.

mod ahead;
mod arriving;
mod fetch;
mod io;
mod opening;
mod order;
mod parallel;
mod pending;
mod room;
mod waiting;

pub use io::Io;
pub use pending::Pending;

use crate::admission::sample_hash;
use crate::batch::Asked;
use crate::framing::Placed;
use crate::framing::block::payload_size;
use crate::key::Key;
use crate::limits::{LOCKED_LOOKUPS, LOOKUP_ROUNDS_MAX, PLANNED_KEYS, SHARDS, SIDE_BY_SIDE};
use crate::memory::{At, EntryState};
use crate::partition::{Flash, Partition, Shard, Shared};
use crate::prefetch::prefetch;
use crate::search::KeyDigest;
use crate::stats::add;
use granary_log::sync::sync::atomic::{AtomicBool, Ordering};
use room::Scratch;
use std::ops::Range;

/// What the lookup of one key yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The value.
    Hit {
        /// The value.
        value: &'a [u8],
        /// Unix time in seconds after which it is expired; 0: never.
        expires_at: u32,
    },
    /// The source does not have this key.
    Negative {
        /// Unix time in seconds after which the entry is expired; 0: never.
        expires_at: u32,
    },
    /// What was known until `expires_at`.
    Expired {
        /// The value; `None`: the entry was negative.
        value: Option<&'a [u8]>,
        /// Unix time in seconds after which the entry was expired.
        expires_at: u32,
    },
    /// Nothing is known of this key.
    Miss,
}

/// A place to look for a key.
#[derive(Clone, Copy, Debug)]
struct Probe {
    place: u64,
    key: u32,
    /// The digest of the key's bytes.
    digest: KeyDigest,
    /// The entry was found before, as far as the index knows.
    recent: bool,
}

/// A place that did not hold the key it was looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FalsePositive {
    key: u32,
    place: u64,
    /// Segment that the block was read as; 0: the block says nothing for later.
    sequence: u64,
}

/// Where an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Memory,
    Buffer,
    Flash,
}

#[derive(Default)]
struct Counts {
    tiers: [u64; 3],
    expired: u64,
    negative: u64,
    misses: u64,
}

impl Partition {
    /// See [`Cache`](crate::Cache).
    pub fn get_many(&self, io: &mut Io, keys: &[Key<'_>], now: u32, sink: impl FnMut(usize, Outcome<'_>)) {
        let (mut scratch, resolved) = io.begin(keys);
        let counts = Counts::default();
        let sample_threshold = self.shared.begin_lookup(now);
        let mut lookup =
            Lookup { shared: &self.shared, keys, resolved: &resolved, now, sink, counts, sample_threshold };
        scratch.begin();
        lookup.plan(&mut scratch, 0..keys.len());
        lookup.go_on(io, &mut scratch, 1);
        lookup.count();
        io.end((scratch, resolved));
    }
}

/// One batch on its way.
struct Lookup<'a, S> {
    shared: &'a Shared,
    keys: &'a [Key<'a>],
    /// Of each key: whether a block had it. Another thread may be looking for it in another block.
    resolved: &'a [AtomicBool],
    now: u32,
    sink: S,
    counts: Counts,
    /// The admission policy wants to know of keys that drew less.
    sample_threshold: u64,
}

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Fetches what is wanted, and plans again what was not where it should be, until nothing is wanted.
    fn go_on(&mut self, io: &mut Io, scratch: &mut Scratch, first_round: usize) {
        let Some(flash) = &self.shared.flash else { return };
        for round in first_round.. {
            if scratch.probes.is_empty() {
                return;
            }
            self.fetch(flash, io, scratch);
            self.plan_again(scratch, round == LOOKUP_ROUNDS_MAX);
        }
    }

    /// Asks RAM tier and index for some of the keys, each shard once for many of them.
    fn plan(&mut self, scratch: &mut Scratch, range: Range<usize>) {
        let Scratch { by_shard, probes, .. } = scratch;
        let mut start = range.start as u32;
        for keys in self.keys[range].chunks(PLANNED_KEYS) {
            by_shard.deal(keys.iter().map(|key| key.hash()), start);
            start += keys.len() as u32;
            // Threads that begin with different shards wait less for each other.
            let first = keys[0].hash().shard();
            for shard in (first..SHARDS).chain(0..first) {
                for asked in by_shard.of(shard).chunks(LOCKED_LOOKUPS) {
                    self.plan_some(&mut self.shared.lock(shard), asked, probes);
                }
            }
        }
    }

    fn plan_some(&mut self, shard: &mut Shard, asked: &[Asked], probes: &mut Vec<Probe>) {
        let mut parts = asked.chunks(SIDE_BY_SIDE);
        let mut part = parts.next().unwrap_or_default();
        let mut candidates = self.seek(shard, part);
        while !part.is_empty() {
            // On their way while this part is looked at.
            let next = parts.next().unwrap_or_default();
            let candidates_of_next = self.seek(shard, next);
            for (asked, candidate) in part.iter().zip(candidates) {
                self.plan_key(shard, *asked, candidate, probes);
            }
            (part, candidates) = (next, candidates_of_next);
        }
    }

    /// Finds the entries in RAM that may be those of the keys, and has the processor fetch what will be looked at.
    #[inline]
    fn seek(&self, shard: &Shard, part: &[Asked]) -> [Option<At>; SIDE_BY_SIDE] {
        let mut candidates = [None; SIDE_BY_SIDE];
        for (asked, candidate) in part.iter().zip(&mut candidates) {
            *candidate = shard.memory.candidate(asked.hash);
        }
        for (asked, candidate) in part.iter().zip(&candidates) {
            prefetch(self.keys[asked.key as usize].bytes());
            match candidate {
                Some(candidate) => shard.memory.prefetch(*candidate),
                None if self.shared.flash.is_some() => {
                    shard.table.prefetch(asked.hash.below_shard(shard.table.hash_bits()));
                }
                None => {}
            }
        }
        candidates
    }

    #[inline]
    fn plan_key(
        &mut self,
        shard: &mut Shard,
        Asked { hash, key }: Asked,
        candidate: Option<At>,
        probes: &mut Vec<Probe>,
    ) {
        if let Some(at) = candidate
            && let Some(stored) = shard.memory.get(self.keys[key as usize], at)
        {
            self.deliver(key, Tier::Memory, stored.value, stored.expires_at);
            return;
        }
        let before = probes.len();
        if self.shared.flash.is_some() {
            let bits = hash.below_shard(shard.table.hash_bits());
            let digest = KeyDigest::of(self.keys[key as usize].bytes());
            shard.table.find(bits, |place, recent| probes.push(Probe { place, key, digest, recent }));
        }
        if probes.len() == before {
            self.miss(key);
        }
    }

    /// For the keys that were not found where they should be: an entry that moved or was replaced
    /// while it was read is somewhere else now; a tag that another key shares is a miss.
    fn plan_again(&mut self, scratch: &mut Scratch, last: bool) {
        let Scratch { probes, false_positives, .. } = scratch;
        probes.clear();
        false_positives.sort_unstable();
        false_positives.dedup();
        let mut missed = Vec::new();
        for false_positives in false_positives.chunk_by(|a, b| a.key == b.key) {
            let i = false_positives[0].key;
            if self.is_resolved(i) {
                continue;
            }
            let key = self.keys[i as usize];
            let mut shard = self.shared.shard(key.hash());
            if let Some(at) = shard.memory.candidate(key.hash())
                && let Some(stored) = shard.memory.get(key, at)
            {
                // It was taken back to RAM meanwhile.
                if self.resolve(i) {
                    self.deliver(i, Tier::Memory, stored.value, stored.expires_at);
                }
                continue;
            }
            let before = probes.len();
            let digest = KeyDigest::of(key.bytes());
            let bits = key.hash().below_shard(shard.table.hash_bits());
            shard.table.find(bits, |place, recent| {
                if last || false_positives.iter().all(|t| t.place != place) {
                    probes.push(Probe { place, key: i, digest, recent });
                }
            });
            if last || probes.len() == before {
                probes.truncate(before);
                for t in false_positives.iter().filter(|t| t.sequence > 0) {
                    shard.collisions.add(key, t.place, t.sequence);
                }
                missed.push(i);
            }
        }
        for i in missed {
            self.resolve(i);
            self.miss(i);
        }
    }

    fn is_resolved(&self, key: u32) -> bool {
        self.resolved[key as usize].load(Ordering::Relaxed)
    }

    /// Whoever is told `true` has to deliver the key's outcome. Only that matters: the outcome itself goes to the
    /// sink of the thread that has it.
    #[inline]
    fn resolve(&self, key: u32) -> bool {
        !self.resolved[key as usize].swap(true, Ordering::Relaxed)
    }

    #[inline]
    fn deliver(&mut self, i: u32, tier: Tier, value: Option<&[u8]>, expires_at: u32) {
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
        self.tell(i, !matches!(outcome, Outcome::Expired { .. }));
        (self.sink)(i as usize, outcome);
    }

    fn miss(&mut self, i: u32) {
        self.counts.misses += 1;
        self.tell(i, false);
        (self.sink)(i as usize, Outcome::Miss);
    }

    /// Tells the admission policy of a read, unless that is busy: it learns from samples anyway.
    #[inline]
    fn tell(&self, i: u32, found: bool) {
        let key = self.keys[i as usize];
        if self.sample_threshold > 0
            && sample_hash(key.hash()) < self.sample_threshold
            && let Some((_, hybrid)) = self.shared.hybrid()
            && let Ok(mut admitter) = hybrid.admitter.try_lock()
        {
            admitter.on_read(key, found);
        }
    }

    fn count(&self) {
        let counters = &self.shared.counters;
        let [memory, buffer, flash] = self.counts.tiers;
        add(&counters.hits_memory, memory);
        add(&counters.hits_buffer, buffer);
        add(&counters.hits_flash, flash);
        add(&counters.expired, self.counts.expired);
        add(&counters.negative, self.counts.negative);
        add(&counters.misses, self.counts.misses);
    }
}

impl Shared {
    /// Notes what time it is; gives the `sample_threshold` of a lookup.
    fn begin_lookup(&self, now: u32) -> u64 {
        self.note_time(now);
        self.hybrid().map_or(0, |(_, hybrid)| hybrid.sample_threshold.load(Ordering::Relaxed))
    }

    /// Copies an entry just read from `at` to the RAM tier, if it is still the current one: the index
    /// has it there, and the ring did not come round to its block meanwhile.
    fn promote(&self, flash: &Flash, key: Key<'_>, at: Placed, value: Option<&[u8]>, expires_at: u32) {
        let now = self.time();
        let mut shard = self.shard(key.hash());
        let bits = key.hash().below_shard(shard.table.hash_bits());
        let same_segment = flash.log.sequence_of(at.block) == at.sequence;
        if same_segment
            && self.has_room_for_copy(flash, key, value)
            && shard.table.contains(bits, at.block).is_some()
        {
            let kept = shard.memory.insert(key, value, expires_at, EntryState::Clean, now);
            add(&self.counters.promoted, u64::from(kept));
        }
    }

    /// A block that is not what it should be holds nothing any more. Returns whether the index spoke of it.
    fn forget_place(&self, key: Key<'_>, place: u64) -> bool {
        let mut shard = self.shard(key.hash());
        let bits = key.hash().below_shard(shard.table.hash_bits());
        let removed = shard.table.remove(bits, place);
        add(&self.counters.lost, u64::from(removed));
        removed
    }
}

/// Blocks of `flash` that a record of `len` bytes spans.
fn blocks_spanned(flash: &Flash, len: usize) -> usize {
    len.div_ceil(payload_size(flash.log.geometry()))
}
