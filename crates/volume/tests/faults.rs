//! A volume on a device whose reads and syncs fail now and then: a read returns the right content or an error, and when
//! the faults are over everything is there and cleaning goes on.

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;

use fastrand::Rng;
use golden::lose_power;
use granary_log::device::{Device, Fault, Faults, FaultyDevice, FileDevice, Space, VolatileDevice};
use granary_volume::{Config, Engine, Io, Volume};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK: u64 = 512;
const BLOCKS: u64 = 400;

type Faulty = Arc<FaultyDevice<Arc<FileDevice>>>;

/// A device whose reads and writes fail now and then, but not its syncs.
struct Synced {
    faulty: Faulty,
    file: Arc<FileDevice>,
}

impl Device for Synced {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.faulty.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> std::io::Result<()> {
        self.faulty.write_at(offset, buffers)
    }

    fn sync(&self) -> std::io::Result<()> {
        self.file.sync()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.faulty.descriptor()
    }

    fn complete_read(
        &self,
        engine: Engine,
        offset: u64,
        bytes: &mut [u8],
        answer: std::io::Result<usize>,
    ) -> std::io::Result<usize> {
        self.faulty.complete_read(engine, offset, bytes, answer)
    }
}

fn config() -> Config {
    let size = BLOCKS * BLOCK;
    Config { size, block_size: BLOCK, segment_bytes: 16 * BLOCK, ..Config::new(size) }
}

fn device(folder: &Path) -> (Faulty, Arc<FileDevice>) {
    let bytes = config().geometry().unwrap().file_bytes();
    let file =
        FileDevice::open_in_units(&folder.join("device"), bytes, BLOCK as usize, Space::Reserved).unwrap();
    let file = Arc::new(file);
    (Arc::new(FaultyDevice::new(Arc::clone(&file), BLOCK as usize, Faults::default())), file)
}

fn open(folder: &Path, device: impl Device + 'static) -> Volume {
    Volume::open_on(folder, "v", &config(), Box::new(device)).unwrap()
}

/// The content of a logical block as written by write number `version`; 0: zeroes.
fn content(lba: u64, version: u64) -> Vec<u8> {
    match version {
        0 => vec![0; BLOCK as usize],
        _ => [lba, version].map(u64::to_le_bytes).concat().repeat(BLOCK as usize / 16),
    }
}

/// The allowed versions of each block: the last one, and those of writes that failed since.
struct Model {
    versions: Vec<Vec<u64>>,
    /// The allowed versions of each block after a kill: that of the last successful commit, and all written since.
    since_commit: Vec<Vec<u64>>,
    written: u64,
    random: Rng,
    io: Io,
}

impl Model {
    fn new(seed: u64, engine: Engine) -> Self {
        let (versions, random) = (vec![vec![0]; BLOCKS as usize], Rng::with_seed(seed));
        Self { since_commit: versions.clone(), versions, written: 0, random, io: Io::with_engine(engine) }
    }

    fn range(&mut self) -> (u64, u64) {
        let first = self.random.u64(..BLOCKS);
        (first, self.random.u64(1..=8).min(BLOCKS - first))
    }

    fn write(&mut self, volume: &Volume) {
        let (first, count) = self.range();
        self.written += 1;
        let version = self.written;
        let bytes: Vec<u8> = (first..first + count).flat_map(|lba| content(lba, version)).collect();
        let result = volume.write(&mut self.io, first * BLOCK, &bytes);
        self.changed(first..first + count, version, result.is_ok());
    }

    /// Writes a part of a block with its present content: the rest must not be lost.
    fn write_part(&mut self, volume: &Volume) {
        let lba = self.random.u64(..BLOCKS);
        let versions = &self.versions[lba as usize];
        let [version] = versions[..] else { return };
        let (from, len) = (16 * self.random.u64(..31), 16);
        let part = &content(lba, version)[from as usize..(from + len) as usize];
        // The old and the new content are equal.
        let _ = volume.write(&mut self.io, lba * BLOCK + from, part);
    }

