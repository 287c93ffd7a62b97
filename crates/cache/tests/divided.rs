//! The RAM tier divided between entries and blocks: when each helps, that the division follows the lookups, that the
//! budget holds, and which options are refused.

use granary_cache::admission::Admission;
use granary_cache::{Cache, Entry, FlashOptions, Io, MemoryDivision, OpenError, Options, Outcome, testing};
use granary_log::device::MemoryDevice;
use std::path::Path;
use std::time::Duration;

const KEYS: u64 = 60_000;
const FILE_BYTES: u64 = 16 << 20;
const MEMORY_BYTES: u64 = 1 << 20;
/// Length of a run: keys that are put, and asked for, one after the other.
const RUN: u64 = 40;

fn fixed(blocks_percent: u8) -> MemoryDivision {
    MemoryDivision::Fixed { blocks_percent }
}

fn options(folder: &Path, memory_division: MemoryDivision) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), FILE_BYTES);
    // Few keys look alike to the index, and the same ones in every run.
    flash.hash_seed = Some(1);
    Options { flash: Some(flash), memory_bytes: MEMORY_BYTES, memory_division, ..Options::default() }
}

fn value(key: u64) -> [u8; 100] {
    [key as u8; 100]
}

fn filled(folder: &Path, memory_division: MemoryDivision) -> Cache {
    let device = Box::new(MemoryDevice::new(FILE_BYTES));
    let cache = Cache::open_on(device, options(folder, memory_division)).unwrap();
    for first in (0..KEYS).step_by(1000) {
        let keys: Vec<_> = (first..first + 1000).map(|key| (key.to_le_bytes(), value(key))).collect();
        let entries: Vec<Entry<'_>> = keys
            .iter()
            .map(|(key, value)| Entry { key: cache.key(key), value: Some(value), expires_at: 0 })
            .collect();
        cache.put_many_waiting(&entries, Duration::from_secs(60), |_, why| panic!("{why:?}"));
    }
    cache.flush().unwrap();
    cache
}

/// The kind of lookups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Points,
    Runs,
}

/// Lookups of one key at a time.
struct Reader<'a> {
    cache: &'a Cache,
    io: Io,
    random: fastrand::Rng,
}

impl Reader<'_> {
    fn get(&mut self, key: u64) {
        let bytes = key.to_le_bytes();
        self.cache.get_many(&mut self.io, &[self.cache.key(&bytes)], 0, |_, outcome| match outcome {
            Outcome::Hit { value: found, .. } => assert_eq!(found, value(key)),
            // Look-alikes displace each other.
            outcome => assert_eq!(outcome, Outcome::Miss),
        });
    }

    /// Skewed: small numbers are drawn more often.
    fn draw(&mut self, below: u64) -> u64 {
        (self.random.f64().powi(4) * below as f64) as u64
    }

    /// Lookups of single keys; frequent ones lie far from each other.
    fn points(&mut self, gets: u64) {
        (0..gets).for_each(|_| {
            let key = self.draw(KEYS) * 7919 % KEYS;
            self.get(key);
        });
    }

    /// Runs of neighbours, some of which are asked for more often.
    fn runs(&mut self, gets: u64) {
        for _ in 0..gets / RUN {
            let first = self.draw(KEYS / RUN) * 61 % (KEYS / RUN) * RUN;
            (first..first + RUN).for_each(|key| self.get(key));
        }
    }
}

fn reader(cache: &Cache) -> Reader<'_> {
    Reader { cache, io: Io::new(), random: fastrand::Rng::with_seed(5) }
}

/// (Blocks read for 1000 gets of the second half of a phase, percentage of the budget that blocks have at its end).
fn pass(reader: &mut Reader<'_>, phase: Phase) -> (u64, u64) {
    const GETS: u64 = 200_000;
    let run = |reader: &mut Reader<'_>| match phase {
        Phase::Points => reader.points(GETS / 2),
        Phase::Runs => reader.runs(GETS / 2),
    };
    run(reader);
    let before = reader.cache.stats();
    run(reader);
    let after = reader.cache.stats();
    assert!(after.memory_bytes <= MEMORY_BYTES, "{after:?}");
    testing::validate(reader.cache);
    let reads = (after.block_reads - before.block_reads) * 1000 / (GETS / 2);
    (reads, after.block_bytes * 100 / MEMORY_BYTES)
}

