//! `kill -9` of a process at any moment, its start among them: each key has the version that was acknowledged, or, if a
//! change of it was under way, the one before or after that, and the same at each later start.

#[path = "common/room.rs"]
mod room;
#[path = "../../log/tests/common/skip.rs"]
mod skip;
#[path = "../../log/tests/common/worker.rs"]
mod worker;

use granary_cache::admission::Admission;
use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use granary_cache::{
    Cache, Compression, Entry, FlashOptions, Io, OpenError, Options, Outcome, PowerLoss, testing,
};
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use worker::Worker;

const KEYS: u64 = 3000;

/// A kind of cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    ServesOlder,
    /// A small cache: entries leave it.
    SmallCompressedInPartitions,
    /// Small, too: entries go to flash, come back when their segments are emptied, and leave.
    SmallDramFirst,
}

const KINDS: [Kind; 4] =
    [Kind::Plain, Kind::ServesOlder, Kind::SmallCompressedInPartitions, Kind::SmallDramFirst];

impl Kind {
    /// Whether entries leave for want of space.
    fn is_small(self) -> bool {
        matches!(self, Self::SmallCompressedInPartitions | Self::SmallDramFirst)
    }
}

fn open(folder: &Path, kind: Kind) -> Cache {
    let is_compressed = kind == Kind::SmallCompressedInPartitions;
    let bytes = match kind {
        Kind::Plain | Kind::ServesOlder => 32 << 20,
        Kind::SmallCompressedInPartitions => 4 << 20,
        Kind::SmallDramFirst => 2 << 20,
    };
    let mut flash = FlashOptions::new(folder.join("c"), bytes);
    flash.write_buffer_size = if kind == Kind::SmallDramFirst { 64 << 10 } else { 128 << 10 };
    if kind == Kind::SmallDramFirst {
        flash.admission = Admission::Probability(1.0);
    }
    flash.memory_folder = Some(DEFAULT_MEMORY_FOLDER.into());
    flash.partitions = if is_compressed { 2 } else { 1 };
    // With this seed no two keys look alike.
    flash.hash_seed = Some(1);
    if kind == Kind::ServesOlder {
        flash.power_loss = PowerLoss::ServeOlder;
    }
    let compression = if is_compressed { Compression::Zstd } else { Compression::None };
    let memory_bytes = match kind {
        Kind::Plain | Kind::ServesOlder => 16 << 20,
        Kind::SmallCompressedInPartitions => 512 << 10,
        Kind::SmallDramFirst => 256 << 10,
    };
    let options = Options { flash: Some(flash), memory_bytes, compression, ..Options::default() };
    // A process that was killed may have its files locked for a while: until the kernel has ended its reads.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match Cache::open(options.clone()) {
            Err(OpenError::InUse { .. }) if Instant::now() < until => {}
            opened => return opened.unwrap(),
        }
    }
}

fn random(seed: u64, n: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ n)
}

fn value(key: u64, version: u64) -> Vec<u8> {
    let mut random = random(key, version);
    let mut text = format!("{{\"version\": {version}, \"key\": {key}, \"name\": \"{:x}\"", random.u64(..));
    // Some take several blocks.
    let fields = if version.is_multiple_of(97) { 60 } else { random.u64(1..7) };
    for _ in 0..fields {
        text += &format!(", \"field\": \"some text {} of many\", \"flag\": true", random.u64(..1000));
    }
    text.into_bytes()
}

/// The keys that operation `n` changes, and whether it puts or deletes them.
fn operation(seed: u64, n: u64) -> (Vec<u64>, bool) {
    let mut random = random(seed, n);
    let puts = random.u8(..5) > 0;
    let count = match random.u8(..6) {
        0 => 1,
        1 => 1000,
        2 => 200,
        _ => random.u64(1..31),
    };
    ((0..count).map(|_| random.u64(..KEYS)).collect(), puts)
}

fn carry_out(cache: &Cache, seed: u64, n: u64) {
    let (changed, puts) = operation(seed, n);
    let names: Vec<[u8; 8]> = changed.iter().map(|key| key.to_le_bytes()).collect();
    if puts {
        let values: Vec<Vec<u8>> = changed.iter().map(|key| value(*key, n)).collect();
        let changes = names.iter().zip(&values);
        let entries: Vec<Entry<'_>> = changes
            .map(|(name, value)| Entry { key: cache.key(name), value: Some(value), expires_at: 0 })
            .collect();
        cache.put_many_waiting(&entries, Duration::from_secs(60), |_, _| {});
    } else {
        cache.delete_many(&names.iter().map(|name| cache.key(name)).collect::<Vec<_>>());
    }
}

