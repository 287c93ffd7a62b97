//! Volumes on QEMU's disk that logs each write: after each write, and after any part of the unflushed ones, the content
//! is what a disk may show.

mod common;

use common::fuse::Fuse;
use common::golden::lose_power;
use common::logged::{LogEntry, LoggedDisk};
use common::programs::{attempt, run};
use common::random::Random;
use common::serving::Serving;
use common::skip;
use granary_log::device::{Device, FileDevice, MemoryDevice, Space};
use granary_nbd::{Exports, VolumeExports};
use granary_volume::{Config, Io, Volume};
use std::path::Path;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// Rounds of writes and power cuts, GRANARY_LOGGED_ROUNDS for more.
fn rounds() -> u64 {
    std::env::var("GRANARY_LOGGED_ROUNDS").map_or(2, |n| n.parse().unwrap())
}

fn config(size: u64) -> Config {
    Config { segment_bytes: 64 << 10, ..Config::new(size) }
}

/// The volume on a disk, with its other files in a folder.
fn open(files: &Path, config: &Config, disk: &LoggedDisk) -> Volume {
    let bytes = config.geometry().unwrap().file_bytes();
    let device = FileDevice::open_in_units(&disk.path(), bytes, BLOCK as usize, Space::Thin).unwrap();
    Volume::open_on(files, "disk", config, Box::new(device)).unwrap()
}

/// The disk as it is at one moment, and the files beside it.
struct Start {
    image: Vec<u8>,
    files: tempfile::TempDir,
    /// The length of the log at that moment.
    log_bytes: u64,
}

impl Start {
    /// Takes the state at a moment without writes.
    fn new(disk: &LoggedDisk, files: &Path) -> Self {
        loop {
            let log_bytes = disk.log_bytes();
            let this = Self { image: disk.content(), files: copy_of(files), log_bytes };
            if disk.log_bytes() == log_bytes {
                return this;
            }
        }
    }

    /// Opens the volume of an image.
    fn open(&self, image: &[u8], config: &Config) -> (Volume, tempfile::TempDir) {
        let device = MemoryDevice::new(image.len() as u64);
        device.write_at(0, &[image]).unwrap();
        let files = copy_of(self.files.path());
        lose_power(&files.path().join("disk.state"));
        (Volume::open_on(files.path(), "disk", config, Box::new(device)).unwrap(), files)
    }

    /// Calls `check` with states of the disk that a loss of power may leave, and the length of the log: the log up to
    /// each entry, with all or only some of the unflushed writes.
    fn power_cuts(&self, entries: &[LogEntry], random: &mut Random, mut check: impl FnMut(&[u8], u64)) {
        let (mut flushed, mut image) = (self.image.clone(), self.image.clone());
        let mut unflushed: Vec<&LogEntry> = Vec::new();
        check(&image, self.log_bytes);
        for entry in entries {
            entry.apply(&mut image);
            unflushed.push(entry);
            check(&image, entry.end);
            if entry.is_flush() {
                unflushed.clear();
                flushed.copy_from_slice(&image);
                continue;
            }
            let mut some = flushed.clone();
            unflushed.iter().filter(|_| random.below(2) == 0).for_each(|entry| entry.apply(&mut some));
            check(&some, entry.end);
        }
    }
}

fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

/// The versions of each block, and the commits that made them durable.
struct History {
    /// For each block: (operation that changed it, whether it was zero from then on).
    versions: Vec<Vec<(u64, bool)>>,
    operations: u64,
    /// For each commit: (the last operation before it, the length of the log when it was answered).
    commits: Vec<(u64, u64)>,
}

/// A block's content, with its number and the operation that wrote it.
fn stamped(lba: u64, operation: u64) -> Vec<u8> {
    [lba.to_le_bytes(), operation.to_le_bytes()].concat().repeat(BLOCK as usize / 16)
}

impl History {
    fn new(blocks: u64) -> Self {
        Self { versions: vec![vec![(0, false)]; blocks as usize], operations: 0, commits: Vec::new() }
    }

