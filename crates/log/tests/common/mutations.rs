//! Fuzzing without a fuzzer: a committed corpus and seeded mutations of it, the same at every run.

#[path = "random.rs"]
mod random;

use random::Random;
use std::path::Path;

/// Calls `target` with every file of `corpus` and with `rounds` mutations of them.
pub fn smoke(corpus: &Path, rounds: usize, target: impl Fn(&[u8])) {
    let files = std::fs::read_dir(corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "{} is empty", corpus.display());
    let mut random = Random(1);
    let mut below = |n: usize| random.below(n.max(1) as u64) as usize;
    target(&[]);
    seeds.iter().for_each(|seed| target(seed));
    for _ in 0..rounds {
        let mut bytes = seeds[below(seeds.len())].clone();
        for _ in 0..1 + below(4) {
            let at = below(bytes.len());
            match below(8) {
                _ if bytes.is_empty() => bytes.push(below(256) as u8),
                0 => bytes.truncate(at),
                1 => bytes.insert(at, below(256) as u8),
                2 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][below(5)],
                3 => bytes[at] ^= 1 << below(8),
                4 => drop(bytes.drain(at..(at + below(20)).min(bytes.len()))),
                5 => {
                    let part = bytes[at..(at + below(40)).min(bytes.len())].to_vec();
                    let to = below(bytes.len());
                    bytes.splice(to..to, part);
                }
                6 => {
                    let other = &seeds[below(seeds.len())];
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[below(other.len())..]);
                }
                _ => bytes[at] = below(256) as u8,
            }
        }
        target(&bytes);
    }
}
