//! nbdkit injects errors and delays into the device below a volume.

mod common;

use common::fuse::{Fuse, Running, wait_for};
use common::random::Random;
use common::skip;
use granary_volume::device::Device;
use granary_volume::{Config, Io, Volume};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;
const SIZE: u64 = 16 << 20;

/// nbdkit with a filter over a disk in memory, as a file; `None`: it is not available here.
fn broken(folder: &Path, filter: &str, parameters: &[&str]) -> Option<(Running, Fuse)> {
    let socket = folder.join("nbdkit.sock");
    let mut nbdkit = Command::new("nbdkit");
    nbdkit.args(["-f", "-U"]).arg(&socket).arg(format!("--filter={filter}"));
    nbdkit.args(["memory", "size=64M"]).args(parameters);
    let nbdkit = Running(nbdkit.current_dir(folder).stdin(Stdio::null()).spawn().ok()?);
    wait_for("nbdkit listens", || socket.exists());
    let fuse = Fuse::mount(folder, "device", &format!("nbd+unix:///?socket={}", socket.display()))?;
    Some((nbdkit, fuse))
}

/// The file as a device.
struct Broken(File, u64);

impl Device for Broken {
    fn size(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(bytes, offset)
    }

    fn write_at(&self, mut offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        for buffer in buffers {
            self.0.write_all_at(buffer, offset)?;
            offset += buffer.len() as u64;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// The volume on the file, created if necessary.
fn open(folder: &Path, fuse: &Fuse) -> Volume {
    let config = Config::new(SIZE);
    let file = File::options().read(true).write(true).open(fuse.file()).unwrap();
    let device = Broken(file, config.geometry().unwrap().file_bytes());
    Volume::open_on(folder, "v", &config, Box::new(device)).unwrap()
}

fn content(version: u64, lba: u64) -> Vec<u8> {
    let mut bytes = vec![version as u8; BLOCK as usize];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..16].copy_from_slice(&lba.to_le_bytes());
    bytes
}

/// The version of a block; 0: it was never written.
fn version(volume: &Volume, io: &mut Io, lba: u64) -> io::Result<u64> {
    let mut found = vec![0; BLOCK as usize];
    volume.read(io, lba * BLOCK, &mut found)?;
    let version = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert!(
        version == 0 && found.iter().all(|byte| *byte == 0) || found == content(version, lba),
        "block {lba} is whole"
    );
    Ok(version)
}

/// If writes fail, flushes fail; flushed content is there when the device works again.
#[test]
fn writes_that_fail_cost_nothing_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let inject = folder.join("inject");
    let trigger = format!("error-file={}", inject.display());
    let Some((_nbdkit, fuse)) = broken(folder, "error", &["error-pwrite-rate=30%", "error=EIO", &trigger])
    else {
        return skip::skipped("no nbdkit, nbdfuse or FUSE: errors below a volume");
    };
    let blocks = SIZE / BLOCK;
    // The last flushed and the newest version of each block.
    let mut flushed = vec![0; blocks as usize];
    let mut newest = flushed.clone();
    let (mut random, mut next, mut failures) = (Random(2), 1, 0);
    for round in 0..4 {
        let volume = open(folder, &fuse);
        let mut io = Io::new();
        for lba in 0..blocks {
            let found = version(&volume, &mut io, lba).unwrap();
            let (low, high) = (flushed[lba as usize], newest[lba as usize]);
            assert!(
                (low..=high).contains(&found),
                "round {round}: block {lba} is {found}, not {low} to {high}"
            );
            (flushed[lba as usize], newest[lba as usize]) = (found, found);
        }
        let mut step = 0;
        // Until a flush has failed, too.
        while step < 60 || failures <= round && step < 600 {
            if step == 30 {
                std::fs::write(&inject, "").unwrap();
            }
            for _ in 0..50 {
                let lba = random.below(blocks);
                // Once the log is full, writes fail; successful ones are in its buffers.
                if volume.write(&mut io, lba * BLOCK, &content(next, lba)).is_ok() {
                    newest[lba as usize] = next;
                }
                next += 1;
            }
            match volume.commit() {
                Ok(()) => {
                    // Failed writes of segments were repeated.
                    flushed.clone_from(&newest);
                }
                Err(_) if step < 30 => panic!("the device is well"),
                Err(_) => failures = round + 1,
            }
            step += 1;
        }
        assert_eq!(failures, round + 1, "a flush fails where a third of all writes does");
        // As after a kill, with a working device again.
        volume.abandon();
        std::fs::remove_file(&inject).unwrap();
    }
}

/// Failing reads give errors, and succeed again when the device works.
#[test]
fn reads_that_fail_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let inject = folder.join("inject");
    let trigger = format!("error-file={}", inject.display());
    let Some((_nbdkit, fuse)) = broken(folder, "error", &["error-pread-rate=50%", "error=EIO", &trigger])
    else {
        return skip::skipped("no nbdkit, nbdfuse or FUSE: errors below a volume");
    };
    let volume = open(folder, &fuse);
    let mut io = Io::new();
    for lba in 0..SIZE / BLOCK {
        volume.write(&mut io, lba * BLOCK, &content(1 + lba, lba)).unwrap();
    }
    volume.commit().unwrap();
    // Otherwise reads come from the page cache.
    let is_dropped = std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok();
    std::fs::write(&inject, "").unwrap();
    let read =
        |io: &mut Io, lba| version(&volume, io, lba).map(|found| assert_eq!(found, 1 + lba, "block {lba}"));
    let failed = (0..SIZE / BLOCK).filter(|lba| read(&mut io, *lba).is_err()).count();
    std::fs::remove_file(&inject).unwrap();
    println!("{failed} reads failed");
    if is_dropped {
        assert!(failed > 0, "no read failed where half of them do");
    } else {
        skip::skipped("the page cache cannot be dropped: reads that fail below a volume");
    }
    for lba in 0..SIZE / BLOCK {
        read(&mut io, lba).unwrap();
    }
    volume.close().unwrap();
}

/// A slow device: readers see what was written, and blocks being overwritten are old or new.
#[test]
fn a_slow_device_is_slow_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some((_nbdkit, fuse)) = broken(folder, "delay", &["rdelay=2ms", "wdelay=5ms"]) else {
        return skip::skipped("no nbdkit, nbdfuse or FUSE: delays below a volume");
    };
    let volume = open(folder, &fuse);
    let blocks = SIZE / BLOCK;
    let ends = AtomicBool::new(false);
    let (begun, enough) = (Instant::now(), Duration::from_secs(5));
    // On a slow machine writes go on longer, until something is cleaned.
    let goes_on = || {
        let elapsed = begun.elapsed();
        elapsed < enough || elapsed < 24 * enough && volume.stats().segments_cleaned == 0
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut io, mut random, mut next) = (Io::new(), Random(3), 1);
            while goes_on() {
                for _ in 0..500 {
                    let lba = random.below(blocks);
                    volume.write(&mut io, lba * BLOCK, &content(next, lba)).unwrap();
                    next += 1;
                }
                volume.commit().unwrap();
            }
            ends.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            let (mut io, mut random, mut seen) = (Io::new(), Random(4), vec![0; blocks as usize]);
            while !ends.load(Ordering::Acquire) {
                let lba = random.below(blocks);
                let found = version(&volume, &mut io, lba).unwrap();
                assert!(found >= seen[lba as usize], "block {lba} went back in time");
                seen[lba as usize] = found;
            }
        });
    });
    assert!(volume.stats().segments_cleaned > 0, "{:?}", volume.stats());
    volume.close().unwrap();
}