    /// Starts a new round with the newest versions.
    fn begin(&mut self) {
        self.commits.clear();
        self.versions.iter_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1)));
    }

    /// Writes, trims or commits something.
    fn run(&mut self, volume: &Volume, io: &mut Io, random: &mut Random, disk: &LoggedDisk) {
        let blocks = self.versions.len() as u64;
        let count = 1 + random.below(6);
        let first = random.below(blocks - count);
        let kind = random.below(20);
        self.operations += 1;
        match kind {
            0..=15 => {
                let data: Vec<u8> =
                    (first..first + count).flat_map(|lba| stamped(lba, self.operations)).collect();
                volume.write(io, first * BLOCK, &data).unwrap();
            }
            16 => volume.trim(first * BLOCK, count * BLOCK).unwrap(),
            17 => volume.write_zeroes(io, first * BLOCK, count * BLOCK).unwrap(),
            _ => {
                volume.commit().unwrap();
                self.commits.push((self.operations, disk.log_bytes()));
                return;
            }
        }
        for lba in first..first + count {
            self.versions[lba as usize].push((self.operations, kind > 15));
        }
    }

    /// Compares a volume's content when the disk ended at `log_bytes` of the log, and returns the content.
    fn check(&self, volume: &Volume, io: &mut Io, log_bytes: u64) -> Result<Vec<Option<u64>>, String> {
        let durable =
            self.commits.iter().filter(|(_, bytes)| *bytes <= log_bytes).map(|(operation, _)| *operation);
        let durable = durable.max().unwrap_or(0);
        let mut block = vec![0; BLOCK as usize];
        let mut shown = Vec::new();
        for (lba, versions) in (0..).zip(&self.versions) {
            volume.read(io, lba * BLOCK, &mut block).map_err(|error| format!("block {lba}: {error}"))?;
            let oldest = versions.iter().rposition(|(operation, _)| *operation <= durable).unwrap_or(0);
            let is = |(operation, is_zero): &(u64, bool)| match is_zero {
                true => block.iter().all(|byte| *byte == 0),
                false => block == stamped(lba, *operation),
            };
            let found = versions[oldest..].iter().find(|version| is(version));
            let allowed = &versions[oldest..];
            let found =
                found.ok_or_else(|| format!("block {lba}: {:?}, not of {allowed:?}", &block[..16]))?;
            shown.push((!found.1).then_some(found.0));
        }
        Ok(shown)
    }

    /// Goes on with a volume's content.
    fn continue_with(&mut self, shown: Vec<Option<u64>>) {
        for (versions, shown) in self.versions.iter_mut().zip(shown) {
            *versions = vec![shown.map_or((0, true), |operation| (operation, false))];
        }
    }
}

/// A full volume is written while it is cleaned.
#[test]
fn a_volume_shows_what_a_disk_may_after_each_write_below_it() {
    let folders = tempfile::tempdir().unwrap();
    let (below, files) = (folders.path().join("below"), folders.path().join("files"));
    for folder in [&below, &files] {
        std::fs::create_dir(folder).unwrap();
    }
    let size = 6 * MIB;
    let config = config(size);
    let Some(disk) = LoggedDisk::new(&below, config.geometry().unwrap().file_bytes()) else {
        return skip::skipped("no FUSE or no qemu-storage-daemon: volumes on a disk that logs");
    };
    let mut io = Io::new();
    let mut history = History::new(size / BLOCK);
    let volume = open(&files, &config, &disk);
    for lba in 0..size / BLOCK {
        volume.write(&mut io, lba * BLOCK, &stamped(lba, 0)).unwrap();
    }
    volume.close().unwrap();
    let (mut cuts, mut cleaned) = (0, 0);
    for round in 0..rounds() {
        let mut random = Random(round);
        let mut tries = 0;
        let (start, end, before, after) = loop {
            let volume = open(&files, &config, &disk);
            volume.commit().unwrap();
            let start = Start::new(&disk, &files);
            history.begin();
            let (before, most) = (volume.stats(), volume.stats().segments / 10);
            while volume.stats().segments_since_checkpoint < most {
                history.run(&volume, &mut io, &mut random, &disk);
            }
            // Behind this end there may be a checkpoint.
            let (end, after) = (disk.log_bytes(), volume.stats());
            if after.checkpoints == before.checkpoints {
                volume.abandon();
                break (start, end, before, after);
            }
            // A checkpoint was written, which is newer than earlier states of the disk: try again with a start without
            // one.
            tries += 1;
            assert!(tries < 5, "{after:?}");
            volume.close().unwrap();
        };
        cleaned += after.segments_cleaned - before.segments_cleaned;
        let entries = disk.entries(start.log_bytes).into_iter().filter(|entry| entry.end <= end);
        let entries: Vec<_> = entries.collect();
        start.power_cuts(&entries, &mut random, |image, log_bytes| {
            let (volume, _files) = start.open(image, &config);
            let shown = history.check(&volume, &mut io, log_bytes);
            shown.unwrap_or_else(|why| panic!("round {round}, power cut {cuts}: {why}"));
            assert_eq!(volume.check_map(&mut |_| {}), 0);
            volume.abandon();
            cuts += 1;
        });
        // The kill is the last cut.
        let volume = open(&files, &config, &disk);
        let shown = history.check(&volume, &mut io, disk.log_bytes()).unwrap();
        history.continue_with(shown);
        volume.close().unwrap();
    }
    println!("{cuts} power cuts, {cleaned} segments cleaned");
    assert!(cuts > 30 * rounds() && cleaned > 0, "{cuts} power cuts, {cleaned} segments cleaned");
}

