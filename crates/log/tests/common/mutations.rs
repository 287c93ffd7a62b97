//! Fuzzing without a fuzzer: a committed corpus and seeded mutations of it, the same at every run.

use std::path::Path;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Calls `target` with every file of `corpus` and with `rounds` mutations of them.
pub fn smoke(corpus: &Path, rounds: usize, target: impl Fn(&[u8])) {
    let files = std::fs::read_dir(corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "{} is empty", corpus.display());
    let mut random = Random(1);
    target(&[]);
    seeds.iter().for_each(|seed| target(seed));
    for _ in 0..rounds {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            match random.below(8) {
                _ if bytes.is_empty() => bytes.push(random.next() as u8),
                0 => bytes.truncate(at),
                1 => bytes.insert(at, random.next() as u8),
                2 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
                3 => bytes[at] ^= 1 << random.below(8),
                4 => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
                5 => {
                    let part = bytes[at..(at + random.below(40)).min(bytes.len())].to_vec();
                    let to = random.below(bytes.len());
                    bytes.splice(to..to, part);
                }
                6 => {
                    let other = &seeds[random.below(seeds.len())];
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[random.below(other.len())..]);
                }
                _ => bytes[at] = random.next() as u8,
            }
        }
        target(&bytes);
    }
}
