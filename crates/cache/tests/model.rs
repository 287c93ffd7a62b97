//! The cache against a plain map, through stops, kills, faults and reuse of the file. A lookup may miss; it must never
//! return anything but the newest value put.

#[path = "../../log/tests/common/random.rs"]
mod random;
#[path = "common/room.rs"]
mod room;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use granary_cache::admission::{Admission, Flashield};
use granary_cache::limits::{DEFAULT_MEMORY_FOLDER, HASH_BITS, SHARED_KEYS_MIN};
use granary_cache::{
    Cache, Compression, Engine, Entry, FlashOptions, Io, Key, MemoryDivision, Options, Outcome, Reinsertion,
    testing,
};
use granary_log::device::{Device, Fault, Faults, FaultyDevice, FileDevice, MemoryDevice, Space};
use random::Random;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A key's newest state, `None` for negative; absent: deleted or never put.
type Model = HashMap<u64, (Option<Vec<u8>>, u32)>;

#[derive(Clone, Copy)]
struct Shape {
    file_size: u64,
    write_buffer_size: u64,
    block_size: u64,
    max_stored_keys: Option<u64>,
    memory_bytes: u64,
    keys: u64,
    value_max: u64,
    reinsertion: Reinsertion,
    /// Each opening has one of these policies.
    admission: fn(&mut Random) -> Admission,
    /// Each opening divides the file into one of these numbers of partitions.
    partitions: &'static [u64],
}

impl Shape {
    /// Whether the RAM tier keeps blocks.
    fn keeps_blocks(&self) -> bool {
        let partitions = self.partitions.iter().max().expect("one at least");
        let has_room = self.memory_bytes / partitions >= 80 * self.block_size;
        has_room && (self.admission)(&mut Random(1)) == Admission::All
    }
}

fn all(_: &mut Random) -> Admission {
    Admission::All
}

/// Admits every second object.
fn half(_: &mut Random) -> Admission {
    Admission::Probability(0.5)
}

fn flashield(_: &mut Random) -> Admission {
    Admission::Flashield(Flashield::default())
}

/// Any policy that is DRAM first: what one has written another finds.
fn any_dram_first(random: &mut Random) -> Admission {
    match random.below(12) {
        0 => Admission::None,
        1 => Admission::RejectFirst,
        2 => Admission::Reuse,
        3 => flashield(random),
        4 => half(random),
        _ => Admission::Probability(1.0),
    }
}

const NOW: u32 = 1_000;

/// In most openings the RAM tier outlives a kill; the others make it void.
fn memory_folder(random: &mut Random) -> Option<std::path::PathBuf> {
    (random.below(8) > 0).then(|| DEFAULT_MEMORY_FOLDER.into())
}

fn options(folder: &std::path::Path, shape: Shape, random: &mut Random) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), shape.file_size);
    flash.block_size = shape.block_size;
    flash.write_buffer_size = shape.write_buffer_size;
    flash.max_stored_keys = shape.max_stored_keys;
    flash.reinsertion = shape.reinsertion;
    flash.admission = (shape.admission)(random);
    // A run is the same each time.
    flash.hash_seed = Some(11);
    flash.memory_folder = memory_folder(random);
    flash.partitions = shape.partitions[random.below(shape.partitions.len() as u64) as usize];
    // Without another draw, so that runs of a seed stay the same.
    let compression = [Compression::None, Compression::Zstd, Compression::Lz4][(random.0 % 3) as usize];
    // While it is opened, none, a few or all of the records are in RAM at the same time.
    let opening = [0, 4096, flash.opening_bytes];
    flash.opening_bytes = opening[(random.0 / 12 % 3) as usize];
    let fixed = |blocks_percent| MemoryDivision::Fixed { blocks_percent };
    let memory_division = match random.0 / 3 % 4 {
        // As for every RAM tier without room for blocks.
        _ if !shape.keeps_blocks() => MemoryDivision::Measured,
        0 => fixed(0),
        1 => fixed(50),
        2 => fixed(100),
        _ => MemoryDivision::Measured,
    };
    let memory_bytes = shape.memory_bytes;
    Options { flash: Some(flash), memory_bytes, memory_division, compression, ..Options::default() }
}

