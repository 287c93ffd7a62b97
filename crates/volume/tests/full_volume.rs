//! Cleaning of a volume that is full: where all is flushed all the time and processes are killed, and where few blocks
//! have most of the writes.

#[path = "../../log/tests/common/gated.rs"]
mod gated;
#[path = "common/wait.rs"]
mod wait;

use gated::GatedDevice;
use granary_volume::device::{Device, MemoryDevice};
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Config, Io, Volume, WaitPolicy};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use wait::wait_until;

const BLOCK: u64 = 4096;

fn content(lba: u64) -> Vec<u8> {
    lba.to_le_bytes().repeat(BLOCK as usize / 8)
}

fn open(folder: &Path, config: &Config, device: &GatedDevice) -> Volume {
    Volume::open_on(folder, "v", config, Box::new(device.clone())).unwrap()
}

/// The state that a kill at this moment would leave: nothing reaches the device meanwhile.
fn killed(folder: &Path, device: &GatedDevice) -> (tempfile::TempDir, GatedDevice) {
    device.set_open(false);
    // A map that is durable already is renamed.
    std::thread::sleep(Duration::from_millis(50));
    let (copy, other) = (tempfile::tempdir().unwrap(), GatedDevice::new(device.size()));
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        match std::fs::copy(file.path(), copy.path().join(file.file_name())) {
            // Renamed meanwhile: what it replaces is there, as after a crash before that.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => _ = copied.unwrap(),
        }
    }
    let mut bytes = vec![0; device.size() as usize];
    device.read_at(0, &mut bytes).unwrap();
    other.write_at(0, &[&bytes]).unwrap();
    (copy, other)
}

/// A client flushes all the time, so that each hold of a move ends with a footer, and processes are killed in the
/// middle of moves: the room that cleaning needs is never used up.
#[test]
fn a_full_volume_goes_on_through_flushes_and_kills() {
    let config = Config::new(16 << 20);
    let blocks = config.blocks();
    let mut device = GatedDevice::new(config.geometry().unwrap().file_bytes());
    let mut folder = tempfile::tempdir().unwrap();
    let volume = open(folder.path(), &config, &device);
    let mut io = Io::new();
    (0..blocks).for_each(|lba| volume.write(&mut io, lba * BLOCK, &content(lba)).unwrap());
    volume.commit().unwrap();
    volume.abandon();
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..12 {
        let volume = open(folder.path(), &config, &device);
        let ends = AtomicBool::new(false);
        let (copy, other) = std::thread::scope(|scope| {
            let flushing = scope.spawn(|| {
                while !ends.load(Ordering::Acquire) {
                    volume.commit().unwrap();
                }
            });
            let (volume, ends, mut targets) = (&volume, &ends, fastrand::Rng::with_seed(round));
            scope.spawn(move || {
                let (mut io, policy) = (Io::new(), WaitPolicy::fail_after(Duration::from_secs(60)));
                while !ends.load(Ordering::Acquire) {
                    // The first blocks are hot: most segments are full of others.
                    let is_hot = targets.u8(..10) > 0;
                    let lba = targets.u64(..if is_hot { blocks / 50 } else { blocks });
                    let written = volume.try_write(&mut io, lba * BLOCK, &content(lba), policy);
                    written.unwrap_or_else(|error| panic!("round {round}: {error}, {:?}", volume.stats()));
                }
            });
            let cleaned = volume.stats().segments_cleaned;
            wait_until("segments are cleaned", || volume.stats().segments_cleaned > cleaned + 20);
            std::thread::sleep(Duration::from_millis(random.u64(..5)));
            let left = killed(folder.path(), &device);
            ends.store(true, Ordering::Release);
            device.set_open(true);
            flushing.join().unwrap();
            left
        });
        volume.abandon();
        (folder, device) = (copy, other);
    }
    let volume = open(folder.path(), &config, &device);
    wait_until("the reserve is whole", || volume.stats().segments_free > RESERVED_SEGMENTS);
    let mut found = vec![0; BLOCK as usize];
    for lba in 0..blocks {
        volume.read(&mut io, lba * BLOCK, &mut found).unwrap();
        assert_eq!(found, content(lba), "block {lba}");
    }
    volume.close().unwrap();
}

/// A device on which nothing follows the write that brings its blocks to a number, as if the process was killed then.
#[derive(Clone)]
struct Killed {
    inner: GatedDevice,
    left: Arc<AtomicI64>,
    /// The cleaner reads nothing before.
    is_cleaned: Arc<AtomicBool>,
}

