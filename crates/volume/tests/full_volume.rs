//! Cleaning of a volume that is full: where all is flushed all the time and processes are killed, and where few blocks
//! have most of the writes.

#[path = "../../log/tests/common/gated.rs"]
mod gated;
#[path = "common/wait.rs"]
mod wait;

use gated::GatedDevice;
use granary_volume::device::{Device, MemoryDevice};
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Config, Io, Patience, Volume};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wait::wait_until;

const BLOCK: u64 = 4096;

fn content(lba: u64) -> Vec<u8> {
    lba.to_le_bytes().repeat(BLOCK as usize / 8)
}

fn open(folder: &Path, config: &Config, device: &GatedDevice) -> Volume {
    Volume::open_on(folder, "v", config, Box::new(device.clone())).unwrap()
}

/// What a kill at this moment would leave: nothing reaches the device meanwhile.
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

/// A client flushes all the time, so that each hold of a move ends with a footer, and processes are killed in the middle
/// of moves: the room that cleaning needs is never used up.
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
                let (mut io, patience) = (Io::new(), Patience::long(Duration::from_secs(60)));
                while !ends.load(Ordering::Acquire) {
                    // The first blocks are hot: most segments are full of others.
                    let is_hot = targets.u8(..10) > 0;
                    let lba = targets.u64(..if is_hot { blocks / 50 } else { blocks });
                    let written = volume.try_write(&mut io, lba * BLOCK, &content(lba), patience);
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
