//! Maps: from the logical blocks of a volume to their places in the log.
//!
//! | kind | RAM | good at |
//! |---|---|---|
//! | [`flat`](FlatMap) | 4 bytes a logical block, taken as blocks are first written | everything that is more than a quarter full |
//! | [`hash`](HashMap) | 11 to 22 bytes a mapped block as it fills, up to 64 as blocks are unmapped | large volumes that stay almost empty |
//! | [`skip-list`](SkipListMap) | 40 bytes a mapped block | scans of volumes that are emptier still |
//!
//! Readers take no lock and may read at any time: during an overwrite they see the old or the new
//! place, never none. Any number of threads may write, too.

mod flat;
mod hash;
mod kind;
mod occupancy;
mod place;
mod skip_list;
mod zeros;

pub use flat::FlatMap;
pub use hash::HashMap;
pub use kind::{MapKind, UnknownMap};
pub use place::Place;
pub(crate) use place::raw_of;
pub use skip_list::SkipListMap;
use std::ops::Range;

/// A map of `blocks()` logical blocks, each of which has a place or none.
pub trait Map: Send + Sync {
    /// The number of logical blocks.
    fn blocks(&self) -> u64;

    /// Returns the place of `lba`, or `None` if it is not mapped or beyond the last block.
    fn get(&self, lba: u64) -> Option<Place>;

    /// Maps `lba` to `place` in one atomic step, and returns the place it had before.
    ///
    /// # Panics
    /// If `lba` is beyond the last block.
    fn set(&self, lba: u64, place: Place) -> Option<Place>;

    /// Unmaps `lba`, and returns the place it had.
    fn remove(&self, lba: u64) -> Option<Place>;

    /// Maps `lba` to `to` if its place is `from`, and returns whether it was.
    fn replace(&self, lba: u64, from: Place, to: Place) -> bool;

    /// Returns the first mapped block at or after `lba` with its place, or `None` if there is none.
    /// Blocks that are mapped or unmapped meanwhile may be seen or not; no other block is missed.
    fn next_mapped(&self, lba: u64) -> Option<(u64, Place)>;

    /// The number of mapped blocks.
    fn len(&self) -> u64;

    /// Whether no block is mapped.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory that the map has allocated. The system backs pages of it with RAM when they are
    /// first written.
    fn bytes_allocated(&self) -> u64;

    /// Resizes the map to `blocks` logical blocks. Blocks beyond the new end are unmapped.
    ///
    /// # Errors
    /// If there are too many blocks or too little memory; then the map is unchanged.
    fn resize(&mut self, blocks: u64) -> Result<(), MapError>;

    /// Copies the places of the blocks from `first` on to `places`; those beyond the last block have none.
    fn copy_to(&self, first: u64, places: &mut [Option<Place>]) {
        places.fill(None);
        for (lba, place) in mapped(self, first..first.saturating_add(places.len() as u64)) {
            places[(lba - first) as usize] = Some(place);
        }
    }

    /// Prepares an empty map for `mapped` mapped blocks, so that it need not grow on the way.
    fn reserve(&mut self, _mapped: u64) {}

    /// Maps the blocks from `first` on to `places`. Blocks for which `places` has none stay as they are.
    ///
    /// # Panics
    /// If a place is for a block beyond the last one.
    fn restore(&mut self, first: u64, places: &[Option<Place>]) {
        for (lba, place) in (first..).zip(places) {
            if let Some(place) = place {
                self.set(lba, *place);
            }
        }
    }
}

/// Returns the mapped blocks of a range in order, each with its place, as [`Map::next_mapped`] finds them: the map may
/// be changed meanwhile.
pub(crate) fn mapped<M: Map + ?Sized>(map: &M, blocks: Range<u64>) -> impl Iterator<Item = (u64, Place)> {
    let mut next = blocks.start;
    std::iter::from_fn(move || {
        let found = map.next_mapped(next).filter(|(lba, _)| *lba < blocks.end)?;
        next = found.0 + 1;
        Some(found)
    })
}

/// The reason why a map cannot be created.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MapError {
    /// More logical blocks than [`BLOCKS_MAX`](crate::limits::BLOCKS_MAX).
    #[error(
        "a volume of {blocks} blocks is too large: at most {} are possible; choose larger blocks or a smaller size",
        crate::limits::BLOCKS_MAX
    )]
    TooManyBlocks {
        /// The number requested.
        blocks: u64,
    },
    /// The system has not enough memory.
    #[error(
        "the map needs {bytes} bytes of memory, which the system does not give: choose a smaller size, larger blocks, or the map `hash`"
    )]
    NoMemory {
        /// The bytes requested.
        bytes: u64,
    },
}

/// Checks that a volume may have `blocks` blocks.
fn check(blocks: u64) -> Result<(), MapError> {
    if blocks > crate::limits::BLOCKS_MAX { Err(MapError::TooManyBlocks { blocks }) } else { Ok(()) }
}