    fn clear(&mut self, volume: &Volume) {
        let (first, count) = self.range();
        let result = match self.random.bool() {
            true => volume.trim(first * BLOCK, count * BLOCK),
            false => volume.write_zeroes(&mut self.io, first * BLOCK, count * BLOCK),
        };
        self.changed(first..first + count, 0, result.is_ok());
    }

    fn changed(&mut self, lbas: std::ops::Range<u64>, version: u64, is_done: bool) {
        for lba in lbas {
            let versions = &mut self.versions[lba as usize];
            if is_done {
                versions.clear();
            }
            versions.push(version);
            self.since_commit[lba as usize].push(version);
        }
    }

    /// Commits; returns whether that succeeded.
    fn commit(&mut self, volume: &Volume) -> bool {
        let is_done = volume.commit().is_ok();
        if is_done {
            self.since_commit = self.versions.clone();
        }
        is_done
    }

    /// Notes that the volume was killed.
    fn killed(&mut self) {
        self.versions = self.since_commit.clone();
    }

    /// Reads and checks blocks; returns whether the read was refused.
    fn read(&mut self, volume: &Volume, first: u64, count: u64, what: &str) -> bool {
        let mut bytes = vec![0xEE; (count * BLOCK) as usize];
        if volume.read(&mut self.io, first * BLOCK, &mut bytes).is_err() {
            return true;
        }
        for (lba, bytes) in (first..).zip(bytes.chunks_exact(BLOCK as usize)) {
            let versions = &mut self.versions[lba as usize];
            let found = versions.iter().copied().find(|version| bytes == content(lba, *version));
            let Some(found) = found else {
                panic!("{what}: block {lba} is none of {versions:?}: {:?}", &bytes[..16]);
            };
            *versions = vec![found];
        }
        false
    }

    fn read_all(&mut self, volume: &Volume, what: &str) {
        for first in (0..BLOCKS).step_by(8) {
            assert!(
                !self.read(volume, first, 8.min(BLOCKS - first), what),
                "{what}: block {first} is refused"
            );
        }
    }

    fn step(&mut self, volume: &Volume, what: &str) -> bool {
        match self.random.u8(..100) {
            0..45 => self.write(volume),
            45..55 => self.write_part(volume),
            55..58 => self.clear(volume),
            _ => {
                let (first, count) = self.range();
                return self.read(volume, first, count, what);
            }
        }
        false
    }
}

fn seeds() -> u64 {
    std::env::var("GRANARY_MODEL_SEEDS").map_or(6, |text| text.parse().expect("a number of seeds"))
}

/// Seeds, each with a read engine.
fn seeded_engines() -> impl Iterator<Item = (u64, Engine)> {
    (0..seeds()).zip([Engine::Plain, Engine::Pool, Engine::Ring].into_iter().cycle())
}

/// Reads and writes fail now and then.
fn faults(seed: u64) -> Faults {
    let kinds = [Fault::Eio, Fault::Short, Fault::FlippedBit, Fault::Delay];
    // Few: each fault that the cleaner meets makes it skip a segment for a while, and writes wait when most are
    // skipped.
    let chances = kinds.map(|kind| (kind, if kind == Fault::Delay { 50 } else { 600 })).into();
    Faults { seed, chances, crash_after_writes: None }
}

fn steps() -> u64 {
    std::env::var("GRANARY_MODEL_OPERATIONS")
        .map_or(1500, |text| text.parse().expect("a number of operations"))
}

