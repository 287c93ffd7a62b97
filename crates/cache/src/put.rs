//! Storing and deleting: into the write buffer, then the journal, then the index (`publish.rs`).

use crate::batch::ByShard;
use crate::framing::{Placed, Records, append};
use crate::key::{Key, WordKind, parse_word};
use crate::limits::{PUT_CHUNK, SHARDS, TOMBSTONES_MAX};
use crate::memory::{EntryState, Eviction};
use crate::partition::{Flash, Partition, Shard, Shared};
use crate::record::{HEADER_SIZE_MAX, HeaderBytes};
use crate::stats::add;
use granary_log::Writer;
use granary_log::sync::sync::atomic::Ordering;
use std::collections::HashSet;
use std::io;

/// An entry to store.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its key; at most a block long, less some 30 bytes.
    pub key: Key<'a>,
    /// `None`: a negative entry, the source does not have this key.
    pub value: Option<&'a [u8]>,
    /// Unix time in seconds after which (`now > expires_at`) the entry is expired; 0: never.
    pub expires_at: u32,
}

/// Why an entry is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device is behind.
    #[error("the device is behind with writing: wait for it, or have larger or more write buffers")]
    NoRoom,
    /// The entry is longer than a write buffer or half of the RAM, or its key is longer than a block.
    #[error("the entry is longer than a write buffer or half of the RAM, or its key than a block")]
    TooLong,
}

/// Is told of each entry that is not kept, by its number.
pub(crate) type Refused<'a> = dyn FnMut(usize, Refusal) + 'a;

/// What whoever appends keeps from one time to the next.
#[derive(Default)]
pub(crate) struct Putting {
    /// Words of deletions that found no room in the log yet.
    ///
    /// Invariant, whenever the lock is free: either there are none, or no segment is open and the
    /// journal has all of them for the segment that is opened next, which they will begin.
    tombstones: Vec<u64>,
    /// The segment that the journal has them for.
    journalled_for: u64,
}

