//! Keys, values, and the orders in which they are read, the same as in `rivals/stores/workload.hh`.

use super::random::{Permutation, Random, Zipf};

/// The seed of the order in which keys are loaded.
const LOAD_SEED: u64 = 1;

/// The seed of the order in which popular keys, and runs, are scattered among the others.
const SCATTER_SEED: u64 = 2;

/// The seed of the order in which all keys are read to fill caches.
const PASS_SEED: u64 = 3;

/// Consecutive keys that `neighbours` reads after each other.
pub const RUN_LENGTH: u64 = 50;

/// The phases of the workload `phases`.
pub const PHASES: [&str; 3] = ["zipf", "neighbours", "scan"];

enum WorkloadKind {
    Random,
    Hot,
    Zipf,
    Neighbours,
    InOrder,
}

/// Numbers of keys, in the order in which a workload reads them.
pub struct Keys {
    kind: WorkloadKind,
    keys: u64,
    random: Random,
    zipf: Zipf,
    scatter: Permutation,
    count: u64,
    start: u64,
}

impl Keys {
    /// The workload `name` on the keys below `keys`; `None`: there is no such workload.
    pub fn new(name: &str, keys: u64, seed: u64) -> Option<Self> {
        let kind = match name {
            "readrandom" | "seekrandom" => WorkloadKind::Random,
            "readhot" => WorkloadKind::Hot,
            "zipf" => WorkloadKind::Zipf,
            "neighbours" => WorkloadKind::Neighbours,
            "scan" | "readseq" => WorkloadKind::InOrder,
            _ => return None,
        };
        let ranks = if matches!(kind, WorkloadKind::Neighbours) { (keys / RUN_LENGTH).max(1) } else { keys };
        Some(Self {
            kind,
            keys,
            random: Random::new(seed),
            zipf: Zipf::new(ranks),
            scatter: Permutation::new(ranks, SCATTER_SEED),
            count: 0,
            start: 0,
        })
    }
}

impl Iterator for Keys {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let count = self.count;
        self.count += 1;
        Some(match self.kind {
            WorkloadKind::Random => self.random.below(self.keys),
            WorkloadKind::Hot => self.random.below(keys_of("readhot", self.keys)),
            WorkloadKind::Zipf => self.scatter.at(self.zipf.rank(&mut self.random)),
            WorkloadKind::Neighbours => {
                let place = count % RUN_LENGTH;
                if place == 0 {
                    self.start = self.scatter.at(self.zipf.rank(&mut self.random)) * RUN_LENGTH;
                }
                (self.start + place) % self.keys
            }
            WorkloadKind::InOrder => count % self.keys,
        })
    }
}

/// Returns how many of the keys a workload may read: the first ones.
pub fn keys_of(name: &str, keys: u64) -> u64 {
    if name == "readhot" { keys.div_ceil(100) } else { keys }
}

/// Returns each key that a workload may read, once, in scattered order.
pub fn pass(name: &str, keys: u64) -> impl Iterator<Item = u64> + use<> {
    let order = Permutation::new(keys_of(name, keys), PASS_SEED);
    (0..keys_of(name, keys)).map(move |place| order.at(place))
}

/// The order in which keys are loaded at random.
pub fn load_order(keys: u64) -> Permutation {
    Permutation::new(keys, LOAD_SEED)
}

/// The bytes of a key: its number in sixteen digits.
pub fn key_of(number: u64) -> [u8; 16] {
    let (mut digits, mut rest) = ([b'0'; 16], number);
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Writes the value of a key into `value`, to its length. The second half of a compressible value repeats the first.
pub fn value_of(number: u64, is_compressible: bool, value: &mut [u8]) {
    let drawn = if is_compressible { value.len().div_ceil(2) } else { value.len() };
    let mut random = Random::new(number);
    for word in value[..drawn].chunks_mut(8) {
        let bytes = random.draw().to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
    let rest = value.len() - drawn;
    value.copy_within(..rest, drawn);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_read_what_their_names_say() {
        let take = |name| Keys::new(name, 10_000, 1).unwrap().take(10_000).collect::<Vec<_>>();
        assert_eq!(take("scan"), (0..10_000).collect::<Vec<_>>());
        assert!(take("readhot").iter().all(|key| *key < 100));
        assert!(take("neighbours").chunks(50).all(|run| run.windows(2).all(|pair| pair[1] == pair[0] + 1)));
        let mut popular = take("zipf");
        popular.sort_unstable();
        popular.dedup();
        assert!((2000..5000).contains(&popular.len()), "{} keys", popular.len());
        assert!(Keys::new("nothing", 1, 1).is_none());
    }

    #[test]
    fn a_pass_has_each_key_of_a_workload_once() {
        for (name, count) in [("readrandom", 10_000), ("readhot", 100)] {
            let mut all: Vec<u64> = pass(name, 10_000).collect();
            assert!(!all.is_sorted());
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn keys_and_values_are_these_bytes() {
        assert_eq!(&key_of(1234), b"0000000000001234");
        let (mut half, mut whole) = ([0; 13], [0; 13]);
        value_of(5, true, &mut half);
        value_of(5, false, &mut whole);
        assert_eq!((&half[..7], &half[7..]), (&whole[..7], &half[..6]));
        assert_ne!(half, whole);
    }
}
