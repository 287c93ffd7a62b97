//! A volume against a model: every read, and the content after stops, kills, power cuts and refused writes, with
//! constant cleaning.

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;

use golden::lose_power;
use granary_log::device::{Device, VolatileDevice};
use granary_volume::map::MapKind;
use granary_volume::{Config, Io, Volume};
use std::sync::Arc;

const BLOCK: u64 = 512;

/// The versions of each block since it was last durable.
struct Model {
    blocks: Vec<Vec<Vec<u8>>>,
}

impl Model {
    fn new(blocks: u64) -> Self {
        Self { blocks: vec![vec![vec![0; BLOCK as usize]]; blocks as usize] }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        for (at, byte) in (offset..).zip(data) {
            // One new version a block: at its first byte.
            let (block, within) = ((at / BLOCK) as usize, (at % BLOCK) as usize);
            let versions = &mut self.blocks[block];
            if at == offset || within == 0 {
                let newest = versions.last().unwrap().clone();
                versions.push(newest);
            }
            versions.last_mut().unwrap()[within] = *byte;
        }
    }

    fn committed(&mut self) {
        self.blocks.iter_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1)));
    }

    fn newest(&self, offset: u64, len: usize) -> Vec<u8> {
        (offset..offset + len as u64)
            .map(|at| self.blocks[(at / BLOCK) as usize].last().unwrap()[(at % BLOCK) as usize])
            .collect()
    }

    /// Accepts the content after a crash, if a disk may show it.
    fn crashed(&mut self, volume: &Volume, io: &mut Io, what: &str) {
        let mut found = vec![0; BLOCK as usize];
        for (block, versions) in self.blocks.iter_mut().enumerate() {
            volume
                .read(io, block as u64 * BLOCK, &mut found)
                .unwrap_or_else(|e| panic!("{what}: block {block}: {e}"));
            assert!(
                versions.contains(&found),
                "{what}: block {block} is none of {} versions: {:?}",
                versions.len(),
                (&found[..8], versions.iter().map(|v| v[..8].to_vec()).collect::<Vec<_>>())
            );
            *versions = vec![found.clone()];
        }
    }
}

struct Run {
    random: fastrand::Rng,
    folder: tempfile::TempDir,
    config: Config,
    device: Arc<VolatileDevice>,
    model: Model,
    io: Io,
}

impl Run {
    fn new(seed: u64, map: MapKind) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let blocks = random.u64(100..600);
        let size = blocks * BLOCK;
        let segment_bytes = random.u64(12..40) * BLOCK;
        let config = Config { block_size: BLOCK, segment_bytes, map, ..Config::new(size) };
        let bytes = config.geometry().unwrap().file_bytes();
        Self {
            random,
            folder: tempfile::tempdir().unwrap(),
            device: Arc::new(VolatileDevice::new(bytes, BLOCK as usize)),
            config,
            model: Model::new(blocks),
            io: Io::new(),
        }
    }

    fn open(&self) -> Volume {
        let device: Box<dyn Device> = Box::new(Arc::clone(&self.device));
        Volume::open_on(self.folder.path(), "v", &self.config, device).unwrap()
    }

    /// A range of bytes: whole blocks, or any.
    fn range(&mut self) -> (u64, u64) {
        let size = self.config.size;
        let len =
            if self.random.u8(..) < 8 { self.random.u64(1..size / 2) } else { self.random.u64(1..6 * BLOCK) };
        let offset = self.random.u64(0..size - len);
        if self.random.bool() {
            return (offset / BLOCK * BLOCK, len.div_ceil(BLOCK) * BLOCK)
                .min((offset / BLOCK * BLOCK, size - offset / BLOCK * BLOCK));
        }
        (offset, len)
    }

    fn step(&mut self, volume: &Volume, what: &str) {
        let (offset, len) = self.range();
        match self.random.u8(0..100) {
            0..55 => {
                let data: Vec<u8> =
                    std::iter::repeat_with(|| self.random.u8(..)).take(len as usize).collect();
                volume.write(&mut self.io, offset, &data).unwrap();
                self.model.write(offset, &data);
            }
            55..85 => {
                let mut found = vec![0; len as usize];
                volume
                    .read(&mut self.io, offset, &mut found)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(found == self.model.newest(offset, found.len()), "{what}: {offset} + {len}");
            }
            85..90 => {
                volume.write_zeroes(&mut self.io, offset, len).unwrap();
                self.model.write(offset, &vec![0; len as usize]);
            }
            90..94 => {
                volume.trim(offset, len).unwrap();
                let (first, end) = (offset.next_multiple_of(BLOCK), (offset + len) / BLOCK * BLOCK);
                if first < end {
                    self.model.write(first, &vec![0; (end - first) as usize]);
                }
            }
            _ => {
                volume.commit().unwrap();
                self.model.committed();
            }
        }
    }

    /// Ends the volume in some way, and checks the content at the next start.
    fn end(&mut self, volume: Volume, what: &str) -> Volume {
        let end = self.random.u8(0..4);
        let what = &format!("{what}, {}", ["closed", "killed", "power cut", "power cut"][usize::from(end)]);
        match end {
            0 => {
                volume.close().unwrap();
                self.model.committed();
            }
            1 => volume.abandon(),
            // The power goes at any moment.
            _ => {
                let mut random = self.random.fork();
                let kept = random.u8(..);
                // The files beside the device are those of the same moment.
                volume.abandon();
                let left = self.device.after_power_cut(|_| random.u8(..) < kept);
                self.device = Arc::new(left);
                // The same loss, with a new boot id or without.
                if end == 3 {
                    lose_power(&self.folder.path().join("v.state"));
                }
            }
        }
        let volume = self.open();
        self.model.crashed(&volume, &mut self.io, what);
        volume
    }
}