/// The keys of a run: half of them look alike to the index in groups of two to four, the others are any.
struct Keys(Vec<Vec<u8>>);

impl Keys {
    fn new(cache: &Cache, options: &Options, count: u64) -> Keys {
        let flash = options.flash.as_ref().expect("on flash");
        // The index's bits of a hash, and its lowest bits, so that look-alikes are in one partition, too.
        let low = flash.partitions.max(8).ilog2();
        let bits = flash.index_hash_bits().unwrap();
        let look = |key: u64| {
            let hash = cache.key(&key_bytes(key)).hash().to_bits();
            (hash >> (HASH_BITS - bits)) << low | hash & ((1 << low) - 1)
        };
        // So many keys contain enough pairs.
        let of = 2.0 * ((count << (bits + low)) as f64).sqrt();
        let mut looks: Vec<(u64, u64)> = (0..of as u64).map(|key| (look(key), key)).collect();
        looks.sort_unstable();
        let groups = looks.chunk_by(|a, b| a.0 == b.0).filter(|group| (2..5).contains(&group.len()));
        let mut keys: Vec<u64> = groups.flatten().map(|(_, key)| *key).take(count as usize / 2).collect();
        assert!(keys.len() as u64 >= count / 2 - 4, "{} of {count} look alike", keys.len());
        keys.extend((1 << 40)..(1 << 40) + count - keys.len() as u64);
        Keys(keys.into_iter().map(key_bytes).collect())
    }

    fn all(&self) -> std::ops::Range<u64> {
        0..self.0.len() as u64
    }

    fn any(&self, random: &mut Random) -> u64 {
        random.below(self.0.len() as u64)
    }

    fn key<'a>(&'a self, cache: &Cache, key: u64) -> Key<'a> {
        cache.key(&self.0[key as usize])
    }
}

fn key_bytes(key: u64) -> Vec<u8> {
    // Keys of several sizes, one prefix of the other.
    match key % 3 {
        0 => key.to_le_bytes().to_vec(),
        1 => format!("key-{key}").into_bytes(),
        _ => format!("key-{key}-{}", "x".repeat((key % 40) as usize)).into_bytes(),
    }
}

/// Looks `keys` up and compares; returns how many were found.
fn check(cache: &Cache, io: &mut Io, model: &Model, names: &Keys, keys: &[u64], what: &str) -> usize {
    let batch: Vec<Key<'_>> = keys.iter().map(|key| names.key(cache, *key)).collect();
    let counts = Mutex::new((vec![0; keys.len()], 0));
    let check = |i: usize, outcome: Outcome<'_>| {
        let mut counts = counts.lock().expect("no thread has found a mistake");
        let (seen, found) = &mut *counts;
        seen[i] += 1;
        let key = keys[i];
        let expected = model.get(&key);
        let (value, expires_at) = match outcome {
            Outcome::Miss => return,
            Outcome::Hit { value, expires_at } => (Some(value), expires_at),
            Outcome::Negative { expires_at } => (None, expires_at),
            Outcome::Expired { value, expires_at } => (value, expires_at),
        };
        *found += 1;
        let expired = matches!(outcome, Outcome::Expired { .. });
        assert_eq!(expired, expires_at != 0 && NOW > expires_at, "{what}: key {key}");
        let Some((newest, newest_expiry)) = expected else {
            panic!("{what}: key {key} was deleted or never put, got {outcome:?}");
        };
        assert!(
            value == newest.as_deref() && expires_at == *newest_expiry,
            "{what}: key {key} is stale or wrong: {outcome:?}, newest {newest:?} {newest_expiry}"
        );
    };
    // Where there are enough of them.
    match keys.len() < SHARED_KEYS_MIN {
        true => cache.get_many(io, &batch, NOW, check),
        false => cache.get_many_parallel(io, &batch, NOW, [check, check]),
    }
    let (seen, found) = counts.into_inner().expect("no thread has found a mistake");
    assert!(seen.iter().all(|n| *n == 1), "{what}: every key gets one answer: {seen:?}");
    found
}

