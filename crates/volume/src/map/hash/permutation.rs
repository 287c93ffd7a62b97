//! A keyed permutation of numbers of a few bits: an invertible hash without collisions.

/// A permutation of the numbers of `bits` bits. The key keeps clients from choosing blocks that crowd a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    mask: u64,
    shift: u32,
    addend: u64,
    multipliers: [u64; 3],
}

impl Permutation {
    pub fn new(bits: u32, key: u64) -> Self {
        assert!((1..=63).contains(&bits));
        // The constants of SplitMix64, which turn one number into several.
        let mut state = key;
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        };
        let addend = next();
        // Odd, so that multiplying is a permutation.
        let multipliers = [next() | 1, next() | 1, next() | 1];
        Self { mask: (1 << bits) - 1, shift: bits.div_ceil(2), addend, multipliers }
    }

    /// The number that `number` maps to.
    pub fn apply(&self, number: u64) -> u64 {
        debug_assert!(number <= self.mask);
        // Each step is one to one: adding and multiplying by an odd number modulo a power of two, and
        // combining the low half of the bits with the high half.
        let mut mixed = number.wrapping_add(self.addend);
        for multiplier in self.multipliers {
            mixed = mixed.wrapping_mul(multiplier) & self.mask;
            mixed ^= mixed >> self.shift;
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::Permutation;

    #[test]
    fn every_number_is_hit_once() {
        for bits in [1, 2, 7, 16] {
            for key in 0..20 {
                let permutation = Permutation::new(bits, key);
                let mut hit = vec![false; 1 << bits];
                (0..1u64 << bits).for_each(|n| hit[permutation.apply(n) as usize] = true);
                assert!(hit.into_iter().all(|hit| hit), "{bits} bits, key {key}");
            }
        }
    }

    /// Blocks one after the other, or far apart by a power of two, spread over buckets like random ones.
    #[test]
    fn regular_blocks_are_spread() {
        for key in 0..20 {
            let permutation = Permutation::new(40, key);
            for stride in [1, 8, 1 << 10, 1 << 20, 1 << 24] {
                let mut low = vec![0u32; 1024];
                let mut high = vec![0u32; 1024];
                for i in 0..1 << 16 {
                    let hash = permutation.apply(i * stride);
                    low[hash as usize % 1024] += 1;
                    high[(hash >> 30) as usize] += 1;
                }
                // 64 in each bucket on average, with a standard deviation of 8.
                for counts in [low, high] {
                    let most = counts.into_iter().max().unwrap();
                    assert!(most < 64 + 8 * 8, "key {key}, stride {stride}: {most} in one bucket");
                }
            }
        }
    }
}
