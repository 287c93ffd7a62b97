//! The RAM tier: entries in chunks, used as a ring; an entry that was read since it came in goes round once more (CLOCK
//! over a FIFO). It knows no lock.

mod adopt;
mod chunk;
mod clock;
pub(crate) mod entry;
mod pool;
mod room;
pub(crate) mod shared;

pub(crate) use adopt::{Adopted, FlashCopy};
pub(crate) use clock::{Eviction, EvictionCounts, Protected, ShrinkTarget, Victim};
pub(crate) use pool::Pool;

use crate::admission::COUNT_MAX;
use crate::codec::StoredValue;
use crate::entry::StoredEntry;
use crate::key::{Key, KeyHash, KeyHasher};
use crate::limits::{CACHE_LINE_BYTES, PREFETCHED_BYTES_MAX, SIDE_BY_SIDE};
use crate::record::{EntryRecord, HeaderBytes, parse_short, same_bytes};
use chunk::Chunk;
use entry::{
    COUNTS_AT, DEAD, DIRTY, FLAGS_AT, RECORD_AT, STAMP_SHIFT, UPDATE, entry_len, has_tag, hash_of, is_of,
    mark_read, parse_written, record_of,
};
use granary_log::prefetch::{prefetch, prefetch_value};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use pool::{CHUNKS_MAX, SHORT_ENTRY_BYTES, UnreportedPuts};
use shared::Arena;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most entries that one insertion passes to remove dead ones. An insertion makes at most one dead entry.
const COMPACT_STEPS: usize = 8;

/// The beginning of an entry: the chunk's number (from the first ever, its low 16 bits) and the offset in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryAt(u32);

impl EntryAt {
    fn new(chunk: u16, offset: usize) -> Self {
        Self(u32::from(chunk) << 16 | u32::from(u16::try_from(offset).expect("chunks are small")))
    }
    /// Index in the queue of chunks, of which the first has number `first`.
    fn index(self, first: u16) -> usize {
        usize::from(((self.0 >> 16) as u16).wrapping_sub(first))
    }
    fn offset(self) -> usize {
        self.0 as u16 as usize
    }
}

/// Entries that may be those of a group of keys.
pub(crate) type Candidates = [Option<EntryAt>; SIDE_BY_SIDE];

/// The tier's entry of a key.
pub(crate) struct Stored<'a> {
    /// `None`: the entry is negative.
    pub value: Option<StoredValue<'a>>,
    pub expires_at: u32,
}

impl<'a> From<EntryRecord<'a>> for Stored<'a> {
    #[inline]
    fn from(entry: EntryRecord<'a>) -> Self {
        Self { value: entry.value(), expires_at: entry.expires_at }
    }
}

/// Whether an entry of the tier has to be written before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// It is on flash, or need not be.
    Clean,
    /// It is in RAM only.
    Dirty,
    /// It is in RAM only, having been readmitted from a reused segment rather than put.
    Readmitted,
}

/// The tier's role in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The whole cache.
    Alone,
    /// The part in front of flash.
    InFrontOfFlash,
}

/// A selection of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryFilter {
    All,
    /// Entries that are in RAM only.
    Dirty,
}

/// One shard's part of the RAM tier.
///
/// Invariants, checked by `validate`:
/// 1. `table` has exactly the entries of the chunks that are not dead.
/// 2. The clock hand (`hand`) lies in the first chunk, at the start of an entry or at its end.
/// 3. `chunk_bytes` is the sum of the chunks' capacities.
/// 4. `dirty` is the number of entries that are in RAM only.
/// 5. `dead_bytes` counts the bytes of dead entries that the hand has not passed.
/// 6. The pool counts `counted_bytes`, all bytes that are allocated.
pub(crate) struct Memory {
    pool: Arc<Pool>,
    role: Role,
    hasher: KeyHasher,
    /// The shard's number.
    shard: usize,
    /// The arena of chunks that outlive the process; `None`: no chunks do.
    arena: Option<Arc<Arena>>,
    /// The most entries.
    entries: u64,
    table: HashTable<EntryAt>,
    chunks: VecDeque<Chunk>,
    /// The number of the first chunk.
    first_sequence: u64,
    hand: usize,
    chunk_bytes: usize,
    dead_bytes: usize,
    dirty: usize,
    spare: Option<Chunk>,
    counted_bytes: usize,
    unreported: UnreportedPuts,
    /// The part of the turnover in which a walk found all entries fresh; none that is not fresh was added since.
    all_fresh_in: Option<u64>,
    evictions: EvictionCounts,
}

