//! Allocation of an arena's frames.

use crate::buffer::ALIGNMENT;
use crate::limits::{READ_DEPTH, READ_FRAMES_MAX};

/// The frames of an arena, side by side: [`READ_DEPTH`] of them. A long read takes several neighbours.
pub(super) struct Frames {
    /// A bit for each frame, set if it is free.
    free: u64,
}

/// Bytes of a frame, for reads of at most `read_bytes_max` bytes.
pub(super) const fn bytes_each(read_bytes_max: usize) -> usize {
    read_bytes_max.div_ceil(READ_FRAMES_MAX).next_multiple_of(ALIGNMENT)
}

const _: () = assert!(READ_DEPTH == u64::BITS as usize, "a frame has a bit");

impl Frames {
    /// Frames that are all free.
    pub fn new() -> Self {
        Self { free: u64::MAX }
    }

    /// Takes `count` neighbours, the lowest ones free, and returns the first. `None`: there are no `count` free
    /// neighbours.
    pub fn take(&mut self, count: usize) -> Option<usize> {
        // A bit is set if `count` frames from there on are free.
        let mut runs = self.free;
        for _ in 1..count {
            runs &= runs >> 1;
        }
        let first = runs.trailing_zeros() as usize;
        (runs != 0).then(|| {
            self.free &= !Self::bits(first, count);
            first
        })
    }

    /// Frees `count` frames from `first` on.
    pub fn give_back(&mut self, first: usize, count: usize) {
        debug_assert_eq!(self.free & Self::bits(first, count), 0, "they were taken");
        self.free |= Self::bits(first, count);
    }

    fn bits(first: usize, count: usize) -> u64 {
        (u64::MAX >> (READ_DEPTH - count)) << first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_taken_where_they_are_free() {
        let mut frames = Frames::new();
        assert_eq!((frames.take(1), frames.take(4), frames.take(3)), (Some(0), Some(1), Some(5)));
        frames.give_back(1, 4);
        assert_eq!(
            (frames.take(5), frames.take(3), frames.take(1), frames.take(1)),
            (Some(8), Some(1), Some(4), Some(13))
        );
        assert_eq!((frames.take(50), frames.take(1)), (Some(14), None));
        frames.give_back(5, 3);
        assert_eq!(
            (frames.take(4), frames.take(2), frames.take(2), frames.take(1)),
            (None, Some(5), None, Some(7))
        );
        assert_eq!(Frames::new().take(READ_DEPTH), Some(0));
    }

    #[test]
    fn no_place_is_taken_twice() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut frames, mut taken) = (Frames::new(), Vec::<(usize, usize)>::new());
        for _ in 0..10_000 {
            let count = random.usize(1..=4);
            let is_free =
                |at: usize| !taken.iter().any(|&(first, count)| (first..first + count).contains(&at));
            let fits = (0..=READ_DEPTH - count).find(|&first| (first..first + count).all(is_free));
            if random.bool() {
                assert_eq!(frames.take(count), fits);
                taken.extend(fits.map(|first| (first, count)));
            } else if !taken.is_empty() {
                let (first, count) = taken.swap_remove(random.usize(..taken.len()));
                frames.give_back(first, count);
            }
        }
    }
}
