//! The bytes of a volume's log: what is written today is what the golden file holds, and that is read. See
//! docs/format.md, "A volume".

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "the caches' tests use the rest")]
mod golden;

use golden::{compare, fix_instance, read};
use granary_volume::device::{FileDevice, Space};
use granary_volume::{Config, Io, Volume};
use std::path::{Path, PathBuf};

const BLOCK: usize = 512;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// A volume of 20 blocks in segments of 16 that was never written, with the instance of all golden files.
fn make(folder: &Path) {
    open(folder).abandon();
    fix_instance(&folder.join("v.state"));
}

fn open(folder: &Path) -> Volume {
    let config = Config { block_size: 512, segment_bytes: 16 * 512, ..Config::new(20 * 512) };
    let (log, size) = (folder.join("v.log"), config.geometry().unwrap().file_bytes());
    let device = FileDevice::open_in_units(&log, size, BLOCK, Space::Thin).unwrap();
    Volume::open_on(folder, "v", &config, Box::new(device)).unwrap()
}

fn block(number: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..4].copy_from_slice(&[number; 4]);
    block
}

/// Writes a full segment with a commit in it, and one with two commits and no summary.
fn write(folder: &Path) {
    // Prevents checkpoints by the cleaner, which would commit.
    std::fs::create_dir(folder.join("v.map.new")).unwrap();
    let (volume, mut io) = (open(folder), Io::new());
    let mut put =
        |lba: u8, content: u8| volume.write(&mut io, u64::from(lba) * 512, &block(content)).unwrap();
    (0..5).for_each(|lba| put(lba, lba + 1));
    volume.commit().unwrap();
    (5..12).for_each(|lba| put(lba, lba + 1));
    volume.trim(2 * 512, 2 * 512).unwrap();
    put(0, 100);
    volume.commit().unwrap();
    put(1, 101);
    volume.commit().unwrap();
    put(4, 102);
    volume.abandon();
}

#[test]
fn what_is_written_is_what_was_agreed() {
    let temporary = tempfile::tempdir().unwrap();
    make(temporary.path());
    write(temporary.path());
    compare(&folder(), "segments.log.txt", &std::fs::read(temporary.path().join("v.log")).unwrap());
}

#[test]
fn what_was_agreed_is_read() {
    is_read("segments.log.txt");
}

/// Logs of versions that reused slots before a checkpoint covered them (the bit is 0), of versions whose starts counted
/// skipped numbers as synced, and of versions without the bit "follows synced" in commits.
#[test]
fn what_older_versions_wrote_is_read() {
    is_read("segments.before-synced-commits.log.txt");
    is_read("segments.slots-reused-early.log.txt");
    is_read("segments.synced-beyond-newest.log.txt");
}

fn is_read(golden: &str) {
    let temporary = tempfile::tempdir().unwrap();
    make(temporary.path());
    std::fs::write(temporary.path().join("v.log"), read(&folder(), golden)).unwrap();
    let (volume, mut io) = (open(temporary.path()), Io::new());
    let mut found = [0; BLOCK];
    for lba in 0..20u8 {
        volume.read(&mut io, u64::from(lba) * 512, &mut found).unwrap();
        // The last write was not committed.
        let expected = match lba {
            0 => 100,
            1 => 101,
            2 | 3 | 12.. => 0,
            lba => lba + 1,
        };
        assert_eq!(found, block(expected), "block {lba}");
    }
    volume.close().unwrap();
}
