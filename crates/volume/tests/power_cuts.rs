//! Power cuts and kills at every operation of the device of a full, small volume, with constant cleaning, reuse of
//! segments and checkpoints. The files beside the device are those of the same moment.

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;

use fastrand::Rng;
use golden::{change_state, lose_power};
use granary_log::device::{Device, VolatileDevice};
use granary_volume::{Config, Io, Volume};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BLOCK: u64 = 512;

fn config(blocks: u64) -> Config {
    Config { block_size: BLOCK, segment_bytes: 16 * BLOCK, ..Config::new(blocks * BLOCK) }
}

fn device(blocks: u64) -> Arc<VolatileDevice> {
    let bytes = config(blocks).geometry().unwrap().file_bytes();
    Arc::new(VolatileDevice::new(bytes, BLOCK as usize))
}

/// A folder in RAM, if possible.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The files beside the device, by name.
type Files = Vec<(String, Vec<u8>)>;

/// A device that records the files beside it at each operation.
#[derive(Clone)]
struct Witness {
    inner: Arc<VolatileDevice>,
    folder: PathBuf,
    /// The recorded files, each with the number of the device's operations when they were first seen.
    seen: Arc<Mutex<Vec<(usize, Files)>>>,
}

impl Witness {
    fn new(folder: &Path, blocks: u64) -> Self {
        let inner = device(blocks);
        Self { inner, folder: folder.to_owned(), seen: Arc::default() }
    }

    /// Runs an operation, and records the files before and after.
    fn witnessed(&self, operate: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        self.look(&mut seen);
        let done = operate();
        self.look(&mut seen);
        done
    }

    fn look(&self, seen: &mut Vec<(usize, Files)>) {
        let read = |name: &str| Some((name.to_owned(), std::fs::read(self.folder.join(name)).ok()?));
        let files: Files =
            ["v.state", "v.map", "v.journal.0", "v.journal.1"].into_iter().filter_map(read).collect();
        if seen.last().is_none_or(|(_, last)| *last != files) {
            seen.push((self.inner.recent(), files));
        }
    }

    /// The files that a crash after `operations` operations may leave. A new map becomes durable a moment after its
    /// rename.
    fn files_at(&self, operations: usize) -> Vec<Files> {
        let seen = self.seen.lock().unwrap();
        let before = seen.iter().rposition(|(since, _)| *since < operations);
        let from = before.unwrap_or(0);
        seen[from..]
            .iter()
            .take_while(|(since, _)| *since <= operations)
            .map(|(_, files)| files.clone())
            .collect()
    }
}

impl Device for Witness {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.witnessed(|| self.inner.write_at(offset, buffers))
    }

    fn sync(&self) -> io::Result<()> {
        self.witnessed(|| self.inner.sync())
    }
}

/// The content of a logical block as operation `number` wrote it; 0: zeroes.
fn content(lba: u64, number: u64) -> Vec<u8> {
    match number {
        0 => vec![0; BLOCK as usize],
        _ => [lba, number].map(u64::to_le_bytes).concat().repeat(BLOCK as usize / 16),
    }
}

/// The changes and flushes of a volume, with their operations.
struct History {
    /// For each block: (operation, content), from its first content on.
    versions: Vec<Vec<(u64, u64)>>,
    /// For each flush: (its operation, the number of operations of the device before it was answered).
    flushes: Vec<(u64, usize)>,
    number: u64,
    blocks: u64,
}

impl History {
    fn new(blocks: u64) -> Self {
        Self { versions: vec![vec![(0, 0)]; blocks as usize], flushes: vec![(0, 0)], number: 0, blocks }
    }

    /// One random step; one in `flushes` is a flush.
    fn step(
        &mut self,
        volume: &Volume,
        io: &mut Io,
        device: &VolatileDevice,
        random: &mut Rng,
        flushes: u32,
    ) {
        self.number += 1;
        if random.u32(..flushes) == 0 {
            volume.commit().unwrap();
            self.flushes.push((self.number, device.recent()));
            return;
        }
        let first = random.u64(..self.blocks);
        let blocks = random.u64(1..=6).min(self.blocks - first);
        let (offset, len) = (first * BLOCK, blocks * BLOCK);
        let written = match random.u8(..20) {
            0 => {
                volume.trim(offset, len).unwrap();
                0
            }
            1 => {
                volume.write_zeroes(io, offset, len).unwrap();
                0
            }
            _ => {
                let data: Vec<u8> =
                    (first..first + blocks).flat_map(|lba| content(lba, self.number)).collect();
                volume.write(io, offset, &data).unwrap();
                self.number
            }
        };
        for lba in first..first + blocks {
            self.versions[lba as usize].push((self.number, written));
        }
    }

