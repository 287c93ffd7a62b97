//! Power cuts and kills at every operation of the device of a full, small volume, whose segments are cleaned and used again
//! and whose map is written down all the time. The files beside the device are those of each moment.

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;

use fastrand::Rng;
use golden::lose_power;
use granary_log::device::{Device, VolatileDevice};
use granary_volume::{Config, Io, Volume};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const BLOCK: u64 = 512;
const BLOCKS: u64 = 256;

fn config() -> Config {
    let size = BLOCKS * BLOCK;
    Config { block_size: BLOCK, segment_bytes: 16 * BLOCK, ..Config::new(size) }
}

/// A folder in RAM, where there is one.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The files beside the device, by name.
type Files = Vec<(String, Vec<u8>)>;

/// A device that notes the files beside it at each operation.
#[derive(Clone)]
struct Witness {
    inner: Arc<VolatileDevice>,
    folder: PathBuf,
    /// Each with the number of the device's operations when it was there first.
    seen: Arc<Mutex<Vec<(usize, Files)>>>,
}

impl Witness {
    fn new(folder: &Path) -> Self {
        let bytes = config().geometry().unwrap().file_bytes();
        let inner = Arc::new(VolatileDevice::new(bytes, BLOCK as usize));
        Self { inner, folder: folder.to_owned(), seen: Arc::default() }
    }

    /// Does an operation, and looks before and after.
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

    /// The files that may have been there when the device had done so many operations. A new map is there for good a moment
    /// after it is there.
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

/// A logical block as the operation of a number wrote it; 0: zeroes.
fn content(lba: u64, number: u64) -> Vec<u8> {
    match number {
        0 => vec![0; BLOCK as usize],
        _ => [lba, number].map(u64::to_le_bytes).concat().repeat(BLOCK as usize / 16),
    }
}

/// What was done, and when.
struct History {
    /// Of each block: (operation, what it wrote), from its first content on.
    versions: Vec<Vec<(u64, u64)>>,
    /// Of each flush: its operation, and the operations of the device before it was answered.
    flushes: Vec<(u64, usize)>,
    number: u64,
}

impl History {
    fn new() -> Self {
        Self { versions: vec![vec![(0, 0)]; BLOCKS as usize], flushes: vec![(0, 0)], number: 0 }
    }

    fn step(&mut self, volume: &Volume, io: &mut Io, device: &VolatileDevice, random: &mut Rng) {
        self.number += 1;
        let first = random.u64(..BLOCKS);
        let blocks = random.u64(1..=5).min(BLOCKS - first);
        let (offset, len) = (first * BLOCK, blocks * BLOCK);
        let written = match random.u8(..24) {
            0..19 => {
                let data: Vec<u8> =
                    (first..first + blocks).flat_map(|lba| content(lba, self.number)).collect();
                volume.write(io, offset, &data).unwrap();
                self.number
            }
            19 => {
                volume.trim(offset, len).unwrap();
                0
            }
            20 => {
                volume.write_zeroes(io, offset, len).unwrap();
                0
            }
            _ => {
                volume.commit().unwrap();
                self.flushes.push((self.number, device.recent()));
                return;
            }
        };
        for lba in first..first + blocks {
            self.versions[lba as usize].push((self.number, written));
        }
    }

    /// Checks what is there after an end when the device had done so many operations, and returns it.
    fn check(&self, volume: &Volume, end: usize, what: &str) -> Vec<u8> {
        let flushed = self.flushes.iter().rfind(|(_, answered)| *answered <= end).unwrap().0;
        let mut found = vec![0; (BLOCKS * BLOCK) as usize];
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

/// Opens what an end leaves.
fn open(folder: &Path, device: VolatileDevice, what: &str) -> Volume {
    Volume::open_on(folder, "v", &config(), Box::new(device))
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// How many ends of each kind there were.
#[derive(Debug, Default)]
struct Ends {
    kills: u64,
    cuts: u64,
    /// Those at a moment when the map was being replaced.
    between_maps: u64,
}

fn end_everywhere(seed: u64, ends: &mut Ends) {
    let folder = self::folder();
    let device = Witness::new(folder.path());
    let (mut random, mut io) = (Rng::with_seed(seed), Io::new());
    let volume = Volume::open_on(folder.path(), "v", &config(), Box::new(device.clone())).unwrap();
    let mut history = History::new();
    // Nearly full, and what is there is durable.
    (0..250).for_each(|_| history.step(&volume, &mut io, &device.inner, &mut random));
    volume.commit().unwrap();
    device.inner.record();
    history.number += 1;
    history.flushes.push((history.number, 0));
    device.seen.lock().unwrap().clear();
    device.witnessed(|| Ok(())).unwrap();
    let first = device.seen.lock().unwrap()[0].0;
    let before = volume.stats();
    for _ in 0..60 {
        history.step(&volume, &mut io, &device.inner, &mut random);
        if random.u8(..4) == 0 {
            // Else the cleaner has no time.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let stats = volume.stats();
    assert!(stats.segments_cleaned > before.segments_cleaned, "seed {seed}: {stats:?}");
    assert!(stats.checkpoints > before.checkpoints, "seed {seed}: {stats:?}");
    volume.abandon();
    for end in first..=device.inner.recent() {
        if random.u8(..3) > 0 {
            continue;
        }
        let files = device.files_at(end);
        ends.between_maps += u64::from(files.len() > 1);
        for (files, is_killed) in
            files.iter().flat_map(|files| [(files, false), (files, false), (files, true)])
        {
            // Nothing that was not synced, some of it, or nearly all; a kill leaves all.
            let kept = random.choice([0, 128, 250]).unwrap();
            let left = device.inner.after_power_cut_at(end, |_| is_killed || random.u8(..) < kept);
            let what = format!("seed {seed}, end at {end}, killed: {is_killed}, {kept} of 256 units kept");
            let folder = self::folder();
            files.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
            match is_killed {
                true => ends.kills += 1,
                false => {
                    ends.cuts += 1;
                    lose_power(&folder.path().join("v.state"));
                }
            }
            let left = Arc::new(left);
            let volume = Volume::open_on(folder.path(), "v", &config(), Box::new(Arc::clone(&left)));
            let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = history.check(&volume, end, &what);
            volume.abandon();
            if random.u8(..8) == 0 {
                // What a start shows, the next one shows, though the power went at once.
                lose_power(&folder.path().join("v.state"));
                let volume = open(folder.path(), left.after_power_cut(|_| random.bool()), &what);
                assert!(
                    history.check(&volume, end, &what) == found,
                    "{what}: another start shows something else"
                );
                volume.abandon();
            }
        }
    }
}

#[test]
fn a_full_volume_survives_an_end_at_every_operation() {
    let seeds =
        std::env::var("GRANARY_MODEL_SEEDS").map_or(16, |text| text.parse().expect("a number of seeds"));
    let mut ends = Ends::default();
    (0..seeds).for_each(|seed| end_everywhere(seed, &mut ends));
    println!("{ends:?}");
    assert!(ends.between_maps > 0, "{ends:?}");
}