fn mutate(cache: &Cache, model: &mut Model, keys: &Keys, random: &mut Random, shape: Shape) {
    let n = 1 + random.below(60);
    if random.below(10) < 7 {
        let entries: Vec<(u64, Option<Vec<u8>>, u32)> = (0..n)
            .map(|_| {
                let len = match random.below(50) {
                    0 => random.below(shape.value_max),
                    _ => random.below(60),
                };
                let value = (random.below(8) > 0).then(|| {
                    let fill = random.next().to_le_bytes();
                    (0..len).map(|i| fill[i as usize % 8] ^ i as u8).collect()
                });
                let expires_at = [0, NOW - 1, NOW, NOW + 500][random.below(4) as usize];
                (keys.any(random), value, expires_at)
            })
            .collect();
        let batch: Vec<Entry<'_>> = entries
            .iter()
            .map(|(key, value, expires_at)| Entry {
                key: keys.key(cache, *key),
                value: value.as_deref(),
                expires_at: *expires_at,
            })
            .collect();
        cache.put_many(&batch);
        for (key, value, expires_at) in entries {
            model.insert(key, (value, expires_at));
        }
    } else {
        let deleted: Vec<u64> = (0..n).map(|_| keys.any(random)).collect();
        cache.delete_many(&deleted.iter().map(|key| keys.key(cache, *key)).collect::<Vec<_>>());
        for key in deleted {
            model.remove(&key);
        }
    }
}

/// Many keys, or, if blocks are kept, mostly a few, so that they are kept.
fn some_keys(random: &mut Random, keys: &Keys, shape: Shape) -> Vec<u64> {
    if shape.keeps_blocks() && random.below(4) > 0 {
        return (0..1 + random.below(4)).map(|_| keys.any(random)).collect();
    }
    (0..1 + random.below(200)).map(|_| keys.any(random)).collect()
}

