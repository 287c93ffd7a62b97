//! DRAM first: what is put stays in RAM until it has to leave, and only then, and only if the policy
//! says so, goes to flash.
//!
//! What is put here writes nothing, unless an older version is on flash: that gets a deletion, so that a
//! kill does not bring it back while the newer one was in RAM only. Whether there is one, the index says;
//! what it cannot say is written down in [`Hybrid::unindexed_until`].

use crate::admission::{Admission, Admitter};
use crate::batch::ByShard;
use crate::cleaner::Room;
use crate::framing::Log;
use crate::key::Key;
use crate::limits::PUT_CHUNK;
use crate::memory::{EntryState, Eviction};
use crate::partition::{Flash, Shard, Shared};
use crate::publish::is_other_key;
use crate::put::{Entry, Refusal, Refused};
use crate::stats::add;
use granary_log::sync::sync::atomic::{AtomicU64, Ordering};
use granary_log::sync::sync::{Condvar, Mutex};
use std::time::Instant;

/// What a cache needs to be DRAM first.
pub(crate) struct Hybrid {
    /// Lock order: after the shard's.
    pub admitter: Mutex<Admitter>,
    /// Whether its policy ever writes.
    pub writes: bool,
    /// Of its [`Admitter::sample_threshold`], to be read without the lock.
    pub sample_threshold: AtomicU64,
    /// Until the log has written this segment, there may be entries on flash that a recovery would find
    /// and the index does not know: blocks that could not be read may be readable the next time.
    pub unindexed_until: AtomicU64,
    pub requests: Mutex<FlushRequests>,
    pub requested: Condvar,
    /// The policy's clock begins here.
    pub opened: Instant,
}