fn measure(division: MemoryDivision, phases: &[Phase]) -> Vec<(u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let cache = filled(folder.path(), division);
    let mut reader = reader(&cache);
    phases.iter().map(|phase| pass(&mut reader, *phase)).collect()
}

#[test]
fn what_is_measured_is_as_good_as_the_best_division_for_points_and_for_runs() {
    let [best_points, worst_points] = [0, 100].map(|percent| measure(fixed(percent), &[Phase::Points])[0].0);
    let [worst_runs, best_runs] = [0, 100].map(|percent| measure(fixed(percent), &[Phase::Runs])[0].0);
    assert!(best_points * 5 < worst_points * 4, "{best_points} {worst_points}");
    assert!(best_runs * 10 < worst_runs, "{best_runs} {worst_runs}");
    let phases = [Phase::Points, Phase::Runs, Phase::Points, Phase::Runs];
    let measured = measure(MemoryDivision::Measured, &phases);
    println!("points {best_points} to {worst_points}, runs {best_runs} to {worst_runs}: {measured:?}");
    for (phase, (reads, _)) in phases.into_iter().zip(&measured) {
        let best = if phase == Phase::Points { best_points } else { best_runs };
        assert!(*reads <= best * 11 / 10 + 1, "{reads} for 1000 gets, {best} at best");
    }
    let [of_points, of_runs, ..] = measured[..] else { panic!("a figure for each phase") };
    assert!(of_points.1 < 25 && of_runs.1 > 50, "most RAM went from entries to blocks: {measured:?}");
}

#[test]
fn a_fixed_division_is_kept() {
    for percent in [0, 25, 75, 100] {
        let folder = tempfile::tempdir().unwrap();
        let cache = filled(folder.path(), fixed(percent));
        let mut reader = reader(&cache);
        reader.points(100_000);
        reader.runs(100_000);
        let stats = cache.stats();
        let blocks = stats.block_bytes * 100 / MEMORY_BYTES;
        // Entries keep an eighth; blocks come in slabs.
        let expected = u64::from(percent).min(87);
        assert!(blocks <= expected && blocks + 3 >= expected, "{blocks} % where {percent} % are fixed");
        assert_eq!(stats.hits_block > 0, percent > 0);
        assert!(stats.memory_bytes <= MEMORY_BYTES);
    }
}

#[test]
fn a_batch_that_reads_more_blocks_than_are_kept_leaves_them_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = filled(folder.path(), fixed(50));
    let mut reader = reader(&cache);
    // Some blocks, which are kept.
    (0..RUN).for_each(|run| reader.get(run * 1000));
    let kept = |reader: &mut Reader<'_>| {
        let before = reader.cache.stats().block_reads;
        (0..RUN).for_each(|run| reader.get(run * 1000 + 1));
        reader.cache.stats().block_reads == before
    };
    assert!(kept(&mut reader));
    let all: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let batch: Vec<_> = all.iter().map(|key| cache.key(key)).collect();
    let mut found = 0;
    cache.get_many(&mut reader.io, &batch, 0, |i, outcome| {
        if let Outcome::Hit { value: bytes, .. } = outcome {
            assert_eq!(bytes, value(i as u64));
            found += 1;
        }
    });
    assert!(found > KEYS * 99 / 100);
    assert!(kept(&mut reader));
    cache.clear().unwrap();
    assert_eq!(cache.stats().block_bytes, 0);
}

#[test]
fn divisions_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |options: Options, what: &str| match Cache::open(options) {
        Err(OpenError::Invalid { option: "memory_division", .. }) => {}
        other => panic!("{what}: {other:?}"),
    };
    refused(options(folder.path(), fixed(101)), "more than all");
    refused(Options { memory_bytes: 64 << 10, ..options(folder.path(), fixed(50)) }, "too little for blocks");
    refused(Options { flash: None, ..options(folder.path(), fixed(50)) }, "no flash");
    let mut dram_first = options(folder.path(), fixed(50));
    dram_first.flash.as_mut().unwrap().admission = Admission::RejectFirst;
    refused(dram_first, "DRAM first");
    // Without a fixed division a small tier keeps no blocks, and is not refused.
    let small = Options { memory_bytes: 64 << 10, ..options(folder.path(), MemoryDivision::Measured) };
    assert_eq!(Cache::open(small).unwrap().stats().block_bytes, 0);
}
