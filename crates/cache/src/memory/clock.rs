//! The clock: the hand passes over the oldest entries; those read since it last passed go round, the others leave.

use super::chunk::Chunk;
use super::entry::{
    self, COUNTS_AT, DEAD, DIRTY, FETCHED, FLAGS_AT, READ, STAMP_SHIFT, UPDATE, entry_len, hash_of, record_of,
};
use super::pool::Stamp;
use super::{COMPACT_STEPS, EntryAt, Memory, Role, spread};
use crate::entry::StoredEntry;
use crate::key::{Key, KeyHash};
use crate::record::{EntryRecord, HeaderBytes};

/// A table keeps room for at least this many entries.
const TABLE_CAPACITY_KEPT: usize = 64;

/// An entry that is in RAM only and has to leave.
pub(crate) struct Victim<'a> {
    pub hash: KeyHash,
    pub entry: EntryRecord<'a>,
    /// The numbers of times that it was read, and overwritten, since it came, each up to `COUNT_MAX`.
    pub reads: u8,
    pub updates: u8,
}

/// The decision about a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// The entry leaves the cache.
    Drop,
    /// The entry leaves RAM, and is on flash now.
    Move,
    /// The entry stays, and so do the entries behind it.
    Keep,
}

/// The entries that eviction passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protected {
    /// Entries read since the hand passed, once, and fresh entries: an older entry, even one that was read, makes room
    /// for a fresh one.
    Fresh,
    /// The newest one: the oldest leave, whatever they are.
    Newest,
    /// No entry is spared: the oldest leave, whatever they are.
    Nothing,
}

/// The bounds to which a shard is shrunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShrinkTarget {
    /// Until the shard takes at most this many bytes,
    pub shard: u64,
    /// or all shards together at most this many.
    pub pool: u64,
    pub protected: Protected,
}

/// Entries that left the cache because others needed their room, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvictionCounts {
    pub evicted: u64,
    /// Evicted entries that were never read.
    pub evicted_unfetched: u64,
    /// Entries that had expired by then.
    pub expired: u64,
    pub expired_unfetched: u64,
}

impl EvictionCounts {
    fn count(&mut self, is_expired: bool, is_fetched: bool) {
        let (all, unfetched) = match is_expired {
            false => (&mut self.evicted, &mut self.evicted_unfetched),
            true => (&mut self.expired, &mut self.expired_unfetched),
        };
        *all += 1;
        *unfetched += u64::from(!is_fetched);
    }
}

/// The result of moving the hand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It passed an entry.
    Passed,
    /// An entry that was read went round, and counts as unread from here on.
    Unmarked,
    /// An entry went round only because of its age.
    Spared,
    /// There is no entry, or it may not leave.
    Stuck,
}

