//! Streams of keys.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// Keys `0..keys` with Zipf popularity; a key's rank is scrambled, so that popular keys do not lie side by side.
/// Repeatable by its seed.
pub struct Skewed {
    ranks: Zipf<f64>,
    keys: u64,
    random: SmallRng,
}

impl Skewed {
    /// `exponent`: 0 is uniform, 1 is the classic Zipf law.
    pub fn new(keys: u64, exponent: f64, seed: u64) -> Self {
        let ranks = Zipf::new(keys.max(1) as f64, exponent).expect("at least one key, exponent not negative");
        Self { ranks, keys: keys.max(1), random: SmallRng::seed_from_u64(seed) }
    }

    /// A key drawn uniformly, for comparison.
    pub fn uniform(&mut self) -> u64 {
        self.random.random_range(0..self.keys)
    }
}

impl Iterator for Skewed {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let rank = self.ranks.sample(&mut self.random) as u64 - 1;
        // A bijection if `keys` and the multiplier are coprime, else nearly one.
        Some((u128::from(rank) * 0x9E37_79B9_7F4A_7C15 % u128::from(self.keys)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn few_keys_take_most_of_the_stream_and_the_seed_repeats_it() {
        let stream: Vec<u64> = Skewed::new(1_000_000, 1.0, 7).take(100_000).collect();
        assert_eq!(stream, Skewed::new(1_000_000, 1.0, 7).take(100_000).collect::<Vec<_>>());
        let mut counts: HashMap<u64, u32> = HashMap::new();
        stream.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts.iter().take(1000).sum();
        assert!((45_000..65_000).contains(&top), "the thousand most popular of a million: {top}");
        assert!(stream.iter().all(|key| *key < 1_000_000));
    }
}
