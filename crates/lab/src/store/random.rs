//! Random numbers, permutations and Zipf ranks, bit for bit the same as in `rivals/stores/workload.hh`.

/// The exponent of [`Zipf`].
const EXPONENT: f64 = 0.99;
const REST: f64 = 1.0 - EXPONENT;

const ROUNDS: u64 = 4;

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The generator splitmix64.
pub struct Random(u64);

impl Random {
    /// Another stream for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a number from 0 to 1, 1 not included.
    fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A permutation of the numbers below `n`: a Feistel network, reapplied until the result is below `n`.
pub struct Permutation {
    n: u64,
    seed: u64,
    half_bits: u32,
}

impl Permutation {
    /// Another order for each seed.
    pub fn new(n: u64, seed: u64) -> Self {
        let mut bits = 2;
        while bits < 62 && 1 << bits < n {
            bits += 2;
        }
        Self { n, seed, half_bits: bits / 2 }
    }

    /// Returns the number at a place of the order.
    pub fn at(&self, place: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut number = place;
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..ROUNDS {
                let input = self.seed.wrapping_add(round << 60).wrapping_add(right).wrapping_add(1);
                (left, right) = (right, left ^ (mix(input) & mask));
            }
            number = (left << self.half_bits) | right;
            if number < self.n {
                return number;
            }
        }
    }
}

/// Ranks by Zipf's law with the exponent 0.99, drawn by rejection from the inverted integral (Hoermann and Derflinger,
/// 1996).
pub struct Zipf {
    n: f64,
    first: f64,
    last: f64,
    near: f64,
}

fn density(x: f64) -> f64 {
    x.powf(-EXPONENT)
}

fn integral(x: f64) -> f64 {
    (x.powf(REST) - 1.0) / REST
}

fn inverse(y: f64) -> f64 {
    (1.0 + y * REST).powf(1.0 / REST)
}

impl Zipf {
    /// Ranks below `n`.
    pub fn new(n: u64) -> Self {
        let n = n as f64;
        let near = 2.0 - inverse(integral(2.5) - density(2.0));
        Self { n, first: integral(1.5) - 1.0, last: integral(n + 0.5), near }
    }

    /// Returns a rank; 0 is the most popular.
    pub fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.last + random.unit() * (self.first - self.last);
            let x = inverse(u);
            let k = (x + 0.5).floor().max(1.0).min(self.n);
            if k - x <= self.near || u >= integral(k + 0.5) - density(k) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_each_number_once() {
        for n in [1, 2, 5, 1000, 4096, 4097] {
            let order = Permutation::new(n, 7);
            let mut all: Vec<u64> = (0..n).map(|place| order.at(place)).collect();
            assert!(n < 1000 || all.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < 10, "{n}");
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn ranks_follow_the_law() {
        let (zipf, mut random) = (Zipf::new(1000), Random::new(1));
        let mut counts = [0u32; 1000];
        (0..1_000_000).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1);
        let sum: f64 = (1..=1000).map(|k| density(f64::from(k))).sum();
        for rank in [0usize, 1, 2, 9, 99] {
            let (wanted, got) = (density((rank + 1) as f64) / sum * 1e6, f64::from(counts[rank]));
            assert!((got - wanted).abs() < 5.0 * wanted.sqrt(), "rank {rank}: {got}, {wanted} wanted");
        }
    }
}
