//! How much to ask for at once where the lengths of values are unknown before they come.

/// A number of values, or of rows, that are read whole: as many of the longest recent length as a batch may have bytes.
/// A longer one makes the following batches small at once; each batch with only shorter ones halves the length that is
/// counted on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BatchSize {
    /// Bytes of the longest recent one.
    longest: usize,
    bytes_max: usize,
    count_max: usize,
}

/// How many are asked for first.
const FIRST: usize = 512;

impl BatchSize {
    /// Nothing has come yet.
    pub const fn new(bytes_max: usize, count_max: usize) -> BatchSize {
        BatchSize { longest: bytes_max / FIRST, bytes_max, count_max }
    }

    /// How many are asked for.
    pub fn count(&self) -> usize {
        (self.bytes_max / self.longest.max(1)).clamp(1, self.count_max)
    }

    /// Notes the bytes of each that came.
    pub fn learn(&mut self, lengths: impl Iterator<Item = usize>) {
        self.longest = lengths.max().unwrap_or(0).max(self.longest / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_asked_for_in_small_batches() {
        let mut size = BatchSize::new(64 << 20, 8192);
        assert_eq!(size.count(), FIRST);
        (0..20).for_each(|_| size.learn([100, 7].into_iter()));
        assert_eq!(size.count(), 8192);
        size.learn([100, 1 << 20].into_iter());
        assert_eq!(size.count(), 64, "at once");
        size.learn([100; 8].into_iter());
        assert_eq!(size.count(), 128);
        size.learn([1 << 30].into_iter());
        assert_eq!(size.count(), 1);
        (0..40).for_each(|_| size.learn([].into_iter()));
        assert_eq!(size.count(), 8192);
    }
}