/// What the cleaner is told.
#[derive(Default)]
pub(crate) struct FlushRequests {
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
            sample_threshold: AtomicU64::new(admitter.sample_threshold()),
            admitter: Mutex::new(admitter),
            unindexed_until: AtomicU64::new(0),
            requests: Mutex::default(),
            requested: Condvar::new(),
            opened: Instant::now(),
        })
    }

    /// The cleaner has no more work.
    pub fn order_end(&self) {
        self.requests.lock().expect("no panic under the lock").stop = true;
        self.requested.notify_one();
    }

    /// The cleaner has work.
    pub fn order_cleaning(&self) {
        let mut requests = self.requests.lock().expect("no panic under the lock");
        if !requests.wanted {
            requests.wanted = true;
            self.requested.notify_one();
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
    /// Keeps entries in RAM; `refused` is told of those that are kept nowhere.
    pub fn keep_many(
        &self,
        flash: &Flash,
        hybrid: &Hybrid,
        entries: &[Entry<'_>],
        refused: &mut Refused<'_>,
    ) {
        let mut first = 0;
        while first < entries.len() {
            let is_large =
                |entry: &Entry<'_>| hybrid.writes && bytes_of(entry.key, entry.value) > self.large_bytes;
            let large = is_large(&entries[first]);
            let same = |entry: &&Entry<'_>| is_large(entry) == large;
            let run = &entries[first..first + entries[first..].iter().take_while(same).count()];
            if large {
                let put = |(i, entry): (usize, &Entry<'_>)| {
                    self.put_large(flash, hybrid, *entry, &mut |_, why| refused(first + i, why));
                };
                run.iter().enumerate().for_each(put);
            } else {
                self.keep(flash, hybrid, run, &mut |i, why| refused(first + i, why));
            }
            first += run.len();
        }
        let mut admitter = hybrid.admitter.lock().expect("no panic under the lock");
        for Entry { key, value, .. } in entries {
            admitter.on_put(*key, bytes_of(*key, *value));
        }
        hybrid.sample_threshold.store(admitter.sample_threshold(), Ordering::Relaxed);
    }

    /// Writes an entry that is too large to wait in RAM, if there is a budget for it and room in the write buffers;
    /// else it waits there all the same.
    fn put_large(&self, flash: &Flash, hybrid: &Hybrid, entry: Entry<'_>, refused: &mut Refused<'_>) {
        let affordable = {
            let mut admitter = hybrid.admitter.lock().expect("no panic under the lock");
            admitter.affords(bytes_of(entry.key, entry.value), hybrid.opened.elapsed().as_secs_f64())
        };
        let mut is_written = affordable;
        if affordable {
            self.put_through(flash, &[entry], &mut |_, _| is_written = false);
        }
        if !is_written {
            self.keep(flash, hybrid, &[entry], refused);
        }
    }

    fn keep(&self, flash: &Flash, hybrid: &Hybrid, entries: &[Entry<'_>], refused: &mut Refused<'_>) {
        let mut over = Vec::new();
        let mut crowded = None;
        for (i, asked) in ByShard::of_batch(entries.iter().map(|entry| entry.key.hash())).shards() {
            let mut shard = self.lock(i);
            let unindexed = flash.has_unindexed(hybrid);
            self.expect_look_alikes(&shard.table, asked.len());
            // All keys of a shard under one lock: of two entries with one key the later one stays.
            for asked in asked {
                let entry = entries[asked.key as usize];
                if unindexed || is_on_flash(flash, &shard, entry.key) {
                    over.push(asked.key as usize);
                } else if !keep_one(&mut shard, entry) {
                    refused(asked.key as usize, Refusal::TooLong);
                }
            }
            if Room::of(flash, &self.pool) != Room::Enough {
                crowded = Some(i);
            }
        }
        for chunk in over.chunks(PUT_CHUNK) {
            let keys: Vec<Key<'_>> = chunk.iter().map(|i| entries[*i].key).collect();
            self.delete_chunk(flash, &keys, |shard, i| {
                if !keep_one(shard, entries[chunk[i]]) {
                    refused(chunk[i], Refusal::TooLong);
                }
            });
            crowded = keys.last().map(|key| key.hash().shard()).or(crowded);
        }
        if let Some(shard) = crowded {
            self.make_room(flash, hybrid, shard);
        }
    }

    /// Whether a copy of what is on flash may enter RAM. DRAM first, it must not wait for what is in RAM
    /// only to leave: only the cleaner can tell whether it may. So it enters only if there is room for it.
    pub fn has_room_for_copy(&self, flash: &Flash, key: Key<'_>, value: Option<&[u8]>) -> bool {
        let Some(hybrid) = &flash.hybrid else { return true };
        let after = Room::beside(flash, &self.pool, bytes_of(key, value));
        if after != Room::Enough {
            hybrid.order_cleaning();
        }
        after > Room::TooLittle && Room::of(flash, &self.pool) >= Room::Less
    }

    /// Has the cleaner come, or does its work where it is too far behind, in this shard first.
    fn make_room(&self, flash: &Flash, hybrid: &Hybrid, shard: usize) {
        let found = Room::of(flash, &self.pool);
        if found != Room::Enough {
            hybrid.order_cleaning();
        }
        if found <= Room::Little {
            self.clean_shards(flash, hybrid, shard, Room::Less);
            if Room::of(flash, &self.pool) == Room::TooLittle {
                // The device is behind, too: entries leave that nobody asked the policy about.
                let mut unseen = 0;
                self.relieve(shard, |_| {
                    unseen += 1;
                    Eviction::Drop
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
            self.expect_look_alikes(&shard.table, asked.len());
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
        let Entry { key, value, expires_at } = entry;
        if shard.memory.insert(key, value, expires_at, EntryState::Returned, 0) {
            add(&self.counters.taken_back, 1);
        } else {
            add(&self.counters.evicted_flash, 1);
        }
    }
}

fn bytes_of(key: Key<'_>, value: Option<&[u8]>) -> u64 {
    (key.bytes().len() + value.map_or(0, <[u8]>::len)) as u64
}

/// Keeps an entry; `false`: it is too large.
fn keep_one(shard: &mut Shard, Entry { key, value, expires_at }: Entry<'_>) -> bool {
    shard.memory.insert(key, value, expires_at, EntryState::Dirty, 0)
}

/// Whether the index speaks of a version of this key, as far as is known. The holder of the shard's lock asks.
fn is_on_flash(flash: &Flash, shard: &Shard, key: Key<'_>) -> bool {
    let bits = key.hash().below_shard(shard.table.hash_bits());
    shard.table.any(bits, |place| !is_other_key(flash, &shard.collisions, key, place))
}
