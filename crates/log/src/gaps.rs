//! Room that is left at the ends of blocks: where the next record did not fit, a shorter one may later.

use crate::limits::{GAP_BYTES_MIN, GAPS_MAX};

/// The rest of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Its block, of the segment.
    pub block: usize,
    /// Bytes of the block's payload before it.
    pub used: usize,
}

/// Gaps of a segment that is being filled, none far behind its last block.
#[derive(Default)]
pub(crate) struct Gaps {
    gaps: Vec<Gap>,
}

impl Gaps {
    /// Notes the rest of a block, of a payload of so many bytes. The oldest one makes room for it.
    pub fn add(&mut self, gap: Gap, payload: usize) {
        if payload - gap.used < GAP_BYTES_MIN {
            return;
        }
        if self.gaps.len() == GAPS_MAX {
            let oldest = (0..self.gaps.len()).min_by_key(|i| self.gaps[*i].block);
            oldest.map(|i| self.gaps.swap_remove(i));
        }
        self.gaps.push(gap);
    }

    /// Forgets gaps before a block.
    pub fn leave_behind(&mut self, block: usize) {
        self.gaps.retain(|gap| gap.block >= block);
    }

    /// Takes the smallest gap with room for `len` bytes.
    pub fn take(&mut self, len: usize, payload: usize) -> Option<Gap> {
        let fitting = (0..self.gaps.len()).filter(|i| payload - self.gaps[*i].used >= len);
        let smallest = fitting.max_by_key(|i| self.gaps[*i].used)?;
        Some(self.gaps.swap_remove(smallest))
    }

    pub fn bytes_allocated(&self) -> usize {
        self.gaps.capacity() * size_of::<Gap>()
    }

    /// Whether records may come to this block.
    pub fn has(&self, block: usize) -> bool {
        self.gaps.iter().any(|gap| gap.block == block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: usize = 1000;

    fn gaps(of: impl IntoIterator<Item = (usize, usize)>) -> Gaps {
        let mut gaps = Gaps::default();
        of.into_iter().for_each(|(block, used)| gaps.add(Gap { block, used }, PAYLOAD));
        gaps
    }

    #[test]
    fn the_smallest_gap_with_room_is_taken_once() {
        let mut gaps = gaps([(0, 100), (1, 900), (2, 700), (3, PAYLOAD - GAP_BYTES_MIN + 1)]);
        assert!(!gaps.has(3), "it is too small to be of use");
        let mut take = |len| gaps.take(len, PAYLOAD).map(|gap| gap.block);
        assert_eq!([take(101), take(100), take(100), take(1)], [Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn old_gaps_are_left_behind() {
        let mut gaps = gaps((0..GAPS_MAX + 2).map(|block| (block, 0)));
        assert!(!gaps.has(0) && !gaps.has(1) && gaps.has(2), "there are too many");
        gaps.leave_behind(4);
        assert!(!gaps.has(3) && gaps.has(4), "they are too far away");
    }
}
