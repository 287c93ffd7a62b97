//! Opening takes no more RAM than its bound, and finds the same entries whatever the bound.

#[path = "../../log/tests/common/counting.rs"]
mod counting;

use counting::{ALONE, allocated, most_allocated};
use granary_cache::{Cache, Engine, Entry, FlashOptions, Io, Options, Outcome, testing};
use granary_log::device::{Device, Fault, Faults, FaultyDevice, FileDevice, Space};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const FILE_SIZE: u64 = 32 << 20;
const ROUNDS: u64 = 3;

fn options(folder: &Path, opening_bytes: u64) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), FILE_SIZE);
    (flash.write_buffer_size, flash.opening_bytes) = (256 << 10, opening_bytes);
    Options { flash: Some(flash), ..Options::default() }
}

/// Puts each key in each round, with the round as its value, and deletes the keys with `key % 10 == round`.
fn fill(cache: &Cache, keys: u64) {
    for round in 0..ROUNDS {
        for first in (0..keys).step_by(1000) {
            let bytes: Vec<[u8; 8]> = (first..first + 1000).map(u64::to_le_bytes).collect();
            let round = round.to_le_bytes();
            let entry = |key| Entry { key: cache.key(key), value: Some(&round), expires_at: 0 };
            let entries: Vec<Entry<'_>> = bytes.iter().map(|key| entry(key)).collect();
            cache.put_many_waiting(&entries, Duration::from_secs(60), |_, why| panic!("{why}"));
        }
        let deleted: Vec<[u8; 8]> = (0..keys).filter(|key| key % 10 == round).map(u64::to_le_bytes).collect();
        let deleted: Vec<_> = deleted.iter().map(|key| cache.key(key)).collect();
        cache.delete_many(&deleted);
    }
    cache.flush().unwrap();
}

/// The value, which is a round, of each key.
fn found(cache: &Cache, keys: u64) -> Vec<Option<u64>> {
    let mut rounds = vec![None; keys as usize];
    let mut io = Io::with_engine(Engine::Plain);
    for first in (0..keys).step_by(1000) {
        let bytes: Vec<[u8; 8]> = (first..first + 1000).map(u64::to_le_bytes).collect();
        let keys: Vec<_> = bytes.iter().map(|key| cache.key(key)).collect();
        cache.get_many(&mut io, &keys, 1, |i, outcome| {
            if let Outcome::Hit { value, .. } = outcome {
                rounds[first as usize + i] = Some(u64::from_le_bytes(value.try_into().unwrap()));
            }
        });
    }
    rounds
}

#[test]
fn opening_takes_what_it_is_given_and_finds_the_same() {
    const KEYS: u64 = 200_000;
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let open = |opening_bytes| Cache::open(options(folder.path(), opening_bytes)).unwrap();
    fill(&open(0), KEYS);
    let mut all = Vec::new();
    let records = (KEYS * ROUNDS) as i64;
    for (opening_bytes, passes) in [(128 << 20, 1), (4 * KEYS * ROUNDS, 2), (0, 8)] {
        let before = allocated();
        let (most, cache) = most_allocated(|| open(opening_bytes));
        let stats = cache.stats();
        let beside = most - before - stats.bytes_allocated() as i64;
        println!(
            "{opening_bytes} bytes: {beside} bytes beside what the cache takes, {:.2} a record",
            beside as f64 / records as f64
        );
        // 8 bytes for each record of a pass, which is sorted, beside the summary entries being sorted; 25 bytes more
        // for records of the shards replayed at the same time. The rest is for counts, and for segments being read.
        let shards = std::thread::available_parallelism().unwrap().get().min(4) as i64;
        let allowed = 8 * records / passes
            + 25 * records / 64 * shards
            + 3 * (256 << 10)
            + 4 * (FILE_SIZE as i64 / 4096) * 2;
        assert!(beside < allowed, "{opening_bytes} bytes: {beside} of {allowed}");
        let rounds = found(&cache, KEYS);
        let newest = rounds.iter().filter(|round| **round == Some(ROUNDS - 1)).count() as u64;
        assert!(newest >= KEYS * 89 / 100, "{newest}");
        assert!((0..KEYS).zip(&rounds).all(|(key, round)| match key % 10 == ROUNDS - 1 {
            true => round.is_none(),
            false => round.is_none_or(|round| round == ROUNDS - 1),
        }));
        all.push((stats.entries, rounds));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

/// A segment that cannot be read the second time may have had the newest version of any key.
#[test]
fn what_cannot_be_read_again_brings_nothing_back() {
    const KEYS: u64 = 20_000;
    let _alone = ALONE.lock();
    let (mut hits, mut whole) = (0, 0);
    for seed in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let file =
            FileDevice::open_in_units(&folder.path().join("d"), FILE_SIZE, 4096, Space::Reserved).unwrap();
        let device = Arc::new(FaultyDevice::new(file, 4096, Faults::default()));
        let open = || {
            let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
            Cache::open_on(boxed, options(folder.path(), 0)).unwrap()
        };
        let cache = open();
        fill(&cache, KEYS);
        testing::abandon(cache);
        device.set_faults(Faults { seed, chances: vec![(Fault::Eio, 1000)], crash_after_writes: None });
        let cache = open();
        device.set_faults(Faults::default());
        for (key, round) in (0..KEYS).zip(found(&cache, KEYS)) {
            let Some(round) = round else { continue };
            assert!(round == ROUNDS - 1 && key % 10 != round, "seed {seed}: key {key} of round {round}");
            hits += 1;
        }
        whole += u64::from(cache.stats().entries >= KEYS * 89 / 100);
        testing::validate(&cache);
    }
    println!("{hits} hits, {whole} of 40 whole");
    assert!(hits > KEYS && whole < 40, "{hits} hits, {whole} whole");
}
