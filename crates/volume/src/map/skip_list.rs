//! The skip list map: sorted entries of the mapped blocks only.

use super::{Map, MapError, Place, check};
use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

/// A lock-free skip list.
///
/// The entry of a block holds its place in an atomic, so that an overwrite changes the entry and does not
/// replace it: `SkipMap::insert` over an existing key would take the old entry out before the new one is in,
/// and a reader in between would find neither.
///
/// Memory: 40 bytes a mapped block on average (a header, key and value of 8 bytes each, and a tower of two
/// pointers on average), and what the allocator adds. Blocks that are not mapped cost nothing. An entry that
/// was removed is freed when no thread can read it any more.
pub struct SkipListMap {
    blocks: u64,
    entries: SkipMap<u64, AtomicU64>,
}

/// The value of an entry that is new and has no place yet. A place takes 32 bits.
const NEW: u64 = 1 << 32;
/// The value of an entry that is being removed. It never changes.
const REMOVED: u64 = 0;

const NODE_BYTES: u64 = 40;

/// Returns the place that a value stands for, or `None` for [`NEW`] and [`REMOVED`].
fn place_of(value: u64) -> Option<Place> {
    u32::try_from(value).ok().and_then(Place::from_raw)
}

impl SkipListMap {
    /// A map of `blocks` blocks, none of which is mapped.
    ///
    /// # Errors
    /// If there are too many blocks.
    pub fn new(blocks: u64) -> Result<Self, MapError> {
        check(blocks)?;
        Ok(Self { blocks, entries: SkipMap::new() })
    }

    fn change(entry: &Entry<'_, u64, AtomicU64>, from: u64, to: u64) -> bool {
        entry.value().compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Map for SkipListMap {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn get(&self, lba: u64) -> Option<Place> {
        place_of(self.entries.get(&lba)?.value().load(Ordering::Acquire))
    }

    fn set(&self, lba: u64, place: Place) -> Option<Place> {
        assert!(lba < self.blocks, "the block is one of the volume's");
        loop {
            // Of several threads that find no entry, one inserts; then all compete for its value.
            let entry = self.entries.get_or_insert_with(lba, || AtomicU64::new(NEW));
            let mut old = entry.value().load(Ordering::Acquire);
            while old != REMOVED {
                match Self::change(&entry, old, place.raw().into()) {
                    true => return place_of(old),
                    false => old = entry.value().load(Ordering::Acquire),
                }
            }
            // The removing thread may not have unlinked the entry yet.
            entry.remove();
        }
    }

    fn remove(&self, lba: u64) -> Option<Place> {
        let entry = self.entries.get(&lba)?;
        let mut old = entry.value().load(Ordering::Acquire);
        loop {
            place_of(old)?;
            if Self::change(&entry, old, REMOVED) {
                entry.remove();
                return place_of(old);
            }
            old = entry.value().load(Ordering::Acquire);
        }
    }

    fn replace(&self, lba: u64, from: Place, to: Place) -> bool {
        let entry = self.entries.get(&lba);
        entry.is_some_and(|entry| Self::change(&entry, from.raw().into(), to.raw().into()))
    }

    fn next_mapped(&self, lba: u64) -> Option<(u64, Place)> {
        let mut entries = self.entries.range(lba..);
        entries.find_map(|entry| Some((*entry.key(), place_of(entry.value().load(Ordering::Acquire))?)))
    }

    fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    fn bytes_allocated(&self) -> u64 {
        self.len() * NODE_BYTES
    }

    fn resize(&mut self, blocks: u64) -> Result<(), MapError> {
        check(blocks)?;
        self.blocks = blocks;
        for entry in self.entries.range(blocks..) {
            entry.remove();
        }
        Ok(())
    }

    fn copy_to(&self, first: u64, places: &mut [Option<Place>]) {
        places.fill(None);
        let end = first.saturating_add(places.len() as u64);
        for entry in self.entries.range(first..end) {
            places[(entry.key() - first) as usize] = place_of(entry.value().load(Ordering::Acquire));
        }
    }
}
