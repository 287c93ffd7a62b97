//! Allocates the units of the file to chunks, lowest first: the file takes no more pages than were in use at once.

use super::directory::{DirectoryEntry, DirectorySlot, ENTRY_SIZE};
use super::file::Claim;
use super::header::{ArenaHeader, Layout};
use super::mapping::{MappedBytes, Mapping};
use crate::limits::{SHARDS, SHARED_MEMORY_RESERVE_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The file of a partition's RAM tier, mapped.
///
/// Invariants:
/// 1. A unit is free (in `free`), or part of one extent.
/// 2. The file's bytes before `reserved` have pages.
pub(crate) struct Arena {
    pub(super) claim: Claim,
    pub(super) mapping: Arc<Mapping>,
    pub(super) layout: Layout,
    checksum_seed: u64,
    /// The first segment of the change during which the last process was killed, or 0.
    under_way_from: u64,
    /// Lock order: after a shard's.
    free: Mutex<Free>,
    /// The free write buffers.
    pub(super) free_buffers: Mutex<BTreeSet<u64>>,
    /// Bytes of the file that have pages.
    reserved: AtomicU64,
    pub(super) is_short: AtomicBool,
    #[cfg(test)]
    pub(super) before_store: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

/// Free ranges of units: first unit and length.
struct Free {
    ranges: BTreeMap<u32, u32>,
}

/// Units of an arena, exclusive to this extent. If dropped, it stays in the directory for the next process;
/// [`give_back`](Arena::give_back) ends it.
pub(crate) struct UnitRange {
    arena: Arc<Arena>,
    bytes: MappedBytes,
    first: u32,
    units: u32,
}

impl UnitRange {
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    pub fn units(&self) -> u32 {
        self.units
    }
}

impl Deref for UnitRange {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for UnitRange {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// A chunk of the last process.
pub(crate) struct FoundChunk {
    pub sequence: u64,
    pub len: usize,
    pub extent: UnitRange,
}

impl Arena {
    /// Maps a file, with its content if that belongs to this number and salt. Returns the chunks found, by shard.
    /// `None`: mapping failed, which is logged, and the file's content is void.
    pub fn open(claim: Claim, memory_id: u64, salt: u64) -> Option<(Arc<Self>, Vec<Vec<FoundChunk>>)> {
        let layout = *claim.layout();
        let Opened { mapping, checksum_seed, entries, reserved } = match Opened::new(&claim, memory_id, salt)
        {
            Ok(opened) => opened,
            Err(error) => {
                // A file that is not used must not be found by the next process: it would be out of date.
                claim.invalidate();
                tracing::warn!(path = %claim.path().display(), %error, "the RAM tier dies with the process");
                return None;
            }
        };
        let [under_way, _] = mapping.words(layout.under_way_at() as usize);
        let arena = Arc::new(Self {
            under_way_from: u64::from_le(under_way.load(Ordering::Acquire)),
            claim,
            mapping: Arc::new(mapping),
            layout,
            checksum_seed,
            free: Mutex::new(Free::between(&entries, layout.units as u32)),
            free_buffers: Mutex::new((0..layout.buffers.number).collect()),
            reserved: AtomicU64::new(reserved),
            is_short: AtomicBool::new(false),
            #[cfg(test)]
            before_store: Mutex::new(None),
        });
        let mut chunks: Vec<Vec<FoundChunk>> = Vec::new();
        chunks.resize_with(SHARDS, Vec::new);
        for (unit, DirectoryEntry { shard, sequence, len, units }) in entries {
            let extent = arena.extent(unit, units);
            chunks[shard].push(FoundChunk { sequence, len: len as usize, extent });
        }
        Some((arena, chunks))
    }

    /// The first segment that may have records of the put or deletion during which the last process was killed (not
    /// counting starts that were killed while taking over). `None`: none was under way.
    pub fn under_way_from(&self) -> Option<u64> {
        (self.under_way_from > 0).then_some(self.under_way_from)
    }

    pub fn checksum_seed(&self) -> u64 {
        self.checksum_seed
    }

    /// Bytes of the file that have pages.
    pub fn bytes_reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Removes the file: its content is given up, or saved elsewhere.
    pub fn remove(&self) {
        self.claim.remove();
    }

    /// Allocates an extent of at least `bytes` bytes, or `None` if there is no room.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<UnitRange> {
        let units = u32::try_from((bytes as u64).div_ceil(self.layout.unit_bytes)).ok()?;
        let mut free = self.free.lock().expect("no panic under the lock");
        let first = free.first_fit(units)?;
        let end = self.layout.units_at() + u64::from(first + units) * self.layout.unit_bytes;
        if end > self.bytes_reserved() && !self.reserve_until(end) {
            return None;
        }
        free.take(first, units);
        Some(self.extent(first, units))
    }

    fn reserve_until(&self, end: u64) -> bool {
        let before = self.bytes_reserved();
        let ahead = end.next_multiple_of(SHARED_MEMORY_RESERVE_BYTES).min(self.layout.file_bytes());
        for until in [ahead, end] {
            if self.claim.reserve(before..until).is_ok() {
                self.mapping.populate(before as usize, (until - before) as usize);
                self.reserved.store(until, Ordering::Relaxed);
                return true;
            }
        }
        if !self.is_short.swap(true, Ordering::Relaxed) {
            let path = self.claim.path().display();
            tracing::warn!(%path, "the folder of the RAM tier is full: what does not fit dies with the process");
        }
        false
    }

    fn extent(self: &Arc<Self>, first: u32, units: u32) -> UnitRange {
        let offset = self.layout.units_at() + u64::from(first) * self.layout.unit_bytes;
        let len = u64::from(units) * self.layout.unit_bytes;
        let bytes = MappedBytes::new(&self.mapping, offset as usize, len as usize);
        UnitRange { arena: Arc::clone(self), bytes, first, units }
    }

    /// Takes an extent back; no recovery finds it.
    pub fn give_back(&self, extent: UnitRange) {
        self.slot(&extent).end();
        self.free.lock().expect("no panic under the lock").give_back(extent.first, extent.units);
    }

    /// The directory's entry of an extent.
    #[inline]
    pub fn slot(&self, extent: &UnitRange) -> DirectorySlot<'_> {
        let at = self.layout.directory_at() as usize + extent.first as usize * ENTRY_SIZE;
        self.before_store();
        let [owner, extent] = self.mapping.words(at);
        DirectorySlot { owner, extent }
    }

    /// Called before each store that a recovery can see, for tests.
    #[inline]
    pub fn before_store(&self) {
        #[cfg(test)]
        if let Some(call) = &mut *self.before_store.lock().unwrap() {
            call();
        }
    }
}

/// A mapped file, and the chunks in it.
struct Opened {
    mapping: Mapping,
    checksum_seed: u64,
    entries: Vec<(u32, DirectoryEntry)>,
    reserved: u64,
}

impl Opened {
    fn new(claim: &Claim, memory_id: u64, salt: u64) -> io::Result<Self> {
        let layout = *claim.layout();
        let found = claim.adopt(memory_id, salt);
        let checksum_seed = found.map_or_else(|| fastrand::u64(..), |found| found.checksum_seed);
        if found.is_none() {
            claim.start_over(&ArenaHeader {
                memory_id,
                salt,
                checksum_seed,
                boot_id: granary_log::boot_id(),
                layout,
            })?;
        }
        let mapping = Mapping::new(claim.file(), layout.file_bytes() as usize)?;
        let entries = read_directory(claim, &layout)?;
        let reserved = entries.last().map_or(layout.units_at(), |(unit, entry)| {
            layout.units_at() + (u64::from(*unit) + u64::from(entry.units)) * layout.unit_bytes
        });
        // If the last process reserved them already, this does nothing.
        claim.reserve(0..reserved)?;
        Ok(Self { mapping, checksum_seed, entries, reserved })
    }
}

impl Free {
    fn between(taken: &[(u32, DirectoryEntry)], units: u32) -> Self {
        let mut ranges = BTreeMap::new();
        let mut next = 0;
        for (first, end) in
            taken.iter().map(|(unit, entry)| (*unit, unit + entry.units)).chain([(units, units)])
        {
            if first > next {
                ranges.insert(next, first - next);
            }
            next = end;
        }
        Self { ranges }
    }

    fn first_fit(&self, units: u32) -> Option<u32> {
        self.ranges.iter().find(|(_, len)| **len >= units).map(|(first, _)| *first)
    }

    /// Takes units from the beginning of a range.
    fn take(&mut self, first: u32, units: u32) {
        let len = self.ranges.remove(&first).expect("it begins there");
        if len > units {
            self.ranges.insert(first + units, len - units);
        }
    }

    fn give_back(&mut self, mut first: u32, mut units: u32) {
        if let Some(len) = self.ranges.remove(&(first + units)) {
            units += len;
        }
        if let Some((before, len)) = self.ranges.range(..first).next_back().map(|(at, len)| (*at, *len))
            && before + len == first
        {
            (first, units) = (before, len + units);
        }
        self.ranges.insert(first, units);
    }
}

/// The chunks in the directory, in the order of their units. Invalid or overlapping ones are skipped.
fn read_directory(claim: &Claim, layout: &Layout) -> io::Result<Vec<(u32, DirectoryEntry)>> {
    // Read by the file, for touching unallocated pages of the mapping would allocate them.
    let mut bytes = vec![0; layout.units as usize * ENTRY_SIZE];
    claim.file().read_exact_at(&mut bytes, layout.directory_at())?;
    let mut found = Vec::new();
    let mut next = 0;
    let (slots, _) = bytes.as_chunks::<ENTRY_SIZE>();
    for (unit, entry) in
        slots.iter().enumerate().filter_map(|(unit, slot)| Some((unit, DirectoryEntry::parse(slot)?)))
    {
        let end = unit as u64 + u64::from(entry.units);
        let fits = unit as u64 >= next && entry.units > 0 && end <= layout.units;
        if fits && u64::from(entry.len) <= u64::from(entry.units) * layout.unit_bytes {
            found.push((unit as u32, entry));
            next = end;
        } else {
            claim
                .file()
                .write_all_at(&[0; ENTRY_SIZE], layout.directory_at() + (unit * ENTRY_SIZE) as u64)?;
        }
    }
    Ok(found)
}