    /// Checks the content after an end at operation `end` of the device, and returns it.
    fn check(&self, volume: &Volume, end: usize, what: &str) -> Vec<u8> {
        let flushed = self.flushes.iter().rfind(|(_, answered)| *answered <= end).unwrap().0;
        let mut found = vec![0; (self.blocks * BLOCK) as usize];
        volume.read(&mut Io::new(), 0, &mut found).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (lba, (versions, found)) in
            (0..).zip(self.versions.iter().zip(found.chunks_exact(BLOCK as usize)))
        {
            let oldest = versions.iter().rposition(|(number, _)| *number <= flushed).unwrap();
            let is_one = |(_, written): &(u64, u64)| content(lba, *written) == found;
            assert!(
                versions[oldest..].iter().any(is_one),
                "{what}: block {lba} is {:?}, not of {:?}",
                &found[..16],
                &versions[oldest..]
            );
        }
        found
    }
}

/// Opens the volume of a folder.
fn open(folder: &Path, device: impl Device + 'static, blocks: u64, what: &str) -> Volume {
    let opened = Volume::open_on(folder, "v", &config(blocks), Box::new(device));
    opened.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// A folder with these files.
fn folder_with(files: &Files) -> tempfile::TempDir {
    let folder = folder();
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
    folder
}

/// The number of ends of each kind.
#[derive(Debug, Default)]
struct Ends {
    kills: u64,
    cuts: u64,
    /// Ends while the map was being replaced.
    between_maps: u64,
}

fn end_everywhere(seed: u64, ends: &mut Ends) {
    let (mut random, mut io) = (Rng::with_seed(seed), Io::new());
    let blocks = random.choice([64, 256, 1000]).unwrap();
    let flushes = random.choice([8, 20, 100]).unwrap();
    let folder = self::folder();
    let device = Witness::new(folder.path(), blocks);
    let volume = open(folder.path(), device.clone(), blocks, "made");
    let mut history = History::new(blocks);
    // Nearly full, with durable content.
    for _ in 0..blocks {
        history.step(&volume, &mut io, &device.inner, &mut random, flushes);
    }
    volume.commit().unwrap();
    device.inner.record();
    history.number += 1;
    history.flushes.push((history.number, 0));
    device.seen.lock().unwrap().clear();
    device.witnessed(|| Ok(())).unwrap();
    let first = device.seen.lock().unwrap()[0].0;
    let before = volume.stats();
    let mut steps = 0;
    while steps < 100 || volume.stats().checkpoints == before.checkpoints {
        history.step(&volume, &mut io, &device.inner, &mut random, flushes);
        steps += 1;
        if random.u8(..4) == 0 {
            // Gives the cleaner time.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(blocks < 256 || volume.stats().segments_cleaned > before.segments_cleaned, "seed {seed}");
    volume.abandon();
    for end in first..=device.inner.recent() {
        if random.u8(..4) > 0 {
            continue;
        }
        let files = device.files_at(end);
        ends.between_maps += u64::from(files.len() > 1);
        for (files, is_killed) in
            files.iter().flat_map(|files| [(files, false), (files, false), (files, true)])
        {
            // Keeps none, some or nearly all unsynced units; a kill leaves all.
            let kept = random.choice([0, 128, 250]).unwrap();
            let left = device.inner.after_power_cut_at(end, |_| is_killed || random.u8(..) < kept);
            let what = format!("seed {seed}, end at {end}, killed: {is_killed}, {kept} of 256 units kept");
            let folder = folder_with(files);
            if is_killed {
                ends.kills += 1;
            } else {
                ends.cuts += 1;
                lose_power(&folder.path().join("v.state"));
            }
            let left = Arc::new(left);
            let volume = open(folder.path(), Arc::clone(&left), blocks, &what);
            let found = history.check(&volume, end, &what);
            volume.abandon();
            if random.u8(..8) == 0 {
                // The next start shows the same content, even if the power goes at once.
                lose_power(&folder.path().join("v.state"));
                let volume = open(folder.path(), left.after_power_cut(|_| random.bool()), blocks, &what);
                assert!(
                    history.check(&volume, end, &what) == found,
                    "{what}: another start shows other things"
                );
                volume.abandon();
            }
        }
    }
}

#[test]
fn a_full_volume_survives_an_end_at_every_operation() {
    let seeds =
        std::env::var("GRANARY_MODEL_SEEDS").map_or(9, |text| text.parse().expect("a number of seeds"));
    let mut ends = Ends::default();
    (0..seeds).for_each(|seed| end_everywhere(seed, &mut ends));
    println!("{ends:?}");
    assert!(ends.between_maps > 0, "{ends:?}");
}

/// The newest segment in the map has no live blocks, and its slot is reused. A loss of power leaves one block of the
/// new segment: no complete segment is as new as the map, and yet the volume is valid.
#[test]
fn the_newest_segment_of_the_map_may_be_half_overwritten() {
    const BLOCKS: u64 = 256;
    const SEGMENT: usize = 64 * BLOCK as usize;
    // Summaries of several blocks.
    let config = Config { segment_bytes: SEGMENT as u64, ..config(BLOCKS) };
    let (folder, mut io) = (folder(), Io::new());
    let opened = |folder: &Path, device| Volume::open_on(folder, "v", &config, device);
    let image = |device: &VolatileDevice| {
        let mut image = vec![0; device.size() as usize];
        device.read_at(0, &mut image).unwrap();
        image
    };
    let new_device = || {
        let bytes = config.geometry().unwrap().file_bytes();
        Arc::new(VolatileDevice::new(bytes, BLOCK as usize))
    };
    let device = new_device();
    let volume = opened(folder.path(), Box::new(Arc::clone(&device))).unwrap();
    for lba in 0..BLOCKS {
        volume.write(&mut io, lba * BLOCK, &content(lba, 1)).unwrap();
    }
    volume.close().unwrap();
    // A segment with only this entry.
    let volume = opened(folder.path(), Box::new(Arc::clone(&device))).unwrap();
    volume.trim(0, 2 * BLOCK).unwrap();
    volume.close().unwrap();
    let closed = image(&device);
    let files: Files = ["v.state", "v.map"]
        .map(|name| (name.to_owned(), std::fs::read(folder.path().join(name)).unwrap()))
        .into();
    let number = |slot: usize| {
        let header = &closed[slot * SEGMENT + 8..slot * SEGMENT + 14];
        header.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let newest = (0..closed.len() / SEGMENT).max_by_key(|slot| number(*slot)).unwrap();
    let last = (newest + 1) * SEGMENT - BLOCK as usize..(newest + 1) * SEGMENT;
    let volume = opened(folder.path(), Box::new(Arc::clone(&device))).unwrap();
    let mut writes = 0;
    while image(&device)[last.clone()] == closed[last.clone()] {
        assert!(writes < 100 * BLOCKS, "each slot is used again");
        volume.write(&mut io, (2 + writes % 250) * BLOCK, &content(0, 2)).unwrap();
        writes += 1;
        if writes % 50 == 0 {
            volume.commit().unwrap();
        }
    }
    volume.abandon();
    let overwritten = image(&device)[last.clone()].to_vec();
    for is_overwritten in [true, false] {
        let mut left = closed.clone();
        match is_overwritten {
            true => left[last.clone()].copy_from_slice(&overwritten),
            false => left[newest * SEGMENT..(newest + 1) * SEGMENT].fill(0),
        }
        let copy = folder_with(&files);
        // The state file of an open volume whose start found no segment.
        change_state(&copy.path().join("v.state"), |state| {
            state[56..64].fill(0);
            state[80..88].fill(0);
        });
        lose_power(&copy.path().join("v.state"));
        let device = new_device();
        device.write_at(0, &[&left]).unwrap();
        let volume = opened(copy.path(), Box::new(device));
        if !is_overwritten {
            // No block of that segment or a later one was written.
            assert!(volume.is_err(), "the log is older than the map");
            continue;
        }
        let (volume, mut found) = (volume.unwrap(), [0; BLOCK as usize]);
        for lba in 0..BLOCKS {
            volume.read(&mut io, lba * BLOCK, &mut found).unwrap();
            assert!(found[..] == content(lba, u64::from(lba >= 2)), "block {lba}");
        }
        volume.close().unwrap();
    }
}
