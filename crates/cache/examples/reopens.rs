//! The time to open a cache again and again without changes, and the bytes written meanwhile:
//! `reopens KEYS ALIKE_BITS FILE_MIB MEMORY_MIB all|reuse close|kill ROUNDS look|fill|again`. ALIKE_BITS of the hash
//! bits that the index keeps are equal for all keys. In a round all keys are looked up; with `fill` those that are
//! missed are put, with `again` every second key is put again.

use granary_cache::admission::Admission;
use granary_cache::limits::HASH_BITS;
use granary_cache::{Cache, Entry, FlashOptions, Io, KeyHasher, Options, Outcome, testing};
use std::time::Instant;

const SEED: u64 = 1;
const BATCH: usize = 1 << 14;

/// Keys whose hashes agree in the lowest `alike_bits` of their upper `index_bits` bits.
fn keys(count: usize, index_bits: u32, alike_bits: u32) -> Vec<[u8; 8]> {
    let hasher = KeyHasher::with_seed(SEED);
    let is_alike = |key: &[u8; 8]| {
        (hasher.hash(key).to_bits() >> (HASH_BITS - index_bits)).trailing_zeros() >= alike_bits
    };
    (0u64..).map(u64::to_le_bytes).filter(is_alike).take(count).collect()
}

fn put(cache: &Cache, keys: &[[u8; 8]]) {
    for keys in keys.chunks(BATCH) {
        let entries = keys.iter().map(|key| Entry { key: cache.key(key), value: Some(key), expires_at: 0 });
        cache.put_many(&entries.collect::<Vec<_>>());
        while cache.is_behind() {
            std::thread::yield_now();
        }
    }
}

/// The keys that are not found.
fn missed(cache: &Cache, keys: &[[u8; 8]]) -> Vec<[u8; 8]> {
    let (mut io, mut missed) = (Io::new(), Vec::new());
    for keys in keys.chunks(BATCH) {
        let asked: Vec<_> = keys.iter().map(|key| cache.key(key)).collect();
        cache.get_many(&mut io, &asked, 1, |i, outcome| {
            if !matches!(outcome, Outcome::Hit { .. }) {
                missed.push(keys[i]);
            }
        });
    }
    missed
}

fn main() {
    run(&std::env::args().skip(1).collect::<Vec<String>>());
}

/// Measures with these arguments.
pub fn run(words: &[String]) {
    let number = |i: usize| words[i].parse::<u64>().expect("a number");
    let folder = tempfile::tempdir().expect("a folder");
    let mut flash = FlashOptions::new(folder.path().join("c"), number(2) << 20);
    flash.hash_seed = Some(SEED);
    if words[4] != "all" {
        flash.admission = Admission::Reuse;
    }
    let keys = keys(number(0) as usize, flash.index_hash_bits().expect("sizes fit"), number(1) as u32);
    let options = Options { flash: Some(flash), memory_bytes: number(3) << 20, ..Options::default() };
    for round in 0..=number(6) {
        let begun = Instant::now();
        let cache = Cache::open(options.clone()).expect("it opens");
        let seconds = begun.elapsed().as_secs_f64();
        let opened = cache.stats();
        if round == 0 {
            put(&cache, &keys);
        }
        let missed = missed(&cache, &keys);
        match &words[7][..] {
            "fill" => put(&cache, &missed),
            "again" => put(&cache, &keys.iter().copied().step_by(2).collect::<Vec<_>>()),
            _ => (),
        }
        let stats = cache.stats();
        println!(
            "round {round}: opened in {seconds:.2} s with {} entries ({} on flash); {} of {} keys missed, {:.2} MiB \
             written, {} of {} segments used",
            opened.entries,
            opened.flash_entries,
            missed.len(),
            keys.len(),
            stats.bytes_written as f64 / (1 << 20) as f64,
            stats.flash_segments_used,
            stats.flash_segments
        );
        if words[5] == "kill" {
            testing::abandon(cache);
        } else {
            cache.close().expect("it stops");
        }
    }
}