impl Partition {
    /// See [`Cache`](crate::Cache).
    pub fn put_many(&self, entries: &[Entry<'_>], mut refused: impl FnMut(usize, Refusal)) {
        let counters = &self.shared.counters;
        let mut refused = |i, why| {
            match why {
                Refusal::NoRoom => add(&counters.puts_dropped, 1),
                Refusal::TooLong => add(&counters.puts_too_large, 1),
            }
            refused(i, why);
        };
        add(&self.shared.counters.puts, entries.len() as u64);
        let bytes = |entry: &Entry<'_>| entry.key.bytes().len() + entry.value.map_or(0, <[u8]>::len);
        add(&self.shared.counters.bytes_put, entries.iter().map(bytes).sum::<usize>() as u64);
        let Some(flash) = &self.shared.flash else {
            self.shared.keep_whole(entries, &mut refused);
            return;
        };
        match &flash.hybrid {
            Some(hybrid) => self.shared.keep_many(flash, hybrid, entries, &mut refused),
            None => self.shared.put_through(flash, entries, &mut refused),
        }
    }

    /// See [`Cache`](crate::Cache).
    pub fn delete_many(&self, keys: &[Key<'_>]) {
        let Some(flash) = &self.shared.flash else {
            for key in keys {
                self.shared.shard(key.hash()).memory.remove(*key);
            }
            return;
        };
        match &flash.hybrid {
            Some(hybrid) => self.shared.delete_kept(flash, hybrid, keys),
            None => {
                for chunk in keys.chunks(PUT_CHUNK) {
                    self.shared.delete_chunk(flash, chunk, |_, _| {});
                }
            }
        }
    }
}

impl Shared {
    /// Keeps entries in RAM, which is the whole cache; `refused` is told of those that are too large for it.
    fn keep_whole(&self, entries: &[Entry<'_>], refused: &mut Refused<'_>) {
        let now = self.time();
        for (i, entry) in entries.iter().enumerate() {
            let shard = entry.key.hash().shard();
            if !self.lock(shard).memory.insert(
                entry.key,
                entry.value,
                entry.expires_at,
                EntryState::Clean,
                now,
            ) {
                refused(i, Refusal::TooLong);
            } else if self.pool.used() > self.pool.bytes() {
                self.relieve(shard, |_| Eviction::Keep);
            }
        }
    }

    /// Appends entries to the log, and copies them to RAM; `refused` is told of those that find no room.
    pub fn put_through(&self, flash: &Flash, entries: &[Entry<'_>], refused: &mut Refused<'_>) {
        let mut coming = [0; SHARDS];
        entries.iter().for_each(|entry| coming[entry.key.hash().shard()] += 1);
        for (chunk, first) in entries.chunks(PUT_CHUNK).zip((0..).step_by(PUT_CHUNK)) {
            self.put_chunk(flash, chunk, &mut coming, &mut |i, why| refused(first + i, why));
        }
    }

    /// `coming`: entries of each shard, these and what follows them in the batch.
    fn put_chunk(
        &self,
        flash: &Flash,
        entries: &[Entry<'_>],
        coming: &mut [usize; SHARDS],
        refused: &mut Refused<'_>,
    ) {
        let mut putting = flash.putting.lock().expect("no panic under the lock");
        let mut writer = flash.log.writer();
        // Deletions that wait come first: no later record may be found without them.
        let room = putting.retry(&mut writer);
        let mut placed: Vec<Option<Placed>> = vec![None; entries.len()];
        let mut bytes = 0;
        for (i, (entry, placed)) in entries.iter().zip(&mut placed).enumerate() {
            let key = entry.key.bytes();
            let len = HEADER_SIZE_MAX + key.len() + entry.value.map_or(0, <[u8]>::len);
            if !flash.fits(key.len(), len) {
                refused(i, Refusal::TooLong);
                continue;
            }
            let header = HeaderBytes::entry(key, entry.value, entry.expires_at);
            let word = entry.key.hash().word(WordKind::Entry);
            if room {
                *placed = append(&mut writer, word, &[header.as_slice(), key, entry.value.unwrap_or(&[])]);
            }
            match placed {
                Some(_) => bytes += header.as_slice().len() + key.len() + entry.value.map_or(0, <[u8]>::len),
                None => refused(i, Refusal::NoRoom),
            }
        }
        let written = placed.iter().flatten().count() as u64;
        add(&self.counters.written_through, written);
        self.measure(written, bytes as u64);
        let changes = last_placed_or_refused(entries, &placed);
        self.journal(&mut writer, &mut putting, changes.into_iter().map(|i| (entries[i].key, placed[i])));
        self.publish_many(flash, entries, &placed, coming);
        putting.retry(&mut writer);
        self.bound_tombstones(flash, putting, writer);
    }

    /// Notes what so many records of the log take.
    pub fn measure(&self, records: u64, bytes: u64) {
        add(&self.counters.records_measured, records);
        add(&self.counters.bytes_measured, bytes);
    }

    /// Deletes keys; `then` is called with each, by its number, while nobody else can change it.
    pub fn delete_chunk(&self, flash: &Flash, keys: &[Key<'_>], mut then: impl FnMut(&mut Shard, usize)) {
        let mut putting = flash.putting.lock().expect("no panic under the lock");
        let mut writer = flash.log.writer();
        putting.retry(&mut writer);
        self.journal(&mut writer, &mut putting, keys.iter().map(|key| (*key, None)));
        for (shard, asked) in ByShard::of_batch(keys.iter().map(|key| key.hash())).shards() {
            let mut locked = self.lock(shard);
            if flash.hybrid.is_none() {
                self.expect_look_alikes(&locked.table, asked.len());
            }
            for asked in asked {
                self.unpublish(flash, &mut locked, keys[asked.key as usize]);
                then(&mut locked, asked.key as usize);
            }
        }
        putting.retry(&mut writer);
        self.bound_tombstones(flash, putting, writer);
    }

    /// Makes the changes of a chunk survive a kill, before any reader can see them. Keys without a
    /// place become deletions.
    fn journal<'a>(
        &self,
        writer: &mut Writer<'_, Records>,
        putting: &mut Putting,
        changes: impl Iterator<Item = (Key<'a>, Option<Placed>)>,
    ) {
        let mut words = Vec::with_capacity(PUT_CHUNK);
        let mut sequence = 0;
        let next = writer.next_sequence();
        for (key, placed) in changes {
            let word = key.hash().word(WordKind::Deletion);
            let goes_to = placed.map_or(next, |placed| placed.sequence);
            if placed.is_none() {
                putting.tombstones.push(word);
            }
            if goes_to != sequence {
                writer.journal(sequence, &words);
                words.clear();
                sequence = goes_to;
            }
            words.push(word);
        }
        writer.journal(sequence, &words);
    }

    /// Deletes by hash what recovery found to be void; the log's journal has the words already.
    pub fn delete_words(&self, flash: &Flash, words: Vec<u64>) {
        let mut putting = flash.putting.lock().expect("no panic under the lock");
        putting.tombstones = words;
        putting.tombstones.sort_unstable();
        putting.tombstones.dedup();
        let mut writer = flash.log.writer();
        putting.retry(&mut writer);
    }

    /// With too many deletions waiting, forgetting everything is the cheaper way to be right.
    fn bound_tombstones(
        &self,
        flash: &Flash,
        mut putting: granary_log::sync::sync::MutexGuard<'_, Putting>,
        writer: Writer<'_, Records>,
    ) {
        if putting.tombstones.len() > TOMBSTONES_MAX {
            let entries = |shard| {
                let shard = self.lock(shard);
                (shard.table.len() + shard.memory.dirty()) as u64
            };
            add(&self.counters.lost, (0..SHARDS).map(entries).sum());
            drop(writer);
            tracing::error!("the device takes no writes: the cache starts over empty");
            if let Err(error) = self.reset(flash, &mut putting) {
                tracing::error!(%error, "cannot start over");
            }
        }
    }

    /// Forgets everything and starts another instance of the log.
    pub fn reset(&self, flash: &Flash, putting: &mut Putting) -> io::Result<()> {
        let mut writer = flash.log.writer();
        // The old instance is there until the new one has begun: who changes a key meanwhile has to wait for that.
        flash.note_unindexed();
        for shard in 0..SHARDS {
            let mut shard = self.lock(shard);
            shard.table.clear();
            shard.memory.clear();
            shard.collisions.clear();
        }
        putting.tombstones.clear();
        flash.awaits_flusher.store(true, Ordering::Release);
        let cleared = writer.clear();
        flash.awaits_flusher.store(false, Ordering::Release);
        if let (Ok(()), Some(hybrid)) = (&cleared, &flash.hybrid) {
            // The writer is held: there is nothing on flash yet.
            hybrid.unindexed_until.store(0, Ordering::Release);
        }
        cleared
    }

    /// A clean stop: all that was put or deleted is on the device. Deletions that find no room stay
    /// in the journal, and the stop counts as a kill.
    pub fn stop(&self, flash: &Flash) -> io::Result<()> {
        let mut putting = flash.putting.lock().expect("no panic under the lock");
        flash.awaits_flusher.store(true, Ordering::Release);
        for _ in 0..flash.log.geometry().segments().min(1024) {
            if putting.retry(&mut flash.log.writer()) {
                // What the RAM tier has is on flash, too, or does not outlive a stop.
                return flash.log.stop().inspect(|()| self.arena.iter().for_each(|arena| arena.remove()));
            }
            // Where the device refuses, the next attempt tells.
            let _ = flash.log.flush();
        }
        flash.log.abandon();
        Ok(())
    }
}

/// The numbers of the entries that change what is known: all but the refused ones of keys that are placed later. The
/// deletion of such a key would be appended behind its newer entry, and end that at the next start.
fn last_placed_or_refused(entries: &[Entry<'_>], placed: &[Option<Placed>]) -> Vec<usize> {
    let all_placed = placed.iter().all(Option::is_some);
    if all_placed || placed.iter().all(Option::is_none) {
        return (0..entries.len()).collect();
    }
    let mut placed_later = HashSet::new();
    let mut changes: Vec<usize> = (0..entries.len())
        .rev()
        .filter(|&i| {
            let hash = entries[i].key.hash().to_bits();
            if placed[i].is_some() {
                placed_later.insert(hash);
                return true;
            }
            !placed_later.contains(&hash)
        })
        .collect();
    changes.reverse();
    changes
}

impl Putting {
    /// Appends the deletions that wait, as far as there is room; `false`: some still wait.
    pub fn retry(&mut self, writer: &mut Writer<'_, Records>) -> bool {
        let mut sequence = 0;
        let mut words = Vec::new();
        // A segment that is found whole voids what the journal has for it; that is all that waits,
        // and some of it may go to the segments after it.
        writer.hold();
        while let Some(word) = self.tombstones.last() {
            let header = HeaderBytes::deletion(parse_word(*word).0);
            let Some(placed) = append(writer, *word, &[header.as_slice()]) else { break };
            if placed.sequence != sequence {
                writer.journal(sequence, &words);
                words.clear();
                sequence = placed.sequence;
            }
            words.push(*word);
            self.tombstones.pop();
        }
        writer.journal(sequence, &words);
        let next = writer.next_sequence();
        if !self.tombstones.is_empty() && self.journalled_for < next {
            writer.journal(next, &self.tombstones);
            self.journalled_for = next;
        }
        writer.release();
        self.tombstones.is_empty()
    }
}