impl Device for Killed {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        while std::thread::current().name() == Some("volume-clean")
            && !self.is_cleaned.load(Ordering::Acquire)
        {
            std::thread::sleep(Duration::from_micros(100));
        }
        self.inner.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.inner.write_at(offset, buffers)?;
        let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let blocks = bytes as i64 / BLOCK as i64;
        if (1..=blocks).contains(&self.left.fetch_sub(blocks, Ordering::AcqRel)) {
            self.inner.set_open(false);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// Ends the flushes when it is dropped, by a failure too.
struct Ending<'a> {
    ends: &'a AtomicBool,
    device: &'a GatedDevice,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.device.set_open(true);
        self.ends.store(true, Ordering::Release);
    }
}

/// Each process is killed when so many blocks of its first move are on the device. The reserve is not used up, and in
/// the end the volume takes writes.
#[test]
fn kills_in_the_middle_of_first_moves_do_not_use_up_the_reserve() {
    // Segments of many holds of the writer's lock.
    let config = Config { segment_bytes: 2 << 20, ..Config::new(48 << 20) };
    let blocks = config.blocks();
    let mut device = GatedDevice::new(config.geometry().unwrap().file_bytes());
    let mut folder = tempfile::tempdir().unwrap();
    let volume = open(folder.path(), &config, &device);
    let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
    let mut write = |volume: &Volume, policy: WaitPolicy<'_>| {
        let lba = random.u64(..blocks);
        volume.try_write(&mut io, lba * BLOCK, &content(lba), policy)
    };
    (0..blocks).for_each(|lba| volume.write(&mut Io::new(), lba * BLOCK, &content(lba)).unwrap());
    (0..2 * blocks).for_each(|_| write(&volume, WaitPolicy::DEFAULT).unwrap());
    volume.commit().unwrap();
    volume.abandon();
    for moved in [200, 100, 50, 25].repeat(3) {
        let (left, is_cleaned) = (Arc::new(AtomicI64::new(moved)), Arc::default());
        let killed_at = Killed { inner: device.clone(), left, is_cleaned };
        let volume = Volume::open_on(folder.path(), "v", &config, Box::new(killed_at.clone())).unwrap();
        let ends = AtomicBool::new(false);
        let (copy, other) = std::thread::scope(|scope| {
            let ending = Ending { ends: &ends, device: &device };
            let flushing = scope.spawn(|| {
                while !ends.load(Ordering::Acquire) {
                    volume.commit().unwrap();
                    killed_at.is_cleaned.store(true, Ordering::Release);
                }
            });
            wait_until("the blocks are moved", || {
                // Where there is nothing to move there is room for writes.
                let _ = write(&volume, WaitPolicy::non_blocking_after(Duration::from_millis(1)));
                killed_at.left.load(Ordering::Acquire) <= 0
            });
            let left = killed(folder.path(), &device);
            drop(ending);
            flushing.join().unwrap();
            left
        });
        volume.abandon();
        (folder, device) = (copy, other);
    }
    let volume = open(folder.path(), &config, &device);
    (0..blocks / 4).for_each(|_| write(&volume, WaitPolicy::DEFAULT).unwrap());
    let mut found = vec![0; BLOCK as usize];
    for lba in 0..blocks {
        volume.read(&mut Io::new(), lba * BLOCK, &mut found).unwrap();
        assert_eq!(found, content(lba), "block {lba}");
    }
    volume.close().unwrap();
}

/// 99 of 100 writes go to a hundredth of the blocks, the others anywhere: what dies in the newest segments waits for a
/// checkpoint, and the old segments are nearly full.
#[test]
fn a_small_hot_set_costs_a_full_volume_little() {
    let small = Config::new(64 << 20);
    // Each segment has some blocks that stay alive.
    let long = Config { block_size: 512, segment_bytes: 1024 * 512, ..Config::new(40 << 20) };
    for config in [small, long] {
        let (folder, blocks, size) = (tempfile::tempdir().unwrap(), config.blocks(), config.block_size);
        let device = MemoryDevice::new(config.geometry().unwrap().file_bytes());
        let volume = Volume::open_on(folder.path(), "v", &config, Box::new(device)).unwrap();
        let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
        let block = vec![7; size as usize];
        let mut write = |lba: u64| volume.write(&mut io, lba * size, &block).unwrap();
        (0..blocks).for_each(&mut write);
        let mut overwrite = |times: u64| {
            for _ in 0..times {
                let is_hot = random.u8(..100) > 0;
                write(random.u64(..if is_hot { blocks / 100 } else { blocks }));
            }
        };
        overwrite(8 * blocks);
        let before = volume.stats();
        overwrite(8 * blocks);
        let after = volume.stats();
        let written = (8 * blocks * size) as f64;
        let checkpoints = after.checkpoints - before.checkpoints;
        let log = (after.device_bytes_written - before.device_bytes_written) as f64 / written;
        let maps = (checkpoints * blocks * 4) as f64 / written;
        println!("blocks of {size}: {log:.2} written to the log, {maps:.3} to {checkpoints} maps");
        assert!(log + maps < 1.5, "blocks of {size}: {log:.2} and {maps:.3}");
        volume.close().unwrap();
    }
}