fn operations() -> u64 {
    std::env::var("GRANARY_MODEL_OPERATIONS").map_or(60_000, |n| n.parse().unwrap())
}

fn run(map: MapKind) {
    let mut seed = std::env::var("GRANARY_MODEL_SEED").map_or(0, |n| n.parse().unwrap());
    let mut done = 0;
    while done < operations() / 3 {
        seed += 1;
        let mut run = Run::new(seed, map);
        let mut volume = run.open();
        for round in 0..12 {
            let what = format!("{map}, seed {seed}, round {round}");
            let steps = run.random.u64(1..600);
            (0..steps).for_each(|_| run.step(&volume, &what));
            done += steps;
            volume = run.end(volume, &what);
        }
    }
}

#[test]
fn a_volume_with_a_flat_map_is_as_the_model() {
    run(MapKind::Flat);
}

#[test]
fn a_volume_with_a_hash_map_is_as_the_model() {
    run(MapKind::Hash);
}

#[test]
fn a_volume_with_a_skip_list_is_as_the_model() {
    run(MapKind::SkipList);
}

/// A full volume that is overwritten for ever: the log is far smaller than what is written.
#[test]
fn a_full_volume_takes_writes_for_ever() {
    let mut run = Run::new(7, MapKind::Flat);
    let volume = run.open();
    for block in 0..run.config.blocks() {
        volume.write(&mut run.io, block * BLOCK, &[1; BLOCK as usize]).unwrap();
    }
    let size = run.config.size;
    run.model.write(0, &vec![1; size as usize]);
    for i in 0..run.config.blocks() * 60 {
        let block = run.random.u64(0..run.config.blocks());
        let data = [i as u8; BLOCK as usize];
        volume.write(&mut run.io, block * BLOCK, &data).unwrap();
        run.model.write(block * BLOCK, &data);
        run.model.committed();
    }
    let stats = volume.stats();
    assert!(stats.segments_cleaned > stats.segments, "{stats:?}");
    let mut found = vec![0; size as usize];
    volume.read(&mut run.io, 0, &mut found).unwrap();
    assert!(found == run.model.newest(0, found.len()));
    volume.close().unwrap();
    let volume = run.open();
    volume.read(&mut run.io, 0, &mut found).unwrap();
    assert!(found == run.model.newest(0, found.len()));
}