#[test]
fn what_is_read_is_right_or_refused_and_faults_that_pass_leave_nothing_behind() {
    let (mut all_refused, mut all_cleaned) = (0, 0);
    for (seed, engine) in seeded_engines() {
        let folder = tempfile::tempdir().unwrap();
        let (device, file) = device(folder.path());
        let open = || open(folder.path(), Synced { faulty: Arc::clone(&device), file: Arc::clone(&file) });
        let mut volume = open();
        let mut model = Model::new(seed, engine);
        let (mut refused, mut cleaned) = (0, 0);
        for round in 0..2 {
            let what = format!("{engine:?}, seed {seed}, round {round}");
            device.set_faults(faults(seed * 100 + round));
            for _ in 0..steps() {
                refused += u64::from(model.step(&volume, &what));
            }
            device.set_faults(Faults::default());
            model.read_all(&volume, &what);
            // No segment is lost to faults: the volume is overwritten several times, which needs every segment.
            for _ in 0..6 * BLOCKS / 4 {
                let begun = Instant::now();
                model.write(&volume);
                assert!(begun.elapsed() < Duration::from_secs(60), "{what}: a write waits for ever");
            }
            model.read_all(&volume, &what);
            cleaned += volume.stats().segments_cleaned;
            volume.commit().unwrap();
            volume.close().unwrap();
            volume = open();
            model.read_all(&volume, &format!("{what}, opened again"));
        }
        println!(
            "{engine:?}, seed {seed}: {refused} reads refused, {cleaned} segments cleaned, {} faults",
            device.struck()
        );
        assert!(device.struck_reads(engine) > 0, "{engine:?}, seed {seed}: no fault met a read");
        all_refused += refused;
        all_cleaned += cleaned;
    }
    assert!(all_refused > 0, "no fault met a read");
    // How many segments a seed cleans is chance: segments that are overwritten soon need no cleaning.
    assert!(all_cleaned > 50 * seeds(), "{all_cleaned} segments cleaned");
}

/// Commits amid faults succeed or fail; those that succeed hold.
#[test]
fn what_was_committed_amid_faults_is_there_after_a_kill() {
    for (seed, engine) in seeded_engines() {
        let folder = tempfile::tempdir().unwrap();
        let (device, file) = device(folder.path());
        let open = || open(folder.path(), Synced { faulty: Arc::clone(&device), file: Arc::clone(&file) });
        let mut model = Model::new(seed, engine);
        let (mut commits, mut failed) = (0, 0);
        for round in 0..6 {
            let what = format!("{engine:?}, seed {seed}, round {round}");
            let volume = open();
            model.read_all(&volume, &what);
            device.set_faults(faults(seed * 100 + round + 50));
            for _ in 0..steps() / 4 {
                model.step(&volume, &what);
                if model.random.u8(..25) == 0 {
                    let is_done = model.commit(&volume);
                    (commits, failed) = (commits + u64::from(is_done), failed + u64::from(!is_done));
                }
            }
            volume.abandon();
            device.set_faults(Faults::default());
            model.killed();
        }
        let volume = open();
        model.read_all(&volume, &format!("{engine:?}, seed {seed}"));
        assert!(commits > 20, "{engine:?}, seed {seed}: {commits} commits, {failed} failed");
        println!("{engine:?}, seed {seed}: {commits} commits, {failed} failed, {} faults", device.struck());
    }
}

/// A device that refuses each third write.
struct EachThirdWriteFails {
    file: Arc<FileDevice>,
    writes: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl Device for EachThirdWriteFails {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> std::io::Result<()> {
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        if self.fails.load(Ordering::Acquire) && number.is_multiple_of(3) {
            return Err(std::io::Error::other("a third write"));
        }
        self.file.write_at(offset, buffers)
    }

    fn sync(&self) -> std::io::Result<()> {
        self.file.sync()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }
}

/// A batch of segments goes to the device in many writes. Segments that were written are not written again when a later
/// one fails: otherwise no batch of more than a segment would ever complete.
#[test]
fn a_device_that_refuses_each_third_write_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = device(folder.path());
    let (writes, fails) = (Arc::<AtomicU64>::default(), Arc::new(AtomicBool::new(true)));
    let (writes_of, fails_of) = (Arc::clone(&writes), Arc::clone(&fails));
    let volume = open(folder.path(), EachThirdWriteFails { file, writes: writes_of, fails: fails_of });
    let mut io = Io::new();
    for lba in 0..BLOCKS {
        while volume.write(&mut io, lba * BLOCK, &content(lba, 1)).is_err() {}
    }
    while volume.commit().is_err() {
        assert!(writes.load(Ordering::Acquire) < 10 * BLOCKS / 16, "segments are written again and again");
    }
    fails.store(false, Ordering::Release);
    volume.abandon();
    let (_, file) = device(folder.path());
    let volume = open(folder.path(), file);
    let mut found = vec![0; BLOCK as usize];
    for lba in 0..BLOCKS {
        volume.read(&mut io, lba * BLOCK, &mut found).unwrap();
        assert!(found == content(lba, 1), "block {lba}");
    }
}