impl Memory {
    /// Evicts entries until `aim` is reached or one may not leave. `now`: Unix time in seconds.
    pub fn shrink(&mut self, aim: ShrinkTarget, now: u32, leave: impl FnMut(Victim<'_>) -> Eviction) {
        let exceeds = |this: &Self| {
            let bytes = this.bytes_allocated();
            let all = this.pool.used() as i64 + bytes as i64 - this.counted_bytes as i64;
            bytes as u64 > aim.shard && all > aim.pool as i64
        };
        self.evict_while(exceeds, aim.protected, now, leave);
        self.shrink_table();
    }

    /// Gives back the memory that is kept for the next chunk.
    pub fn release_spare(&mut self) {
        self.spare.take().into_iter().for_each(Chunk::release);
        self.report_len();
    }

    /// Shrinks a table that is far larger than its entries need.
    fn shrink_table(&mut self) {
        let len = self.table.len();
        if self.table.capacity() > TABLE_CAPACITY_KEPT.max(4 * len) {
            let (chunks, first, hasher) = (&self.chunks, self.first_chunk(), self.hasher);
            self.table
                .shrink_to(2 * len, |at| spread(hash_of(Self::bytes(chunks, first, *at), hasher).to_bits()));
            self.report_len();
        }
    }

    pub(super) fn evict_while(
        &mut self,
        exceeds: impl Fn(&Self) -> bool,
        protected: Protected,
        now: u32,
        mut leave: impl FnMut(Victim<'_>) -> Eviction,
    ) {
        let part = self.unreported.part(&self.pool);
        // If only fresh entries were found, all stay fresh until the pool's turnover goes on.
        if protected == Protected::Fresh && self.all_fresh_in == Some(part) {
            return;
        }
        // Entries spared in a row: when all were, the oldest is at the hand again.
        let mut spared = 0;
        while exceeds(self) && (protected != Protected::Newest || self.table.len() > 1) {
            match self.step(protected, now, &mut leave) {
                Step::Passed => {}
                Step::Unmarked => spared = 0,
                Step::Spared => spared += 1,
                Step::Stuck => break,
            }
            if spared > 0 && spared == self.table.len() {
                self.all_fresh_in = Some(part);
                break;
            }
        }
        self.report_len();
    }

    /// The next victim: approximately the oldest entry that was not read.
    pub fn next_victim(&self) -> Option<(KeyHash, EntryRecord<'_>)> {
        let mut at = self.hand;
        for chunk in &self.chunks {
            while at < chunk.len() {
                let entry = &chunk[at..];
                if entry[FLAGS_AT] & DEAD == 0 {
                    return Some((hash_of(entry, self.hasher), record_of(entry)));
                }
                at += entry_len(entry);
            }
            at = 0;
        }
        None
    }

    /// Moves the hand past one entry.
    fn step(
        &mut self,
        protected: Protected,
        now: u32,
        leave: &mut impl FnMut(Victim<'_>) -> Eviction,
    ) -> Step {
        if self.skip() {
            return Step::Passed;
        }
        let Some(chunk) = self.chunks.front() else { return Step::Stuck };
        let entry = &chunk[self.hand..];
        let (flags, counts) = (entry[FLAGS_AT], entry[COUNTS_AT]);
        let stamp: Stamp = flags >> STAMP_SHIFT;
        let is_expired = record_of(entry).is_expired(now);
        // An expired entry leaves when the hand meets it, even if it was read or is fresh.
        let protected = if is_expired { Protected::Nothing } else { protected };
        let is_fresh = stamp != 0 && self.unreported.is_fresh(&self.pool, stamp);
        if flags & READ != 0 && protected == Protected::Fresh && self.chunks.len() > 1 {
            self.send_round(flags & (DIRTY | FETCHED) | if is_fresh { stamp << STAMP_SHIFT } else { 0 });
            return Step::Unmarked;
        }
        if is_fresh && protected == Protected::Fresh {
            self.send_round(flags);
            return Step::Spared;
        }
        let hash = hash_of(entry, self.hasher);
        let record = record_of(entry);
        let mut left = if self.role == Role::Alone { Eviction::Drop } else { Eviction::Move };
        if flags & DIRTY != 0 {
            let (reads, updates) = (counts % UPDATE, counts / UPDATE);
            left = leave(Victim { hash, entry: record, reads, updates });
        }
        match left {
            Eviction::Keep => return Step::Stuck,
            Eviction::Drop => self.evictions.count(is_expired, flags & FETCHED != 0),
            Eviction::Move => {
                if let Some(ghosts) = self.pool.ghosts() {
                    ghosts.note(hash.to_bits(), entry::cost(record.len()));
                }
            }
        }
        self.drop_entry(hash, EntryAt::new(self.first_chunk(), self.hand));
        self.skip();
        Step::Passed
    }

    /// Moves the hand past a dead entry, or into the next chunk; `false`: it is at a live entry, or there is none.
    fn skip(&mut self) -> bool {
        let Some(chunk) = self.chunks.front() else { return false };
        if self.hand < chunk.len() {
            let entry = &chunk[self.hand..];
            let len = if entry[FLAGS_AT] & DEAD != 0 { entry_len(entry) } else { 0 };
            self.hand += len;
            self.dead_bytes -= len;
            return len > 0;
        }
        let mut chunk = self.chunks.pop_front().expect("just seen");
        self.first_sequence += 1;
        self.hand = 0;
        self.chunk_bytes -= chunk.capacity();
        // A private chunk that replaced one of the arena is not reused.
        let is_at_home = chunk.is_shared() || self.arena.is_none();
        if is_at_home && chunk.capacity() == self.next_chunk_bytes() && !self.chunks.is_empty() {
            chunk.empty();
            self.spare.replace(chunk).into_iter().for_each(Chunk::release);
        } else {
            chunk.release();
        }
        true
    }

    /// Moves the entry at the hand to the end of the ring, with these flags.
    fn send_round(&mut self, flags: u8) {
        let entry = &self.chunks[0][self.hand..];
        let (hash, counts, len) = (hash_of(entry, self.hasher), entry[COUNTS_AT], entry_len(entry));
        let from = EntryAt::new(self.first_chunk(), self.hand);
        if self.hand == 0 && len == self.chunks[0].len() {
            // A long entry, alone in its chunk: the chunk moves as it is.
            let mut chunk = self.chunks.pop_front().expect("just seen");
            chunk.set_flags(0, flags);
            self.first_sequence += 1;
            chunk.renumber(self.shard, self.next_sequence());
            self.chunks.push_back(chunk);
            self.repoint(hash, from, EntryAt::new(self.last_chunk(), 0));
            return;
        }
        let copy = entry[..len].to_vec();
        // The old entry is ended last: a kill in between leaves both, and recovery keeps one.
        let to = self.room_for(len);
        self.repoint(hash, from, to);
        let record = record_of(&copy);
        let (key, value) = (Key::hashed(hash, record.key), record.value());
        let header = HeaderBytes::entry(key.bytes(), value, record.expires_at);
        self.append(&header, &StoredEntry { key, value, expires_at: record.expires_at }, flags, counts);
        self.mark_dead(from);
        self.skip();
    }

    fn repoint(&mut self, hash: KeyHash, from: EntryAt, to: EntryAt) {
        if let Some(at) = self.table.find_mut(spread(hash.to_bits()), |at| *at == from) {
            *at = to;
        }
    }

    /// If half of the ring is dead, takes some steps that keep all live entries. Otherwise a tier bounded by its number
    /// of entries would grow for ever when these are put again and again.
    pub(super) fn compact(&mut self) {
        for _ in 0..COMPACT_STEPS {
            if self.dead_bytes * 2 <= self.chunk_bytes || self.chunks.len() == 1 {
                return;
            }
            if !self.skip() {
                self.send_round(self.chunks[0][self.hand + FLAGS_AT]);
            }
        }
    }
}