/// Mixes a hash: the table needs well-mixed bits at both ends.
fn spread(hash: u64) -> u64 {
    // The lowest bits of all hashes of a partition are equal, and the lowest bits of a product depend on them only.
    let product = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 32
}

impl Memory {
    /// Shard number `shard` of a pool, for at most `entries` entries. Its chunks lie in the arena as far as that has
    /// room.
    pub fn new(
        pool: Arc<Pool>,
        entries: u64,
        role: Role,
        hasher: KeyHasher,
        shard: usize,
        arena: Option<Arc<Arena>>,
    ) -> Self {
        Self {
            pool,
            role,
            hasher,
            shard,
            arena,
            entries,
            table: HashTable::new(),
            chunks: VecDeque::new(),
            first_sequence: 1,
            hand: 0,
            chunk_bytes: 0,
            dead_bytes: 0,
            dirty: 0,
            spare: None,
            counted_bytes: 0,
            unreported: UnreportedPuts::default(),
            all_fresh_in: None,
            evictions: EvictionCounts::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Entries that are in RAM only.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    pub fn bytes_allocated(&self) -> usize {
        self.chunk_bytes + self.table.allocation_size() + self.spare.as_ref().map_or(0, Chunk::capacity)
    }

    /// Counts of entries that left the cache from this tier.
    pub fn evictions(&self) -> EvictionCounts {
        self.evictions
    }

    pub fn clear(&mut self) {
        let next = self.next_sequence();
        self.chunks.drain(..).rev().chain(self.spare.take()).for_each(Chunk::release);
        self.pool.take(self.counted_bytes, 0);
        let (pool, arena) = (Arc::clone(&self.pool), self.arena.clone());
        let empty = Self::new(pool, self.entries, self.role, self.hasher, self.shard, arena);
        *self = Self { evictions: self.evictions, first_sequence: next, ..empty };
    }

    /// Tells the pool how many bytes are allocated.
    fn report_len(&mut self) {
        let now = self.bytes_allocated();
        self.pool.take(self.counted_bytes, now);
        self.counted_bytes = now;
    }

    #[inline]
    fn bytes(chunks: &VecDeque<Chunk>, first: u16, at: EntryAt) -> &[u8] {
        &chunks[at.index(first)][at.offset()..]
    }

    fn locate(&self, key: Key<'_>) -> Option<EntryAt> {
        let same = |at: &EntryAt| is_of(Self::bytes(&self.chunks, self.first_chunk(), *at), key);
        self.table.find(spread(key.hash().to_bits()), same).copied()
    }

    /// The entry with this hash, which is rarely another key's; `None`: there is none. The entry itself is not
    /// accessed.
    #[inline]
    pub fn candidate(&self, hash: KeyHash) -> Option<EntryAt> {
        self.find(hash).copied()
    }

    /// Finds the [candidates](Self::candidate) of at most [`SIDE_BY_SIDE`] keys by their hashes. The table's slots are
    /// fetched from memory side by side; callers that look at the entries [prefetch](Self::prefetch) them first.
    #[inline]
    pub fn candidates(&self, hashes: impl Iterator<Item = KeyHash>, candidates: &mut Candidates) {
        let mut found = [None; SIDE_BY_SIDE];
        for (hash, found) in hashes.zip(&mut found) {
            *found = self.find(hash).inspect(|at| prefetch_value(*at));
        }
        *candidates = found.map(Option::<&EntryAt>::copied);
    }

    #[inline]
    fn find(&self, hash: KeyHash) -> Option<&EntryAt> {
        if self.table.is_empty() {
            return None;
        }
        self.table.find(spread(hash.to_bits()), |_| true)
    }

    /// The bytes of an entry that are worth prefetching: the shard's mean length.
    pub fn prefetched_bytes(&self) -> usize {
        (self.chunk_bytes / self.table.len().max(1)).clamp(SHORT_ENTRY_BYTES, PREFETCHED_BYTES_MAX)
    }

    /// Has the processor fetch `bytes` bytes of an entry.
    #[inline]
    pub fn prefetch(&self, at: EntryAt, bytes: usize) {
        let entry = Self::bytes(&self.chunks, self.first_chunk(), at);
        let last = entry.len().min(bytes) - 1;
        (0..last).step_by(CACHE_LINE_BYTES).for_each(|line| prefetch(&entry[line..]));
        prefetch(&entry[last..]);
    }

    /// Has the processor fetch the entry that a put of this hash compares with.
    #[inline]
    pub fn prefetch_for_put(&self, hash: KeyHash) {
        self.candidate(hash).into_iter().for_each(|at| self.prefetch(at, SHORT_ENTRY_BYTES));
    }

    /// Looks a key up where its [`candidate`](Self::candidate) is, if that is a [short record](parse_short), and marks
    /// the entry as read. `None`: call [`get`](Self::get).
    #[inline(always)]
    pub fn get_short(&mut self, key: Key<'_>, candidate: EntryAt) -> Option<Stored<'_>> {
        let first = self.first_chunk();
        let (head, record) = self.chunks[candidate.index(first)].head_and_record(candidate.offset());
        let record = parse_short(record)?;
        if !has_tag(head, key.hash()) || !same_bytes(record.key, key.bytes()) {
            return None;
        }
        mark_read(head);
        Some(record.into())
    }

    /// Looks a key up, at its [`candidate`](Self::candidate) or else by its hash, and marks its entry as read. Another
    /// key's candidate is not marked: it would stay in RAM, or go to flash, without having been read.
    #[inline(always)]
    pub fn get(&mut self, key: Key<'_>, candidate: EntryAt) -> Option<Stored<'_>> {
        let first = self.first_chunk();
        let at = if is_of(Self::bytes(&self.chunks, first, candidate), key) {
            candidate
        } else {
            self.locate_elsewhere(key)?
        };
        let (head, record) = self.chunks[at.index(first)].head_and_record(at.offset());
        let record = parse_written(record);
        mark_read(head);
        Some(record.into())
    }

    #[cold]
    fn locate_elsewhere(&self, key: Key<'_>) -> Option<EntryAt> {
        self.locate(key)
    }

    /// Whether the tier has an entry of the key.
    pub fn contains(&self, key: Key<'_>) -> bool {
        !self.table.is_empty() && self.locate(key).is_some()
    }

    /// Removes a key; returns its counts.
    pub fn remove(&mut self, key: Key<'_>) -> Option<u8> {
        if self.table.is_empty() {
            return None;
        }
        let at = self.locate(key)?;
        Some(self.drop_entry(key.hash(), at))
    }

    /// Marks the entry of this hash as being in RAM only; returns whether there is one.
    pub fn detach(&mut self, hash: KeyHash) -> bool {
        let Some(at) = self.locate_hash(hash) else { return false };
        let first = self.first_chunk();
        let chunk = &mut self.chunks[at.index(first)];
        let flags = chunk[at.offset() + FLAGS_AT];
        self.dirty += usize::from(flags & DIRTY == 0);
        chunk.set_flags(at.offset(), flags | DIRTY);
        true
    }

    /// An entry with this hash, if there is one.
    pub fn find_hash(&self, hash: KeyHash) -> Option<EntryRecord<'_>> {
        let at = self.locate_hash(hash)?;
        Some(record_of(Self::bytes(&self.chunks, self.first_chunk(), at)))
    }

    fn locate_hash(&self, hash: KeyHash) -> Option<EntryAt> {
        let is_its = |at: &EntryAt| {
            let bytes = Self::bytes(&self.chunks, self.first_chunk(), *at);
            has_tag(bytes, hash) && hash_of(bytes, self.hasher) == hash
        };
        self.table.find(spread(hash.to_bits()), is_its).copied()
    }

    fn drop_entry(&mut self, hash: KeyHash, at: EntryAt) -> u8 {
        if let Ok(entry) = self.table.find_entry(spread(hash.to_bits()), |other| *other == at) {
            entry.remove();
        }
        self.mark_dead(at)
    }

    /// Marks an entry that was removed from the table as dead; returns its counts.
    fn mark_dead(&mut self, at: EntryAt) -> u8 {
        let first = self.first_chunk();
        let chunk = &mut self.chunks[at.index(first)];
        let entry = &chunk[at.offset()..];
        let (flags, counts) = (entry[FLAGS_AT], entry[COUNTS_AT]);
        self.dead_bytes += entry_len(entry);
        self.dirty -= usize::from(flags & DIRTY != 0);
        chunk.set_flags(at.offset(), flags | DEAD);
        counts
    }

    /// Inserts an entry in place of an older one; `false`: it is too long, and not kept. For a copy the shard first
    /// evicts entries that are not fresh if it has used up its share; beyond that the caller enforces the budget.
    pub fn insert(
        &mut self,
        key: Key<'_>,
        value: Option<StoredValue<'_>>,
        expires_at: u32,
        state: EntryState,
        now: u32,
    ) -> bool {
        let entry = StoredEntry { key, value, expires_at };
        let header = HeaderBytes::entry(key.bytes(), value, expires_at);
        let len = RECORD_AT + header.as_slice().len() + entry.bytes();
        if len as u64 > self.entry_bytes_max(state) || u32::try_from(len).is_err() {
            self.remove(key);
            return false;
        }
        let stamp = match (state, self.role) {
            (EntryState::Dirty, _) | (EntryState::Clean, Role::Alone) => self.unreported.put(&self.pool, len),
            (EntryState::Readmitted, _) | (EntryState::Clean, Role::InFrontOfFlash) => 0,
        };
        if stamp == 0 {
            self.all_fresh_in = None;
        }
        if state == EntryState::Clean {
            self.make_room(key, len, now);
        } else if self.needs_chunk(len) && self.chunks.len() >= CHUNKS_MAX {
            // A shard may grow far beyond its share, past the range of chunk numbers.
            self.remove(key);
            return false;
        }
        let at = self.room_for(len);
        let older = self.index_entry(key, at);
        let counts = older.map(|older| self.counts_at(older));
        let (flags, counts) = match (state, counts) {
            (EntryState::Clean, _) => (0, 0),
            (EntryState::Dirty | EntryState::Readmitted, None) => (DIRTY, 0),
            (EntryState::Readmitted, Some(counts)) => (DIRTY, counts),
            (EntryState::Dirty, Some(counts)) if counts / UPDATE < COUNT_MAX => (DIRTY, counts + UPDATE),
            (EntryState::Dirty, Some(counts)) => (DIRTY, counts),
        };
        self.append(&header, &entry, flags | stamp << STAMP_SHIFT, counts);
        // Only once the new entry is complete: a kill in between leaves one of the two.
        older.into_iter().for_each(|older| _ = self.mark_dead(older));
        // A key that is put over and over must not fill the pool with dead entries.
        self.compact();
        self.report_len();
        true
    }

    /// Points the table's entry of a key at `at`, where its entry is about to be; returns its former place.
    fn index_entry(&mut self, key: Key<'_>, at: EntryAt) -> Option<EntryAt> {
        self.grow_table();
        let (chunks, first) = (&self.chunks, self.first_chunk());
        let same = |at: &EntryAt| is_of(Self::bytes(chunks, first, *at), key);
        match self.table.entry(spread(key.hash().to_bits()), same, |_| unreachable!("there is room for one"))
        {
            Slot::Occupied(mut found) => Some(std::mem::replace(found.get_mut(), at)),
            Slot::Vacant(vacant) => {
                vacant.insert(at);
                None
            }
        }
    }

    /// Makes room in the table for one more.
    #[inline]
    fn grow_table(&mut self) {
        if self.table.len() == self.table.capacity() {
            self.grow_full_table();
        }
    }

    #[cold]
    fn grow_full_table(&mut self) {
        let (chunks, first, hasher) = (&self.chunks, self.first_chunk(), self.hasher);
        // The table asks for hashes in its iterator's order, and each lies elsewhere in memory: the next ones are
        // prefetched.
        let ahead: Vec<EntryAt> = self.table.iter().copied().collect();
        let asked = Cell::new(0);
        self.table.reserve(1, |at| {
            let number = asked.replace(asked.get() + 1);
            ahead.get(number + SIDE_BY_SIDE).iter().for_each(|at| prefetch(Self::bytes(chunks, first, **at)));
            spread(hash_of(Self::bytes(chunks, first, *at), hasher).to_bits())
        });
    }

    /// The number of the first chunk, as [`EntryAt`] counts.
    #[inline]
    fn first_chunk(&self) -> u16 {
        self.first_sequence as u16
    }

    fn last_chunk(&self) -> u16 {
        self.next_sequence().wrapping_sub(1) as u16
    }

    /// The number of the chunk that will be added next.
    fn next_sequence(&self) -> u64 {
        self.first_sequence + self.chunks.len() as u64
    }

    fn counts_at(&self, at: EntryAt) -> u8 {
        Self::bytes(&self.chunks, self.first_chunk(), at)[COUNTS_AT]
    }

    /// Writes an entry to the [room made for it](Self::room_for).
    fn append(&mut self, header: &HeaderBytes, entry: &StoredEntry<'_>, flags: u8, counts: u8) {
        self.dirty += usize::from(flags & DIRTY != 0);
        let chunk = self.chunks.back_mut().expect("there is room");
        chunk.append(header, entry, flags, counts);
    }

    /// Visits entries.
    pub fn for_each(&self, which: EntryFilter, mut visit: impl FnMut(EntryRecord<'_>)) {
        for at in &self.table {
            let entry = Self::bytes(&self.chunks, self.first_chunk(), *at);
            if which == EntryFilter::All || entry[FLAGS_AT] & DIRTY != 0 {
                visit(record_of(entry));
            }
        }
    }

    /// Derives everything anew and compares.
    pub fn validate(&self) {
        let (mut live, mut dirty, mut dead_bytes) = (0, 0, 0);
        for (i, chunk) in self.chunks.iter().enumerate() {
            let mut at = if i == 0 { self.hand } else { 0 };
            while at < chunk.len() {
                let entry = &chunk[at..];
                if entry[FLAGS_AT] & DEAD == 0 {
                    live += 1;
                    dirty += usize::from(entry[FLAGS_AT] & DIRTY != 0);
                    let place = EntryAt::new(self.first_chunk().wrapping_add(i as u16), at);
                    let hash = hash_of(entry, self.hasher);
                    let found = self.table.find(spread(hash.to_bits()), |other| *other == place);
                    assert!(found.is_some(), "invariant 1");
                } else {
                    dead_bytes += entry_len(entry);
                }
                at += entry_len(entry);
            }
            assert_eq!(at, chunk.len(), "invariant 2");
        }
        assert_eq!(live, self.table.len(), "invariant 1");
        assert_eq!(dirty, self.dirty, "invariant 4");
        assert_eq!(dead_bytes, self.dead_bytes, "invariant 5");
        assert_eq!(self.counted_bytes, self.bytes_allocated(), "invariant 6");
        assert_eq!(self.chunk_bytes, self.chunks.iter().map(Chunk::capacity).sum::<usize>(), "invariant 3");
    }
}

#[cfg(test)]
mod tests;