/// A sync fails and loses some unsynced writes, as with the kernel, and no later sync reports it. Writes go on while
/// segments are cleaned; then the power goes, or the process is killed. Earlier commits must be there: above all, no
/// slot with their content was reused.
#[test]
fn what_was_committed_before_a_sync_failed_is_there() {
    let (mut cleaned, mut refused) = (0, 0);
    for seed in 0..5 * seeds() {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let bytes = config().geometry().unwrap().file_bytes();
        let device = Arc::new(VolatileDevice::new(bytes, BLOCK as usize));
        let (volume, mut model) = (open(folder.path(), Arc::clone(&device)), Model::new(seed, Engine::Plain));
        let mut random = Rng::with_seed(seed);
        for _ in 0..random.u32(400..1200) {
            model.write(&volume);
            if random.u8(..16) == 0 {
                assert!(model.commit(&volume));
            }
        }
        let before = volume.stats();
        device.fail_next_sync(random.u64(..) & random.u64(..));
        let mut refusals = 0;
        for _ in 0..random.u32(1..400) {
            let writes = volume.stats().writes;
            model.write(&volume);
            refusals += u32::from(volume.stats().writes == writes);
            if refusals == 4 {
                // No segment becomes free any more.
                break;
            }
            // The cleaner may have met the failed sync. Commits before a failed one hold.
            if random.u8(..16) == 0 {
                model.commit(&volume);
            }
        }
        let failed = (0..3).map(|_| model.commit(&volume)).collect::<Vec<_>>();
        assert!(!failed[1] && !failed[2], "seed {seed}: what a failed sync should have kept may be gone");
        cleaned += volume.stats().segments_cleaned - before.segments_cleaned;
        refused += u64::from(volume.stats().commits == before.commits);
        volume.abandon();
        let is_killed = random.bool();
        let left = device.after_power_cut(|_| is_killed || random.bool());
        if !is_killed {
            lose_power(&folder.path().join("v.state"));
        }
        model.killed();
        let volume = open(folder.path(), left);
        model.read_all(&volume, &format!("seed {seed}, killed: {is_killed}"));
        model.write(&volume);
        assert!(model.commit(&volume), "seed {seed}: a start begins anew");
        volume.abandon();
    }
    assert!(cleaned > 0 && refused > 0, "{cleaned} segments cleaned, {refused} volumes made no commit more");
}

#[test]
fn a_sync_that_failed_stays_failed() {
    let folder = tempfile::tempdir().unwrap();
    let (device, _) = device(folder.path());
    let open = || open(folder.path(), Arc::clone(&device));
    let volume = open();
    let mut model = Model::new(9, Engine::Plain);
    model.write(&volume);
    assert!(model.commit(&volume));
    device.set_faults(Faults { seed: 1, chances: vec![(Fault::Eio, 3_000)], crash_after_writes: None });
    while device.syncs_failed() == 0 {
        model.write(&volume);
        model.commit(&volume);
    }
    device.set_faults(Faults::default());
    let commits = volume.stats().commits;
    for _ in 0..20 {
        model.step(&volume, "after a sync that failed");
        assert!(!model.commit(&volume), "what that sync was for may be gone");
    }
    assert_eq!(volume.stats().commits, commits);
    model.read_all(&volume, "after a sync that failed");
    // No segment becomes free any more: writes are refused when there is none, and at once.
    let begun = Instant::now();
    while volume.write(&mut model.io, 0, &content(0, u64::MAX)).is_ok() {}
    model.changed(0..1, u64::MAX, false);
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    model.read_all(&volume, "after a write that was refused");
    assert!(volume.close().is_err(), "what that sync was for may be gone");
    // The next start syncs everything again, and shows what is there.
    model.killed();
    let volume = open();
    model.read_all(&volume, "opened after a sync that failed");
    model.write(&volume);
    assert!(model.commit(&volume));
}
