//! Makes room in RAM ahead of those who put, off their way: the oldest entries that nobody read leave,
//! to flash or for good, as the policy says.

use crate::admission::{Candidate, Verdict};
use crate::hybrid::Hybrid;
use crate::key::{Key, WordKind};
use crate::limits::{HOT_PERCENT_MAX, RECORD_COST_BYTES, SAVE_TRIES_MAX, SHARDS, SPARE_MEMORY_PARTS};
use crate::memory::{Leave, Leaving, Memory};
use crate::partition::{Flash, Shard, Shared};
use crate::stats::add;
use granary_log::sync::sync::atomic::Ordering;

/// RAM of a shard that is kept free: with all shards' room for a segment, or a part of a small tier.
fn spare_bytes(flash: &Flash, budget: u64) -> u64 {
    let segment = flash.log.geometry().segment_bytes() / SHARDS as u64;
    (budget / SPARE_MEMORY_PARTS).max(segment.min(budget / 4))
}

/// Which of the entries that leave RAM the policy is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Policy,
    /// All go to flash: the cache is being closed.
    Nobody,
}

/// How much RAM of a shard is free.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// The budget is exceeded.
    TooLittle,
    /// Less than half of what the cleaner keeps free.
    Little,
    /// Less than the cleaner keeps free.
    Less,
    Enough,
}

impl Room {
    /// How much RAM of a shard is free.
    pub fn of(flash: &Flash, memory: &Memory) -> Self {
        Self::beside(flash, memory, 0)
    }

    /// How much would be with an entry of so many bytes more.
    pub fn beside(flash: &Flash, memory: &Memory, bytes: usize) -> Self {
        let budget = memory.budget_bytes();
        let wanted = spare_bytes(flash, budget);
        match budget.checked_sub((memory.bytes_allocated() + bytes) as u64) {
            None => Self::TooLittle,
            Some(free) if free < wanted / 2 => Self::Little,
            Some(free) if free < wanted => Self::Less,
            Some(_) => Self::Enough,
        }
    }
}

impl Shared {
    /// Cleans until the cache is closed; run it on a thread of its own.
    pub fn clean(&self, flash: &Flash, hybrid: &Hybrid) {
        loop {
            let mut orders = hybrid.orders.lock().expect("no panic under the lock");
            while !orders.wanted && !orders.stop {
                orders = hybrid.ordered.wait(orders).expect("no panic under the lock");
            }
            if orders.stop {
                return;
            }
            orders.wanted = false;
            drop(orders);
            for shard in 0..SHARDS {
                if Room::of(flash, &self.lock(shard).memory) != Room::Enough {
                    self.clean_shard(flash, hybrid, shard);
                }
            }
        }
    }

    /// Makes room in a shard.
    pub fn clean_shard(&self, flash: &Flash, hybrid: &Hybrid, shard: usize) {
        let budget = self.lock(shard).memory.budget_bytes();
        self.let_go(flash, hybrid, shard, budget - spare_bytes(flash, budget), Ask::Policy);
    }

    /// Lets entries of a shard leave until it has no more than `most` bytes allocated, or the device is
    /// too far behind; `false`: it is.
    ///
    /// An entry goes from RAM to flash under the shard's lock: no reader misses it, nobody changes it
    /// meanwhile. An older version of it on flash was deleted when this was put. What only looks alike and is
    /// taken over, the journal has to know of: the index does not any more, so its next version may stay in RAM, and a
    /// kill before this segment is on the device would bring it back.
    fn let_go(&self, flash: &Flash, hybrid: &Hybrid, shard: usize, most: u64, ask: Ask) -> bool {
        let mut putting = flash.putting.lock().expect("no panic under the lock");
        let mut writer = flash.log.writer();
        if !putting.retry(&mut writer) {
            return false;
        }
        let mut locked = self.lock(shard);
        let mut admitter = hybrid.admitter.lock().expect("no panic under the lock");
        let now = hybrid.opened.elapsed().as_secs_f64();
        let second = hybrid.now.load(Ordering::Relaxed);
        let Shard { table, memory, hints } = &mut *locked;
        let (mut admitted, mut rejected, mut behind) = (0, 0, false);
        memory.shrink(most, |Leaving { hash, entry, reads, updates }| {
            if entry.is_expired(second) || !flash.fits(entry.key.len(), entry.len()) {
                return Leave::Go;
            }
            let key = Key::hashed(hash, entry.key);
            let bytes = (entry.len() + RECORD_COST_BYTES) as u64;
            let candidate = Candidate { key, bytes, reads, updates };
            if ask == Ask::Policy && admitter.decide(&candidate, now) == Verdict::Drop {
                rejected += 1;
                return Leave::Go;
            }
            let Some(placed) = writer.append(hash.word(WordKind::Entry), &[entry.as_bytes()]) else {
                behind = true;
                return Leave::Stay;
            };
            admitted += 1;
            if table.any(hash.below_shard(table.hash_bits()), |_| true) {
                writer.journal(placed.sequence, &[hash.word(WordKind::Deletion)]);
            }
            self.index(flash, table, hints, key, placed);
            Leave::Go
        });
        table.cool(table.len() * HOT_PERCENT_MAX / 100);
        add(&self.counters.admitted, admitted);
        add(&self.counters.rejected, rejected);
        !behind
    }

    /// Writes what is in RAM only to flash, the oldest first, as far as the device takes it: the cache is
    /// being closed.
    pub fn save_memory(&self, flash: &Flash, hybrid: &Hybrid) {
        let saves = hybrid.admitter.lock().expect("no panic under the lock").writes();
        for shard in (0..SHARDS).filter(|_| saves) {
            for _ in 0..SAVE_TRIES_MAX {
                if self.let_go(flash, hybrid, shard, 0, Ask::Nobody) {
                    break;
                }
                flash.log.flush();
            }
        }
    }
}