/// The content of a file.
fn content_of(number: u64) -> Vec<u8> {
    (0..number * 1500 + 7).map(|i| (i * 31 + number) as u8).collect()
}

/// Writes files into a folder and removes some; returns the synced files that are there, with the length of the log at
/// that time.
fn write_files(folder: &Path, disk: &LoggedDisk) -> Vec<(u64, u64)> {
    let mut synced = Vec::new();
    for number in 1..=24 {
        let path = folder.join(number.to_string());
        std::fs::write(&path, content_of(number)).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        synced.push((number, disk.log_bytes()));
        if number % 3 == 0 {
            std::fs::remove_file(folder.join((number - 1).to_string())).unwrap();
            synced.retain(|(other, _)| *other != number - 1);
        }
    }
    synced
}

/// ext4 on a volume: files that were synced are there, and the file system is sound, after each flush of the disk.
#[test]
fn a_file_system_is_sound_after_each_flush_below_its_volume() {
    let folders = tempfile::tempdir().unwrap();
    let (below, files) = (folders.path().join("below"), folders.path().join("files"));
    for folder in [&below, &files] {
        std::fs::create_dir(folder).unwrap();
    }
    let size = 24 * MIB;
    let config = config(size);
    let Some(disk) = LoggedDisk::new(&below, config.geometry().unwrap().file_bytes()) else {
        return skip::skipped("no FUSE or no qemu-storage-daemon: ext4 on a disk that logs");
    };
    let volume = Arc::new(open(&files, &config, &disk));
    let export = VolumeExports::new([Arc::clone(&volume)]).open("").unwrap();
    let serving = Serving::new(export);
    let folder = serving.folder.path();
    std::fs::create_dir(folder.join("mount")).unwrap();
    let Some(fuse) = Fuse::mount(folder, "nbd", &serving.unix()) else {
        return skip::skipped("no nbdfuse: ext4 on a disk that logs");
    };
    let now = "lazy_itable_init=0,lazy_journal_init=0";
    run(folder, "mkfs.ext4", &["-q", "-F", "-b", "1024", "-J", "size=1", "-E", now, "nbd"]);
    if !attempt(folder, "mount", &["-o", "loop", "nbd", "mount"]).0 {
        return skip::skipped("no loop device: ext4 on a disk that logs");
    }
    // A checkpoint would be newer than earlier states of the disk. It comes after an eighth of all segments were
    // written: after one there is none for a while, and the files are written again.
    let mut tries = 0;
    let (start, synced, end) = loop {
        run(folder, "sync", &["-f", "mount"]);
        let before = volume.stats();
        let start = Start::new(&disk, &files);
        let synced = write_files(&folder.join("mount"), &disk);
        let (end, after) = (disk.log_bytes(), volume.stats());
        if after.checkpoints == before.checkpoints {
            break (start, synced, end);
        }
        tries += 1;
        assert!(tries < 5, "{after:?}");
        (1..=24).for_each(|number| _ = std::fs::remove_file(folder.join(format!("mount/{number}"))));
    };
    run(folder, "umount", &["mount"]);
    drop(fuse);
    let entries: Vec<_> =
        disk.entries(start.log_bytes).into_iter().filter(|entry| entry.end <= end).collect();
    let (mut image, mut io, mut checked) = (start.image.clone(), Io::new(), 0);
    for entry in &entries {
        entry.apply(&mut image);
        if !entry.is_flush() {
            continue;
        }
        let (volume, _files) = start.open(&image, &config);
        let mut content = vec![0; size as usize];
        volume.read(&mut io, 0, &mut content).unwrap();
        volume.abandon();
        std::fs::write(folder.join("content"), content).unwrap();
        // The journal is replayed, as by a mount; 1: something was.
        run(folder, "sh", &["-c", "e2fsck -p content || [ $? = 1 ]"]);
        run(folder, "e2fsck", &["-f", "-n", "content"]);
        for (number, _) in synced.iter().filter(|(_, log_bytes)| *log_bytes <= entry.end) {
            run(folder, "debugfs", &["-R", &format!("dump /{number} file"), "content"]);
            let found = std::fs::read(folder.join("file")).unwrap();
            assert!(found == content_of(*number), "file {number} after a loss of power");
        }
        checked += 1;
    }
    println!("{checked} flushes");
    assert!(checked >= 24, "{checked} flushes");
}