const SHAPES: [Shape; 12] = [
    // Everything fits: many segments without summary.
    Shape {
        file_size: 4 << 20,
        write_buffer_size: 4096,
        block_size: 4096,
        max_stored_keys: None,
        memory_bytes: 0,
        keys: 3_000,
        value_max: 4_000,
        reinsertion: Reinsertion::None,
        admission: all,
        partitions: &[1],
    },
    // Segments with summary, entries over several blocks, RAM tier.
    Shape {
        file_size: 2 << 20,
        write_buffer_size: 128 << 10,
        block_size: 4096,
        max_stored_keys: None,
        memory_bytes: 1 << 20,
        keys: 5_000,
        value_max: 30_000,
        reinsertion: Reinsertion::None,
        admission: all,
        partitions: &[1],
    },
    // Small blocks, the file is reused all the time, hot entries go round.
    Shape {
        file_size: 64 << 10,
        write_buffer_size: 8192,
        block_size: 512,
        max_stored_keys: None,
        memory_bytes: 0,
        keys: 2_000,
        value_max: 3_000,
        reinsertion: Reinsertion::Read,
        admission: all,
        partitions: &[1],
    },
    // A bound on keys below what fits.
    Shape {
        file_size: 1 << 20,
        write_buffer_size: 16 << 10,
        block_size: 1024,
        max_stored_keys: Some(1_000),
        memory_bytes: 512 << 10,
        keys: 4_000,
        value_max: 900,
        reinsertion: Reinsertion::Read,
        admission: all,
        partitions: &[1],
    },
    // One segment in all.
    Shape {
        file_size: 64 << 10,
        write_buffer_size: 64 << 10,
        block_size: 4096,
        max_stored_keys: None,
        memory_bytes: 0,
        keys: 100,
        value_max: 3_000,
        reinsertion: Reinsertion::None,
        admission: all,
        partitions: &[1],
    },
    // DRAM first: most fits RAM, segments with summary, entries over several blocks.
    Shape {
        file_size: 2 << 20,
        write_buffer_size: 128 << 10,
        block_size: 4096,
        max_stored_keys: None,
        memory_bytes: 1 << 20,
        keys: 9_000,
        value_max: 30_000,
        reinsertion: Reinsertion::None,
        admission: half,
        partitions: &[1],
    },
    // DRAM first: hardly any RAM, small blocks, the file is reused all the time.
    Shape {
        file_size: 64 << 10,
        write_buffer_size: 8192,
        block_size: 512,
        max_stored_keys: None,
        memory_bytes: 128 << 10,
        keys: 4_000,
        value_max: 900,
        reinsertion: Reinsertion::Read,
        admission: flashield,
        partitions: &[1],
    },
    // DRAM first with a bound on keys.
    Shape {
        file_size: 1 << 20,
        write_buffer_size: 16 << 10,
        block_size: 1024,
        max_stored_keys: Some(1_000),
        memory_bytes: 128 << 10,
        keys: 4_000,
        value_max: 900,
        reinsertion: Reinsertion::None,
        admission: half,
        partitions: &[1],
    },
    // DRAM first: keys that the index cannot tell apart take each other's places.
    Shape {
        file_size: 1 << 20,
        write_buffer_size: 16 << 10,
        block_size: 512,
        max_stored_keys: None,
        memory_bytes: 64 << 10,
        keys: 1_500,
        value_max: 900,
        reinsertion: Reinsertion::None,
        admission: any_dram_first,
        partitions: &[1],
    },
    // Partitions whose number changes now and then, which empties them.
    Shape {
        file_size: 2 << 20,
        write_buffer_size: 32 << 10,
        block_size: 1024,
        max_stored_keys: None,
        memory_bytes: 256 << 10,
        keys: 5_000,
        value_max: 6_000,
        reinsertion: Reinsertion::Read,
        admission: all,
        partitions: &[4, 4, 4, 4, 4, 4, 8, 2, 1],
    },
    // DRAM first, partitions whose segments have no summary.
    Shape {
        file_size: 512 << 10,
        write_buffer_size: 8192,
        block_size: 1024,
        max_stored_keys: None,
        memory_bytes: 512 << 10,
        keys: 4_000,
        value_max: 900,
        reinsertion: Reinsertion::None,
        admission: any_dram_first,
        partitions: &[8, 8, 8, 8, 8, 8, 8, 8, 2],
    },
    // RAM that keeps blocks of a file that is reused all the time.
    Shape {
        file_size: 1 << 20,
        write_buffer_size: 16 << 10,
        block_size: 512,
        max_stored_keys: None,
        memory_bytes: 256 << 10,
        keys: 4_000,
        value_max: 2_000,
        reinsertion: Reinsertion::None,
        admission: all,
        partitions: &[1],
    },
];

