//! DRAM first: what is put stays in RAM until it has to leave, and only then, and only if the policy
//! says so, goes to flash.
//!
//! What is put here writes nothing, unless an older version is on flash: that gets a deletion, so that a
//! kill does not bring it back while the newer one was in RAM only. Whether there is one, the index says;
//! what it cannot say is written down in [`Hybrid::unindexed_until`].

use crate::admission::{Admission, Admitter};
use crate::batch::ByShard;
use crate::cleaner::Room;
use crate::key::Key;
use crate::limits::{HYBRID_MEMORY_PARTS, PUT_CHUNK, SHARDS};
use crate::memory::{Kept, Leave, Memory};
use crate::partition::{Flash, Shard, Shared};
use crate::put::Entry;
use crate::show::is_other_key;
use crate::stats::add;
use granary_log::Log;
use granary_log::sync::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use granary_log::sync::sync::{Condvar, Mutex};
use std::time::Instant;

/// What a cache needs to be DRAM first.
pub(crate) struct Hybrid {
    /// Lock order: after the shard's.
    pub admitter: Mutex<Admitter>,
    /// Whether its policy ever writes.
    pub writes: bool,
    /// Of its [`Admitter::watched_below`], to be read without the lock.
    pub watched_below: AtomicU64,
    /// Until the log has written this segment, there may be entries on flash that a recovery would find
    /// and the index does not know: blocks that could not be read may be readable the next time.
    pub unindexed_until: AtomicU64,
    /// The newest time that was told with a lookup.
    pub now: AtomicU32,
    pub orders: Mutex<Orders>,
    pub ordered: Condvar,
    /// The policy's clock begins here.
    pub opened: Instant,
}

/// What the cleaner is told.
#[derive(Default)]
pub(crate) struct Orders {
    pub wanted: bool,
    pub stop: bool,
}

impl Hybrid {
    /// `None`: everything that is put is written.
    pub fn new(admission: &Admission, log: &Log, bytes_per_day: Option<u64>) -> Option<Self> {
        let geometry = log.geometry();
        let flash_bytes = geometry.file_bytes();
        let mut admitter = Admitter::new(admission, flash_bytes, bytes_per_day, fastrand::u64(..));
        let free_segments = geometry.segments().saturating_sub(log.durable());
        admitter.set_free_bytes(free_segments * geometry.segment_bytes());
        (*admission != Admission::All).then(|| Self {
            writes: admitter.writes(),
            watched_below: AtomicU64::new(admitter.watched_below()),
            admitter: Mutex::new(admitter),
            unindexed_until: AtomicU64::new(0),
            now: AtomicU32::new(0),
            orders: Mutex::default(),
            ordered: Condvar::new(),
            opened: Instant::now(),
        })
    }

    /// Notes what time it is; gives `watched_below`.
    pub fn begin_lookup(&self, now: u32) -> u64 {
        if self.now.load(Ordering::Relaxed) < now {
            self.now.fetch_max(now, Ordering::Relaxed);
        }
        self.watched_below.load(Ordering::Relaxed)
    }

    /// The cleaner has no more work.
    pub fn order_end(&self) {
        self.orders.lock().expect("no panic under the lock").stop = true;
        self.ordered.notify_one();
    }

    /// The cleaner has work.
    pub fn order_cleaning(&self) {
        let mut orders = self.orders.lock().expect("no panic under the lock");
        if !orders.wanted {
            orders.wanted = true;
            self.ordered.notify_one();
        }
    }
}

impl Flash {
    /// From now on there may be entries on flash that the index does not know. To be called before it
    /// forgets them, or under their shard's lock.
    pub fn note_unindexed(&self) {
        if let Some(hybrid) = &self.hybrid {
            let until = self.log.head() + self.log.geometry().segments();
            hybrid.unindexed_until.fetch_max(until, Ordering::AcqRel);
        }
    }

    /// To be asked under the lock of the shard in question.
    fn has_unindexed(&self, hybrid: &Hybrid) -> bool {
        let until = hybrid.unindexed_until.load(Ordering::Acquire);
        until > 0 && self.log.durable() < until
    }
}