/// Threads overwrite and read the same blocks while segments are cleaned: a read shows a whole version that was not
/// overwritten before it began.
#[test]
fn readers_see_whole_and_recent_versions_while_blocks_are_overwritten_and_moved() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let run = Run::new(3, MapKind::Flat);
    let volume = run.open();
    let blocks = run.config.blocks();
    let stamp = |version: u64| -> Vec<u8> { version.to_le_bytes().repeat(BLOCK as usize / 8) };
    let oldest: Vec<AtomicU64> = (0..blocks).map(|_| AtomicU64::new(0)).collect();
    let newest: Vec<AtomicU64> = (0..blocks).map(|_| AtomicU64::new(0)).collect();
    let (ends, seed) = (AtomicBool::new(false), AtomicU64::new(2));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(seed.fetch_add(1, Ordering::Relaxed));
                let (mut io, mut bytes) = (Io::new(), vec![0; BLOCK as usize]);
                while !ends.load(Ordering::Relaxed) {
                    let block = random.u64(0..blocks);
                    let before = oldest[block as usize].load(Ordering::SeqCst);
                    volume.read(&mut io, block * BLOCK, &mut bytes).unwrap();
                    let after = newest[block as usize].load(Ordering::SeqCst);
                    let version = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                    assert!(bytes == stamp(version), "a block is torn");
                    assert!((before..=after).contains(&version), "{before} <= {version} <= {after}");
                }
            });
        }
        let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
        for version in 1..=60_000 {
            let block = random.u64(0..blocks);
            newest[block as usize].store(version, Ordering::SeqCst);
            volume.write(&mut io, block * BLOCK, &stamp(version)).unwrap();
            oldest[block as usize].store(version, Ordering::SeqCst);
            if version % 2000 == 0 {
                volume.commit().unwrap();
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(volume.stats().segments_cleaned > 100, "{:?}", volume.stats());
}

/// Unaligned writers of one block do not undo each other.
#[test]
fn parts_of_a_block_are_written_by_several_at_once() {
    let run = Run::new(5, MapKind::Flat);
    let volume = run.open();
    std::thread::scope(|scope| {
        for part in 0..4u64 {
            let volume = &volume;
            scope.spawn(move || {
                let mut io = Io::new();
                for i in 0..2000u64 {
                    volume.write(&mut io, part * 128, &[i as u8; 128]).unwrap();
                    let mut found = [0; 128];
                    volume.read(&mut io, part * 128, &mut found).unwrap();
                    assert_eq!(found, [i as u8; 128], "part {part}");
                }
            });
        }
    });
}

/// A write of a part of a block does not bring back the rest's content from before a trim.
#[test]
fn a_part_that_is_written_beside_a_trim_brings_nothing_back() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const ROUNDS: u64 = 100_000;
    let run = Run::new(6, MapKind::Flat);
    let (volume, begun, done) = (run.open(), AtomicU64::new(0), AtomicU64::new(0));
    let wait_for = |round: &AtomicU64, number: u64| {
        for tries in 0.. {
            match (round.load(Ordering::Acquire) >= number, tries < 1000) {
                (true, _) => return,
                (false, true) => std::hint::spin_loop(),
                (false, false) => std::thread::yield_now(),
            }
        }
    };
    let spin = |random: &mut fastrand::Rng| (0..random.u32(..60)).for_each(|_| std::hint::spin_loop());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
            for round in 1..=ROUNDS {
                wait_for(&begun, round);
                spin(&mut random);
                volume.write(&mut io, 0, &[1; 128]).unwrap();
                done.store(round, Ordering::Release);
            }
        });
        let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(2));
        let mut found = [0; BLOCK as usize - 128];
        let brought_back = (1..=ROUNDS).filter(|round| {
            begun.store(*round, Ordering::Release);
            spin(&mut random);
            volume.write(&mut io, 0, &[2; BLOCK as usize]).unwrap();
            volume.trim(0, BLOCK).unwrap();
            wait_for(&done, *round);
            volume.read(&mut io, 128, &mut found).unwrap();
            volume.trim(0, BLOCK).unwrap();
            found.iter().any(|byte| *byte != 0)
        });
        assert_eq!(brought_back.count(), 0);
    });
}

/// While the device refuses, writes and commits fail and reads go on; when it takes writes again, all is well. A failed
/// sync is remembered.
#[test]
fn a_device_that_refuses_costs_nothing_that_was_kept() {
    let mut run = Run::new(11, MapKind::Flat);
    let volume = run.open();
    volume.write(&mut run.io, 0, &[1; 5 * BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    volume.write(&mut run.io, 0, &[2; 2 * BLOCK as usize]).unwrap();
    run.device.fail_from(Some(0));
    assert!(volume.commit().is_err(), "nothing is written");
    let mut found = vec![0; 5 * BLOCK as usize];
    volume.read(&mut run.io, 0, &mut found).unwrap();
    assert_eq!((found[0], found[4 * BLOCK as usize]), (2, 1), "reads go on");
    // Only writes failed so far, for a commit that cannot write does not sync.
    run.device.fail_from(None);
    volume.commit().unwrap();
    // Now the sync fails: one write comes before it.
    volume.write(&mut run.io, 0, &[3; BLOCK as usize]).unwrap();
    run.device.fail_from(Some(run.device.operations() + 1));
    assert!(volume.commit().is_err());
    run.device.fail_from(None);
    assert!(volume.commit().is_err(), "what a failed sync should have kept may be gone");
    volume.abandon();
    let volume = run.open();
    volume.read(&mut run.io, 0, &mut found).unwrap();
    assert!((2..=3).contains(&found[0]) && found[4 * BLOCK as usize] == 1);
}

/// Bits that flip on the device are errors, never data.
#[test]
fn damage_is_an_error() {
    let mut run = Run::new(13, MapKind::Flat);
    let volume = run.open();
    for block in 0..run.config.blocks() {
        volume.write(&mut run.io, block * BLOCK, &[block as u8; BLOCK as usize]).unwrap();
    }
    volume.close().unwrap();
    let mut image = vec![0; run.device.size() as usize];
    run.device.read_at(0, &mut image).unwrap();
    for byte in (0..image.len()).step_by(BLOCK as usize / 2 + 3) {
        image[byte] ^= 1 << (byte % 8);
    }
    run.device.write_at(0, &[&image]).unwrap();
    run.device.sync().unwrap();
    let volume = run.open();
    let mut failed = 0;
    let mut found = vec![0; BLOCK as usize];
    for block in 0..run.config.blocks() {
        match volume.read(&mut run.io, block * BLOCK, &mut found) {
            Ok(()) => assert_eq!(found, [block as u8; BLOCK as usize], "block {block}"),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5));
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "damage is seen");
}
