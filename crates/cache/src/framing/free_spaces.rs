//! Free space at the ends of blocks: where the next record did not fit, a later, shorter one may.

use crate::limits::{FREE_SPACE_BYTES_MIN, FREE_SPACES_MAX};

/// The rest of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeSpace {
    /// The block, counted from the segment's first.
    pub block: usize,
    /// Bytes of the block's payload before it.
    pub used: usize,
}

/// Free spaces of a segment that is being filled, none far behind its last block.
#[derive(Default)]
pub(crate) struct FreeSpaces {
    free_spaces: Vec<FreeSpace>,
}

impl FreeSpaces {
    /// Notes the rest of a block whose payload has `payload` bytes. If the list is full, the oldest one is dropped.
    pub fn add(&mut self, free_space: FreeSpace, payload: usize) {
        if payload - free_space.used < FREE_SPACE_BYTES_MIN {
            return;
        }
        if self.free_spaces.len() == FREE_SPACES_MAX {
            let oldest = (0..self.free_spaces.len()).min_by_key(|i| self.free_spaces[*i].block);
            oldest.map(|i| self.free_spaces.swap_remove(i));
        }
        self.free_spaces.push(free_space);
    }

    /// Forgets free space in blocks before `block`.
    pub fn leave_behind(&mut self, block: usize) {
        self.free_spaces.retain(|free_space| free_space.block >= block);
    }

    /// Takes the smallest free space with room for `len` bytes.
    pub fn take(&mut self, len: usize, payload: usize) -> Option<FreeSpace> {
        let fitting = (0..self.free_spaces.len()).filter(|i| payload - self.free_spaces[*i].used >= len);
        let smallest = fitting.max_by_key(|i| self.free_spaces[*i].used)?;
        Some(self.free_spaces.swap_remove(smallest))
    }

    pub fn bytes_allocated(&self) -> usize {
        self.free_spaces.capacity() * size_of::<FreeSpace>()
    }

    /// Whether records may still be added to this block.
    pub fn has(&self, block: usize) -> bool {
        self.free_spaces.iter().any(|free_space| free_space.block == block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: usize = 1000;

    fn free_spaces(of: impl IntoIterator<Item = (usize, usize)>) -> FreeSpaces {
        let mut free_spaces = FreeSpaces::default();
        of.into_iter().for_each(|(block, used)| free_spaces.add(FreeSpace { block, used }, PAYLOAD));
        free_spaces
    }

    #[test]
    fn the_smallest_gap_with_room_is_taken_once() {
        let mut free_spaces =
            free_spaces([(0, 100), (1, 900), (2, 700), (3, PAYLOAD - FREE_SPACE_BYTES_MIN + 1)]);
        assert!(!free_spaces.has(3), "it is too small to be of use");
        let mut take = |len| free_spaces.take(len, PAYLOAD).map(|free_space| free_space.block);
        assert_eq!([take(101), take(100), take(100), take(1)], [Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn old_gaps_are_left_behind() {
        let mut free_spaces = free_spaces((0..FREE_SPACES_MAX + 2).map(|block| (block, 0)));
        assert!(!free_spaces.has(0) && !free_spaces.has(1) && free_spaces.has(2), "there are too many");
        free_spaces.leave_behind(4);
        assert!(!free_spaces.has(3) && free_spaces.has(4), "they are too far away");
    }
}
