//! Places: where in the log a block lies.

use std::num::NonZeroU32;

/// A block of the log. It holds the number of the block plus 1, so that an `Option<Place>` takes four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(NonZeroU32);

const _: () = assert!(size_of::<Option<Place>>() == 4);

impl Place {
    /// The number of the last block of a log that a place can stand for.
    pub const BLOCK_MAX: u32 = u32::MAX - 1;

    /// The most blocks of a log that all have a place.
    pub const BLOCKS_MAX: u64 = Self::BLOCK_MAX as u64 + 1;

    /// Returns the place of block `block` of the log, or `None` if the block is beyond [`Self::BLOCK_MAX`].
    pub const fn of_block(block: u32) -> Option<Self> {
        match block.checked_add(1) {
            Some(raw) => Self::from_raw(raw),
            None => None,
        }
    }

    /// The number of the block in the log.
    pub const fn block(self) -> u32 {
        self.0.get() - 1
    }

    /// Returns the place that `raw` stands for in memory and on disk, or `None` for 0: not mapped.
    pub const fn from_raw(raw: u32) -> Option<Self> {
        match NonZeroU32::new(raw) {
            Some(raw) => Some(Self(raw)),
            None => None,
        }
    }

    /// The number that stands for this place in memory and on disk.
    pub const fn raw(self) -> u32 {
        self.0.get()
    }
}

/// The number that stands for a place, or 0 for none.
pub(crate) fn raw_of(place: Option<Place>) -> u32 {
    place.map_or(0, Place::raw)
}
