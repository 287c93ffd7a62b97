//! `kill -9` of a process with an open volume in a file, at any moment, its start included: each block has its flushed
//! version or a later one, and the same one at the next start.

#[path = "../../log/tests/common/worker.rs"]
mod worker;

use granary_volume::map::MapKind;
use granary_volume::{Config, Error, Io, Volume};
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use worker::Worker;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1024;

fn open(folder: &Path) -> Volume {
    // A process that was killed may have its files locked for a while: until the kernel has ended its reads.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match Volume::open(folder, "v", &mut |_, _| {}) {
            Err(Error::InUse { .. }) if Instant::now() < until => {}
            opened => return opened.unwrap(),
        }
    }
}

fn random(seed: u64, n: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ n)
}

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Trim,
    Zero,
    Commit,
}

/// Operation number `n`: (kind, first block, blocks).
fn operation(seed: u64, n: u64) -> (Kind, u64, u64) {
    let mut random = random(seed, n);
    let kind = match random.u8(..20) {
        0..14 => Kind::Write,
        14 => Kind::Trim,
        15 => Kind::Zero,
        _ => Kind::Commit,
    };
    let first = random.u64(..BLOCKS);
    let most = if kind == Kind::Write { 40 } else { 20 };
    (kind, first, random.u64(1..most).min(BLOCKS - first))
}

/// The content of a logical block as operation `number` wrote it; 0: zeroes.
fn content(lba: u64, number: u64) -> Vec<u8> {
    match number {
        0 => vec![0; BLOCK as usize],
        _ => [lba, number].map(u64::to_le_bytes).concat().repeat(BLOCK as usize / 16),
    }
}

fn carry_out(volume: &Volume, io: &mut Io, seed: u64, n: u64) {
    let (kind, first, blocks) = operation(seed, n);
    let (offset, len) = (first * BLOCK, blocks * BLOCK);
    let done = match kind {
        Kind::Write => {
            let data: Vec<u8> = (first..first + blocks).flat_map(|lba| content(lba, n)).collect();
            volume.write(io, offset, &data)
        }
        Kind::Trim => volume.trim(offset, len),
        Kind::Zero => volume.write_zeroes(io, offset, len),
        Kind::Commit => volume.commit(),
    };
    done.unwrap();
}

/// The version of each block.
fn read(volume: &Volume, what: &str) -> Vec<u64> {
    let mut bytes = vec![0; (BLOCKS * BLOCK) as usize];
    volume.read(&mut Io::new(), 0, &mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let stamped = |(lba, block): (u64, &[u8])| {
        let version = u64::from_le_bytes(block[8..16].try_into().unwrap());
        assert!(block == content(lba, version), "{what}: block {lba} is torn, or another");
        version
    };
    (0..).zip(bytes.chunks_exact(BLOCK as usize)).map(stamped).collect()
}

/// The process to be killed; it is a test only in form.
#[test]
fn worker() {
    let Some((folder, [seed, from])) = worker::told() else { return };
    let (volume, mut io) = (open(&folder), Io::new());
    worker::carry_out(&folder, from, |n| carry_out(&volume, &mut io, seed, n), |_| {});
}

/// The allowed versions of a block.
struct Block {
    /// The versions found by a process, or left by its last commit.
    settled: HashSet<u64>,
    /// The versions that the process has written since.
    since: Vec<u64>,
}

/// Notes the operations of a killed process, from `next` on.
fn note(blocks: &mut [Block], seed: u64, next: u64, reached: u64) {
    for n in next..=reached / 2 {
        let (kind, first, count) = operation(seed, n);
        let is_done = n < reached / 2 || reached % 2 == 1;
        if kind != Kind::Commit {
            let version = if kind == Kind::Write { n } else { 0 };
            blocks[first as usize..(first + count) as usize]
                .iter_mut()
                .for_each(|block| block.since.push(version));
        } else if is_done {
            for Block { settled, since } in &mut *blocks {
                if let Some(last) = since.pop() {
                    *settled = HashSet::from([last]);
                    since.clear();
                }
            }
        }
    }
    blocks.iter_mut().for_each(|block| block.settled.extend(block.since.drain(..)));
}

fn kill_often(map: MapKind) {
    let kills: u64 = std::env::var("GRANARY_KILLS").map_or(24, |n| n.parse().expect("a number"));
    let seed: u64 = std::env::var("GRANARY_MODEL_SEED").map_or(1, |n| n.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "v", &Config { map, ..Config::new(BLOCKS * BLOCK) }).unwrap();
    let mut random = random(seed, map as u64);
    let block = || Block { settled: HashSet::from([0]), since: Vec::new() };
    let mut blocks: Vec<Block> = (0..BLOCKS).map(|_| block()).collect();
    let (mut next, mut done, mut while_starting, mut working) = (1, 0, 0, 0);
    while done < kills {
        for _ in 0..random.u8(1..5) {
            let mut worker = Worker::start(folder.path(), &[seed, next]);
            // Some are killed while they start, the others after some operations, however long these take.
            let most = if random.u8(..3) == 0 {
                20_000
            } else {
                worker.wait_for_operation(next + random.u64(..60));
                working += 1;
                150_000
            };
            std::thread::sleep(Duration::from_micros(random.u64(..most)));
            let reached = worker.kill();
            done += 1;
            while_starting += u64::from(reached == 0);
            note(&mut blocks, seed, next, reached);
            next = next.max(reached / 2 + 1);
        }
        for look in 0..2 {
            let volume = open(folder.path());
            let what = format!("{map}, seed {seed}, look {look} before operation {next}");
            for (lba, (found, block)) in read(&volume, &what).into_iter().zip(&mut blocks).enumerate() {
                let settled = &mut block.settled;
                assert!(settled.contains(&found), "{what}: block {lba} is {found}, not of {settled:?}");
                *settled = HashSet::from([found]);
            }
            assert_eq!(volume.check_map(&mut |_| {}), 0, "{what}");
            if look == 0 || random.bool() { volume.abandon() } else { volume.close().unwrap() }
        }
    }
    println!("{map}: {done} kills, {while_starting} of a start, {next} operations");
    assert!(working > 0, "no process was killed at work");
    assert!(while_starting > 0, "no start was killed");
}

#[test]
fn a_volume_with_a_flat_map_survives() {
    kill_often(MapKind::Flat);
}

#[test]
fn a_volume_with_a_hash_map_survives() {
    kill_often(MapKind::Hash);
}

#[test]
fn a_volume_with_a_skip_list_survives() {
    kill_often(MapKind::SkipList);
}
