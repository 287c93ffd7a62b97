//! Keys that look alike to the index, through stops and kills: the next start rebuilds the same index, without entries
//! that were lost from it, at a bounded cost. See docs/index.md, "One version of a key".

mod common;

use common::HASH_SEED;
use granary_cache::admission::Admission;
use granary_cache::limits::{HASH_BITS, SAME_HASH_MAX};
use granary_cache::{Cache, Engine, Entry, FlashOptions, Io, KeyHasher, Options, Outcome, Stats, testing};
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bits of the index's hash that all keys have in common: on average three others look like each key.
const COMMON_BITS: u32 = 11;
const KEYS: usize = 100_000;
const BATCH: usize = 1000;
const REOPENS: usize = 10;

fn options(folder: &Path, admission: Admission, memory_bytes: u64) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 64 << 20);
    flash.hash_seed = Some(HASH_SEED);
    flash.admission = admission;
    // At a segment's end a note of look-alikes is lost now and then: small segments end often.
    flash.write_buffer_size = 512 << 10;
    Options { flash: Some(flash), memory_bytes, ..Options::default() }
}

fn keys(options: &Options) -> Vec<[u8; 8]> {
    let index_bits = options.flash.as_ref().unwrap().index_hash_bits().unwrap();
    let hasher = KeyHasher::with_seed(HASH_SEED);
    let is_alike = |key: &[u8; 8]| {
        (hasher.hash(key).to_bits() >> (HASH_BITS - index_bits)).trailing_zeros() >= COMMON_BITS
    };
    (0u64..).map(u64::to_le_bytes).filter(is_alike).take(KEYS).collect()
}

fn put(cache: &Cache, keys: &[[u8; 8]]) {
    let entries = keys.iter().map(|key| Entry { key: cache.key(key), value: Some(key), expires_at: 0 });
    cache.put_many(&entries.collect::<Vec<_>>());
    let deadline = Instant::now() + Duration::from_secs(60);
    while cache.is_behind() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The keys that are found.
fn found(cache: &Cache, keys: &[[u8; 8]]) -> HashSet<[u8; 8]> {
    let (mut io, mut found) = (Io::with_engine(Engine::Plain), HashSet::new());
    let asked: Vec<_> = keys.iter().map(|key| cache.key(key)).collect();
    cache.get_many(&mut io, &asked, 1, |i, outcome| {
        let Outcome::Hit { value, .. } = outcome else { return };
        assert_eq!(value, keys[i]);
        found.insert(keys[i]);
    });
    found
}

/// As a cache is used: what is missed is put.
fn fill(cache: &Cache, keys: &[[u8; 8]]) {
    for keys in keys.chunks(BATCH) {
        let there = found(cache, keys);
        let missed: Vec<[u8; 8]> = keys.iter().filter(|key| !there.contains(*key)).copied().collect();
        put(cache, &missed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Stop,
    Kill,
}

/// The keys found in each of many rounds, and the cache's counters. The first round fills it; the others change
/// nothing.
fn reopen(admission: Admission, memory_bytes: u64, ends: Ends) -> Vec<(HashSet<[u8; 8]>, Stats)> {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), admission, memory_bytes);
    let keys = keys(&options);
    let mut rounds = Vec::new();
    for round in 0..=REOPENS {
        let cache = Cache::open(options.clone()).unwrap();
        if round == 0 {
            fill(&cache, &keys);
            cache.flush().unwrap();
        }
        rounds.push((found(&cache, &keys), cache.stats()));
        testing::validate(&cache);
        match ends {
            Ends::Stop => cache.close().unwrap(),
            Ends::Kill => testing::abandon(cache),
        }
    }
    rounds
}

fn check(rounds: &[(HashSet<[u8; 8]>, Stats)], what: &str) {
    let (of_first, _) = &rounds[0];
    let (of_second, _) = &rounds[1];
    println!("{what}: {} of {KEYS} found, {} after the first reopen", of_first.len(), of_second.len());
    assert!(of_second.is_subset(of_first), "{what}: what was lost from the index came back");
    for (round, (found, stats)) in rounds.iter().enumerate().skip(1) {
        assert!(found == of_second, "{what}: a reopen without changes changed what is found, {round}");
        assert_eq!(stats.bytes_written, 0, "{what}: round {round} changed nothing and wrote");
        assert_eq!(stats.flash_segments_used, rounds[1].1.flash_segments_used, "{what}: round {round}");
        let most = stats.records_measured * SAME_HASH_MAX as u64;
        assert!(stats.compared_at_start <= most, "{what}: {} comparisons", stats.compared_at_start);
        assert_eq!(stats.compared_at_start, rounds[1].1.compared_at_start, "{what}: round {round}");
    }
}

#[test]
fn write_through_a_start_finds_what_the_index_had() {
    for ends in [Ends::Stop, Ends::Kill] {
        let rounds = reopen(Admission::All, 0, ends);
        check(&rounds, "write-through");
        let (before, after) = (rounds[0].0.len(), rounds[1].0.len());
        assert!(after * 1000 >= before * 999, "{after} of {before} are there");
        let stats = &rounds[1].1;
        assert!(stats.displaced_at_start > 0, "some had lost their places: {stats:?}");
        assert!(stats.compared_at_start <= stats.records_measured * 2, "{stats:?}");
    }
}

/// Half of the keys are put again in each round. Once the file is full, a round costs what the one before did.
#[test]
fn reopens_with_changes_cost_no_more_from_round_to_round() {
    let level = |costs: &[u64], what: &str| {
        let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
        assert!(*least > 0 && *most <= 2 * least, "{what}: {costs:?}");
    };
    for ends in [Ends::Stop, Ends::Kill] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path(), Admission::All, 0);
        options.flash.as_mut().unwrap().file_size = 8 << 20;
        let keys = keys(&options);
        let again: Vec<[u8; 8]> = keys.iter().copied().step_by(2).collect();
        let (mut written, mut compared) = (Vec::new(), Vec::new());
        for round in 0..2 * REOPENS {
            let cache = Cache::open(options.clone()).unwrap();
            let stats = cache.stats();
            let most = stats.records_measured * SAME_HASH_MAX as u64;
            assert!(
                stats.compared_at_start <= most,
                "round {round}: {} comparisons",
                stats.compared_at_start
            );
            compared.push(stats.compared_at_start);
            let changed = if round == 0 { &keys } else { &again };
            changed.chunks(BATCH).for_each(|keys| put(&cache, keys));
            cache.flush().unwrap();
            written.push(cache.stats().bytes_written);
            match ends {
                Ends::Stop => cache.close().unwrap(),
                Ends::Kill => testing::abandon(cache),
            }
        }
        level(&written[1..], "bytes written");
        level(&compared[REOPENS..], "entries compared");
    }
}

#[test]
fn dram_first_a_start_finds_what_the_index_had() {
    let rounds = reopen(Admission::Probability(1.0), 1 << 20, Ends::Stop);
    check(&rounds[1..], "DRAM first");
}