impl Shared {
    /// Keeps entries in RAM, those that fit it.
    pub fn keep_many(&self, flash: &Flash, hybrid: &Hybrid, entries: &[Entry<'_>]) {
        let mut first = 0;
        while first < entries.len() {
            let is_large = |entry: &Entry<'_>| hybrid.writes && is_large(entry, self.memory_bytes);
            let large = is_large(&entries[first]);
            let same = |entry: &&Entry<'_>| is_large(entry) == large;
            let run = &entries[first..first + entries[first..].iter().take_while(same).count()];
            first += run.len();
            if large {
                run.iter().for_each(|entry| self.put_large(flash, hybrid, *entry));
            } else {
                self.keep(flash, hybrid, run);
            }
        }
        let mut admitter = hybrid.admitter.lock().expect("no panic under the lock");
        for Entry { key, value, .. } in entries {
            admitter.on_put(*key, bytes_of(*key, *value));
        }
        hybrid.watched_below.store(admitter.watched_below(), Ordering::Relaxed);
    }

    /// Writes an entry that is too large to wait in RAM, if there is a budget for it.
    fn put_large(&self, flash: &Flash, hybrid: &Hybrid, entry: Entry<'_>) {
        let affordable = {
            let mut admitter = hybrid.admitter.lock().expect("no panic under the lock");
            admitter.affords(bytes_of(entry.key, entry.value), hybrid.opened.elapsed().as_secs_f64())
        };
        if affordable {
            self.put_through(flash, &[entry]);
        } else {
            add(&self.counters.rejected, 1);
            self.delete_kept(flash, hybrid, &[entry.key]);
        }
    }

    fn keep(&self, flash: &Flash, hybrid: &Hybrid, entries: &[Entry<'_>]) {
        let mut over = Vec::new();
        let mut crowded = Vec::new();
        for (i, asked) in ByShard::of_batch(entries.iter().map(|entry| entry.key.hash())).shards() {
            let mut shard = self.lock(i);
            let unindexed = flash.has_unindexed(hybrid);
            // All keys of a shard under one lock: of two entries with one key the later one stays.
            for asked in asked {
                let entry = entries[asked.key as usize];
                if unindexed || is_on_flash(flash, &shard, entry.key) {
                    over.push(entry);
                } else {
                    keep_one(&mut shard, entry);
                }
            }
            if Room::of(flash, &shard.memory) != Room::Enough {
                crowded.push(i);
            }
        }
        for chunk in over.chunks(PUT_CHUNK) {
            let keys: Vec<Key<'_>> = chunk.iter().map(|entry| entry.key).collect();
            self.delete_chunk(flash, &keys, |shard, i| keep_one(shard, chunk[i]));
            crowded.extend(keys.iter().map(|key| key.hash().shard()));
        }
        for shard in crowded {
            self.make_room(flash, hybrid, shard);
        }
    }

    /// Whether a copy of what is on flash may enter RAM. DRAM first, it must not wait for what is in RAM
    /// only to leave: only the cleaner can tell whether it may. So it enters only if there is room for it.
    pub fn has_room_for_copy(
        &self,
        flash: &Flash,
        memory: &Memory,
        key: Key<'_>,
        value: Option<&[u8]>,
    ) -> bool {
        let Some(hybrid) = &flash.hybrid else { return true };
        let after = Room::beside(flash, memory, bytes_of(key, value) as usize);
        if after != Room::Enough {
            hybrid.order_cleaning();
        }
        after > Room::TooLittle && Room::of(flash, memory) >= Room::Less
    }

    /// Has the cleaner come, or does its work where it is too far behind.
    fn make_room(&self, flash: &Flash, hybrid: &Hybrid, shard: usize) {
        let found = Room::of(flash, &self.lock(shard).memory);
        if found != Room::Enough {
            hybrid.order_cleaning();
        }
        if found <= Room::Little {
            self.clean_shard(flash, hybrid, shard);
            let mut locked = self.lock(shard);
            if Room::of(flash, &locked.memory) == Room::TooLittle {
                // The device is behind, too: entries leave that nobody asked the policy about.
                let budget = locked.memory.budget_bytes();
                let mut unseen = 0;
                locked.memory.shrink(budget, |_| {
                    unseen += 1;
                    Leave::Go
                });
                add(&self.counters.left_unseen, unseen);
            }
        }
    }

    /// Removes keys; what is in RAM only leaves no trace.
    pub fn delete_kept(&self, flash: &Flash, hybrid: &Hybrid, keys: &[Key<'_>]) {
        let mut over = Vec::new();
        for (i, asked) in ByShard::of_batch(keys.iter().map(|key| key.hash())).shards() {
            let mut shard = self.lock(i);
            let unindexed = flash.has_unindexed(hybrid);
            for asked in asked {
                let key = keys[asked.key as usize];
                if unindexed || is_on_flash(flash, &shard, key) {
                    over.push(key);
                } else {
                    shard.memory.remove(key);
                }
            }
        }
        for chunk in over.chunks(PUT_CHUNK) {
            self.delete_chunk(flash, chunk, |_, _| {});
        }
    }

    /// Keeps what was on flash, and must earn that again.
    pub fn keep_again(&self, shard: &mut Shard, entry: Entry<'_>) {
        shard.memory.remove(entry.key);
        keep_one(shard, entry);
        add(&self.counters.taken_back, 1);
    }
}

fn bytes_of(key: Key<'_>, value: Option<&[u8]>) -> u64 {
    (key.bytes().len() + value.map_or(0, <[u8]>::len)) as u64
}

/// Whether the entry is too large a part of a shard's RAM to wait there.
fn is_large(entry: &Entry<'_>, memory_bytes: u64) -> bool {
    bytes_of(entry.key, entry.value) * HYBRID_MEMORY_PARTS > memory_bytes / SHARDS as u64
}

fn keep_one(shard: &mut Shard, Entry { key, value, expires_at }: Entry<'_>) {
    shard.memory.insert(key, value, expires_at, Kept::Only);
}

/// Whether the index speaks of a version of this key, as far as is known. The holder of the shard's lock asks.
fn is_on_flash(flash: &Flash, shard: &Shard, key: Key<'_>) -> bool {
    let bits = key.hash().below_shard(shard.table.hash_bits());
    shard.table.any(bits, |place| !is_other_key(flash, &shard.hints, key, place))
}