/// The version of each key.
fn read(cache: &Cache) -> Vec<Option<u64>> {
    let names: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let asked: Vec<_> = names.iter().map(|name| cache.key(name)).collect();
    let mut found = vec![None; KEYS as usize];
    let mut io = Io::new();
    for (first, asked) in (0..).step_by(500).zip(asked.chunks(500)) {
        cache.get_many(&mut io, asked, 1, |i, outcome| {
            let Outcome::Hit { value: bytes, .. } = outcome else { return };
            let key = first + i as u64;
            let text = std::str::from_utf8(bytes).unwrap();
            let version = text.strip_prefix("{\"version\": ").and_then(|rest| rest.split(',').next());
            let version = version.and_then(|version| version.parse().ok()).unwrap();
            assert!(bytes == value(key, version), "key {key} is torn");
            found[key as usize] = Some(version);
        });
    }
    found
}

/// The process to be killed; it is a test only in form.
#[test]
fn worker() {
    let Some((folder, [kind, seed, from])) = worker::told() else { return };
    let (cache, mut io) = (open(&folder, KINDS[kind as usize]), Io::new());
    // Frequently read entries are in RAM, too.
    let read_some = |n| {
        let mut random = random(n, 1);
        for _ in 0..20 {
            let name = random.u64(..KEYS).min(random.u64(..KEYS)).to_le_bytes();
            cache.get_many(&mut io, &[cache.key(&name)], 1, |_, _| {});
        }
    };
    worker::carry_out(&folder, from, |n| carry_out(&cache, seed, n), read_some);
}

fn kill_often(kind: usize) {
    // For this RAM tier and its write buffers, and for another's.
    if !KINDS[kind].is_small() && !room::has_room(48 << 20) {
        return skip::skipped("no room in /dev/shm: what is in RAM alone does not outlive a kill");
    }
    let kills: u64 = std::env::var("GRANARY_KILLS").map_or(40, |n| n.parse().expect("a number"));
    let seed: u64 = std::env::var("GRANARY_MODEL_SEED").map_or(1, |n| n.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let mut random = random(seed, kind as u64);
    // The allowed states of each key: versions, or `None`.
    let mut allowed: Vec<HashSet<Option<u64>>> = vec![HashSet::from([None]); KEYS as usize];
    let (mut next, mut done, mut while_starting, mut working, mut missing) = (1, 0, 0, 0, 0);
    while done < kills {
        for _ in 0..random.u8(1..5) {
            let mut worker = Worker::start(folder.path(), &[kind as u64, seed, next]);
            // Some are killed while they start, the others once they have begun to change something.
            let most = if random.bool() {
                20_000
            } else {
                worker.wait_for_operation(next);
                working += 1;
                100_000
            };
            std::thread::sleep(Duration::from_micros(random.u64(..most)));
            let reached = worker.kill();
            done += 1;
            while_starting += u64::from(reached == 0);
            for n in next..=reached / 2 {
                let (changed, puts) = operation(seed, n);
                for key in changed {
                    let allowed = &mut allowed[key as usize];
                    if n < reached / 2 || reached % 2 == 1 {
                        allowed.clear();
                    }
                    allowed.insert(puts.then_some(n));
                }
            }
            next = next.max(reached / 2 + 1);
        }
        for look in 0..2 {
            let cache = open(folder.path(), KINDS[kind]);
            testing::validate(&cache);
            for (key, found) in read(&cache).into_iter().enumerate() {
                let allowed = &mut allowed[key];
                if found.is_none() && !allowed.contains(&None) {
                    missing += 1;
                } else {
                    assert!(
                        allowed.contains(&found),
                        "seed {seed}, look {look} before operation {next}: key {key} has {found:?}, of {allowed:?}"
                    );
                }
                *allowed = HashSet::from([found]);
            }
            if look == 0 || random.bool() { testing::abandon(cache) } else { cache.close().unwrap() }
        }
    }
    println!("{done} kills, {while_starting} of a start, {next} operations, {missing} keys missing");
    assert!(KINDS[kind].is_small() || missing == 0, "{missing} keys are missing");
    assert!(next > working && working > 0, "{next} operations, {working} kills of processes at work");
    assert!(while_starting > 0, "no start was killed");
}

#[test]
fn a_cache_survives() {
    kill_often(0);
}

#[test]
fn a_cache_that_serves_older_versions_survives() {
    kill_often(1);
}

#[test]
fn a_small_cache_that_compresses_in_partitions_survives() {
    kill_often(2);
}

#[test]
fn a_small_cache_that_is_dram_first_survives() {
    kill_often(3);
}