/// Operations of the long runs; set GRANARY_MODEL_OPERATIONS for longer ones.
fn operations() -> u64 {
    std::env::var("GRANARY_MODEL_OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(400_000)
}

/// Runs a shape; GRANARY_MODEL_SEED changes the run.
fn run(seed: u64, shape: Shape, engine: Engine) {
    let seed = seed + std::env::var("GRANARY_MODEL_SEED").map_or(0, |n| n.parse::<u64>().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    // Room for the RAM tiers of all tests here.
    let has_room = room::has_room(32 << 20);
    let mut random = Random(seed);
    let mut model = Model::new();
    let first = options(folder.path(), shape, &mut random);
    let mut cache = Cache::open(first.clone()).unwrap();
    let keys = Keys::new(&cache, &first, shape.keys);
    let mut io = Io::with_engine(engine);
    let mut opened = first;
    let (mut looked_up, mut found, mut operations_done) = (0u64, 0u64, 0u64);
    // Entries in RAM at kills, and how many of them were there afterwards.
    let (mut killed, mut taken_over) = (0, 0);
    let mut found_in_blocks = 0;
    while operations_done < operations() / SHAPES.len() as u64 {
        let what = format!("seed {seed}, after {operations_done} operations");
        match random.below(100) {
            0 => {
                found_in_blocks += cache.stats().hits_block;
                drop(cache);
                opened = options(folder.path(), shape, &mut random);
                cache = Cache::open(opened.clone()).unwrap();
                assert_eq!(cache.stats().taken_over, 0, "{what}");
            }
            1 => {
                let in_memory = cache.stats().memory_entries;
                found_in_blocks += cache.stats().hits_block;
                testing::abandon(cache);
                let next = options(folder.path(), shape, &mut random);
                let parts = |options: &Options| {
                    options.flash.as_ref().map(|flash| (flash.partitions, flash.memory_folder.is_some()))
                };
                let outlives =
                    parts(&next) == parts(&opened) && parts(&next).is_some_and(|(_, shared)| shared);
                opened = next;
                cache = Cache::open(opened.clone()).unwrap();
                if outlives {
                    killed += in_memory;
                    taken_over += cache.stats().taken_over;
                } else {
                    assert_eq!(cache.stats().taken_over, 0, "{what}");
                }
            }
            // Faults are part of the run.
            2 => _ = cache.flush(),
            3 if random.below(20) == 0 => {
                cache.clear().unwrap();
                model.clear();
            }
            n if n < 40 => mutate(&cache, &mut model, &keys, &mut random, shape),
            _ => {
                let some = some_keys(&mut random, &keys, shape);
                looked_up += some.len() as u64;
                found += check(&cache, &mut io, &model, &keys, &some, &what) as u64;
                operations_done += some.len() as u64;
            }
        }
        operations_done += 30;
        if random.below(50) == 0 {
            testing::validate(&cache);
            if shape.keeps_blocks() {
                assert!(cache.stats().memory_bytes <= shape.memory_bytes, "{what}: {:?}", cache.stats());
            }
            if let (Some(most), Admission::All) = (shape.max_stored_keys, (shape.admission)(&mut random)) {
                assert!(cache.stats().entries <= most.div_ceil(64) * 64);
            }
        }
    }
    let all: Vec<u64> = keys.all().collect();
    check(&cache, &mut io, &model, &keys, &all, "at the end");
    let mut scanned = 0;
    cache.scan(&mut io, |key, value, expires_at| {
        let known = keys.all().find(|known| keys.0[*known as usize] == key).expect("a key that was put");
        assert_eq!(model.get(&known), Some(&(value.map(<[u8]>::to_vec), expires_at)), "scan: key {known}");
        scanned += 1;
    });
    println!(
        "{killed} entries in RAM at kills, {taken_over} of them taken over; {found_in_blocks} in blocks"
    );
    assert!(found_in_blocks > 0 || !shape.keeps_blocks(), "blocks in RAM were of no use");
    if has_room {
        // Between the count and the kill the flusher goes on, so a good part of a small tier may go to a write buffer
        // and come back; a long entry may lie in private memory. `killed.rs` checks that none is lost.
        assert!(taken_over * 100 >= killed * 75 && taken_over * 95 <= killed * 100);
    } else {
        skip::skipped("no room in /dev/shm: no RAM tier outlives a kill");
    }
    assert!(scanned > 0 || shape.file_size == shape.write_buffer_size, "a scan shows something");
    assert!(
        found * 200 > looked_up,
        "seed {seed}: a cache that never hits proves nothing: {found}/{looked_up}"
    );
}

#[test]
fn everything_fits() {
    run(1, SHAPES[0], Engine::Ring);
}

#[test]
fn long_entries_and_a_ram_tier() {
    run(2, SHAPES[1], Engine::Ring);
}

#[test]
fn the_file_is_reused_all_the_time() {
    run(3, SHAPES[2], Engine::Pool);
}

#[test]
fn a_bound_on_keys() {
    run(4, SHAPES[3], Engine::Plain);
}

#[test]
fn one_segment() {
    run(5, SHAPES[4], Engine::Ring);
}

#[test]
fn dram_first() {
    run(6, SHAPES[5], Engine::Ring);
}

#[test]
fn dram_first_with_hardly_any() {
    run(7, SHAPES[6], Engine::Pool);
}

#[test]
fn dram_first_with_a_bound_on_keys() {
    run(8, SHAPES[7], Engine::Plain);
}

#[test]
fn dram_first_with_keys_that_look_alike() {
    let seeds = std::env::var("GRANARY_MODEL_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    (0..seeds).for_each(|seed| run(9 + seed, SHAPES[8], Engine::Plain));
}

#[test]
fn partitions() {
    run(12, SHAPES[9], Engine::Ring);
}

#[test]
fn dram_first_in_partitions() {
    run(13, SHAPES[10], Engine::Pool);
}

/// Torn, lost and misdirected writes, flipped bits, reads cut short, refused reads, writes and syncs, crashes at write
/// N. Returns how many faults struck the reads of `engine`.
fn through_faults(seed: u64, engine: Engine) -> u64 {
    let shape = [1, 2, 3, 5, 6, 7, 8, 9, 10].map(|i| SHAPES[i])[seed as usize % 9];
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let mut model = Model::new();
    let faults = |random: &mut Random| Faults {
        seed: random.next(),
        chances: Fault::ALL.map(|kind| (kind, random.below(2_000) as u32)).into(),
        crash_after_writes: (random.below(2) == 0).then(|| random.below(200)),
    };
    let block_size = shape.block_size as usize;
    let inner: Arc<dyn Device> = match engine {
        Engine::Plain => Arc::new(MemoryDevice::new(shape.file_size)),
        Engine::Ring | Engine::Pool => {
            let path = folder.path().join("device");
            Arc::new(FileDevice::open_in_units(&path, shape.file_size, block_size, Space::Reserved).unwrap())
        }
    };
    let device = Arc::new(FaultyDevice::new(inner, block_size, faults(&mut random)));
    let open = |random: &mut Random| {
        let device: Box<dyn Device> = Box::new(Arc::clone(&device));
        Cache::open_on(device, options(folder.path(), shape, random)).unwrap()
    };
    let mut cache = open(&mut random);
    let keys = Keys::new(&cache, &options(folder.path(), shape, &mut random), shape.keys);
    let mut io = Io::with_engine(engine);
    for step in 0..600 {
        let what = format!("{engine:?}, fault seed {seed}, step {step}");
        match random.below(60) {
            0 => {
                drop(cache);
                cache = open(&mut random);
            }
            1 | 2 => {
                testing::abandon(cache);
                // Lost writes stay lost; the device goes on with other faults.
                let mut next = faults(&mut random);
                next.crash_after_writes = next.crash_after_writes.map(|n| device.writes() + n);
                device.set_faults(next);
                cache = open(&mut random);
            }
            n if n < 30 => mutate(&cache, &mut model, &keys, &mut random, shape),
            30 if engine != Engine::Plain => {
                let many: Vec<u64> = (0..SHARED_KEYS_MIN).map(|_| keys.any(&mut random)).collect();
                check(&cache, &mut io, &model, &keys, &many, &what);
            }
            _ => {
                check(&cache, &mut io, &model, &keys, &some_keys(&mut random, &keys, shape), &what);
            }
        }
    }
    testing::validate(&cache);
    assert!(device.struck() > 0, "fault seed {seed}: no fault struck");
    device.struck_reads(engine)
}

/// Runs with `seeds` seeds, or GRANARY_MODEL_SEEDS.
fn with_faults(engine: Engine, seeds: u64) {
    let seeds = std::env::var("GRANARY_MODEL_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(seeds);
    let struck: u64 = (0..seeds).map(|seed| through_faults(seed, engine)).sum();
    println!("{struck} faults struck reads by {engine:?}");
    assert!(struck > seeds * 20, "{struck} faults struck reads by {engine:?}");
}

/// Whether reads of test files go by their descriptor.
fn has_descriptors() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let file = FileDevice::open(&folder.path().join("file"), 4096).unwrap();
    if file.descriptor().is_none() {
        skip::skipped("temporary files lie in RAM: neither the ring nor the pool reads them");
    }
    file.descriptor().is_some()
}

#[test]
fn a_faulty_device_costs_misses_only() {
    with_faults(Engine::Plain, 27);
}

#[test]
fn a_faulty_file_that_the_ring_reads_costs_misses_only() {
    if Io::with_engine(Engine::Ring).engine() != Engine::Ring {
        return skip::skipped("no io_uring: no fault strikes its reads");
    }
    if has_descriptors() {
        with_faults(Engine::Ring, 9);
    }
}

#[test]
fn a_faulty_file_that_the_pool_reads_costs_misses_only() {
    if has_descriptors() {
        with_faults(Engine::Pool, 9);
    }
}

#[test]
fn blocks_in_ram() {
    run(14, SHAPES[11], Engine::Ring);
}
