//! Power cuts at every write of the device, with every subset of the unsynced writes lost: the content afterwards is
//! what a disk may show.

#[path = "../../log/tests/common/gated.rs"]
mod gated;
#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;
#[path = "common/wait.rs"]
mod wait;

use gated::GatedDevice;
use golden::lose_power;
use granary_log::device::{Device, VolatileDevice};
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Config, Io, Volume, WaitPolicy};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wait::wait_until;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 8;

/// The ranges of operations: (first block, blocks). They overlap.
const RANGES: [(u64, u64); 3] = [(0, 1), (0, 3), (2, 2)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    WriteThrough,
    Trim,
    Zero,
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: Kind,
    range: (u64, u64),
}

fn all_operations() -> Vec<Operation> {
    let kinds = [Kind::Write, Kind::WriteThrough, Kind::Trim, Kind::Zero];
    let ranged = kinds.into_iter().flat_map(|kind| RANGES.map(|range| Operation { kind, range }));
    ranged.chain([Operation { kind: Kind::Flush, range: (0, 0) }]).collect()
}

fn config() -> Config {
    Config {
        size: BLOCKS * BLOCK,
        block_size: BLOCK,
        segment_bytes: 16 * BLOCK,
        ..Config::new(BLOCKS * BLOCK)
    }
}

fn open(folder: &Path, device: &Arc<VolatileDevice>) -> Volume {
    Volume::open_on(folder, "v", &config(), Box::new(Arc::clone(device))).unwrap()
}

/// The content of a block: the number of the operation that wrote it, 0 for zeroes.
fn content(volume: &Volume, io: &mut Io, what: &str) -> Vec<u8> {
    let mut bytes = vec![0; (BLOCKS * BLOCK) as usize];
    volume.read(io, 0, &mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    bytes
        .chunks_exact(BLOCK as usize)
        .map(|block| {
            assert!(block.iter().all(|byte| *byte == block[0]), "{what}: a block is torn");
            block[0]
        })
        .collect()
}

/// The effects of operations, in the order of time.
#[derive(Default)]
struct History {
    /// For each block: (operation, content), from its first content on.
    versions: Vec<Vec<(usize, u8)>>,
    /// For each operation: the number of operations of the device before it was answered.
    answered: Vec<usize>,
    operations: Vec<Operation>,
}

impl History {
    fn new() -> Self {
        Self { versions: vec![vec![(0, 0)]; BLOCKS as usize], ..Self::default() }
    }

    fn run(&mut self, volume: &Volume, io: &mut Io, device: &VolatileDevice, operation: Operation) {
        self.operations.push(operation);
        let number = self.operations.len();
        let (first, blocks) = operation.range;
        let (offset, len) = (first * BLOCK, blocks * BLOCK);
        let written = match operation.kind {
            Kind::Write | Kind::WriteThrough => {
                volume.write(io, offset, &vec![number as u8; len as usize]).unwrap();
                number as u8
            }
            Kind::Trim => {
                volume.trim(offset, len).unwrap();
                0
            }
            Kind::Zero => {
                volume.write_zeroes(io, offset, len).unwrap();
                0
            }
            Kind::Flush => 0,
        };
        if matches!(operation.kind, Kind::WriteThrough | Kind::Flush) {
            volume.commit().unwrap();
        }
        for block in first..first + blocks {
            self.versions[block as usize].push((number, written));
        }
        self.answered.push(device.recent());
    }

    /// Checks the content `found` after a crash, when the device had done `crash` operations.
    fn check(&self, found: &[u8], crash: usize, what: &str) {
        // Operations up to this one are durable.
        let durable = (1..=self.operations.len())
            .filter(|number| {
                let commits = matches!(self.operations[number - 1].kind, Kind::WriteThrough | Kind::Flush);
                commits && self.answered[number - 1] <= crash
            })
            .max()
            .unwrap_or(0);
        for (block, found) in found.iter().enumerate() {
            let versions = &self.versions[block];
            let oldest = versions.iter().rposition(|(number, _)| *number <= durable).unwrap();
            let allowed: Vec<u8> = versions[oldest..].iter().map(|(_, content)| *content).collect();
            assert!(allowed.contains(found), "{what}: block {block} is {found}, not one of {allowed:?}");
        }
    }
}

/// A folder in RAM, if possible: the files beside the device are not tested here.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The files beside the device, for a start that changes them.
fn copy_of(of: &Path) -> tempfile::TempDir {
    let copy = folder();
    for file in std::fs::read_dir(of).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

/// Runs operations, then crashes at every write, with every subset of the unsynced writes.
fn crash_everywhere(operations: &[Operation], rounds: u32) -> u64 {
    let folder = folder();
    let device = Arc::new(VolatileDevice::new(config().geometry().unwrap().file_bytes(), BLOCK as usize));
    device.record();
    let mut io = Io::new();
    let volume = open(folder.path(), &device);
    let mut history = History::new();
    operations.iter().for_each(|operation| history.run(&volume, &mut io, &device, *operation));
    volume.abandon();
    let mut crashes = 0;
    for crash in 0..=device.recent() {
        let unsynced = device.unsynced_at(crash);
        assert!(unsynced <= 16, "so few operations write little: {unsynced}");
        for subset in 0u64..1 << unsynced {
            let what = format!("{operations:?}, crash at {crash}, subset {subset:b}");
            let left = Arc::new(device.after_power_cut_at(crash, |unit| subset >> unit & 1 == 1));
            // Content found by one start is found by the next ones.
            let mut before: Option<Vec<u8>> = None;
            let folder = copy_of(folder.path());
            for round in 0..rounds {
                // The same crash, with a new boot id or without.
                if (crash as u64 + subset + u64::from(round)).is_multiple_of(2) {
                    lose_power(&folder.path().join("v.state"));
                }
                let volume = open(folder.path(), &left);
                let found = content(&volume, &mut io, &what);
                history.check(&found, crash, &what);
                assert!(
                    before.is_none_or(|before| before == found),
                    "{what}: another start shows something else"
                );
                before = Some(found);
                volume.abandon();
            }
            crashes += 1;
        }
    }
    crashes
}

/// Every sequence of at most `GRANARY_VOLUME_SEQUENCES` (2) operations.
#[test]
fn short_sequences_survive_every_power_cut() {
    let longest: usize = std::env::var("GRANARY_VOLUME_SEQUENCES").map_or(2, |n| n.parse().unwrap());
    let all = all_operations();
    let mut sequences: Vec<Vec<Operation>> = vec![Vec::new()];
    let mut crashes = 0;
    for _ in 0..longest {
        sequences = sequences
            .iter()
            .flat_map(|before| all.iter().map(move |one| [&before[..], &[*one]].concat()))
            .collect();
        crashes += sequences.iter().map(|operations| crash_everywhere(operations, 1)).sum::<u64>();
    }
    println!("{crashes} power cuts");
    assert!(crashes > 1000);
}

/// A second start, and what a third finds after it.
#[test]
fn what_a_start_shows_the_next_one_shows() {
    let all = all_operations();
    for one in all.iter().step_by(2) {
        for other in all.iter().skip(1).step_by(3) {
            crash_everywhere(&[*one, *other], 2);
        }
    }
}

/// Changes during the sync of a commit: it neither frees the slots of segments that they empty, nor counts their own
/// segments as synced.
#[test]
fn a_commit_vouches_for_nothing_that_came_during_its_sync() {
    const BLOCKS: u64 = 256;
    let config = Config { size: BLOCKS * BLOCK, ..config() };
    let device = VolatileDevice::new(config.geometry().unwrap().file_bytes(), BLOCK as usize);
    let (folder, device, mut io) = (folder(), GatedDevice::over(device), Io::new());
    let open = |folder: &Path, device: Box<dyn Device>| {
        Volume::open_on(folder, "v", &config, device).unwrap_or_else(|error| panic!("{error}"))
    };
    // All segments are in the map: their slots may be used again once they are empty.
    let volume = open(folder.path(), Box::new(device.clone()));
    volume.write(&mut io, 0, &[1; (BLOCKS * BLOCK) as usize]).unwrap();
    volume.close().unwrap();
    let volume = open(folder.path(), Box::new(device.clone()));
    let used = volume.stats().segments - volume.stats().segments_free;
    std::thread::scope(|scope| {
        let held = device.hold_syncs();
        volume.write(&mut io, 0, &[2; BLOCK as usize]).unwrap();
        let commit = scope.spawn(|| volume.commit());
        held.wait_for_sync();
        volume.trim(BLOCK, (BLOCKS - 1) * BLOCK).unwrap();
        // A part of the free slots.
        let mut blocks = (1..BLOCKS).cycle();
        let mut write = |version: u8| {
            let (offset, patience) =
                (blocks.next().unwrap() * BLOCK, WaitPolicy::non_blocking_after(Duration::from_millis(5)));
            volume.try_write(&mut io, offset, &[version; BLOCK as usize], patience)
        };
        while volume.stats().segments_free > RESERVED_SEGMENTS + 3 {
            write(3).unwrap();
        }
        wait_until("the cleaner finds the empty segments", || volume.segments_emptied() >= used);
        held.end_sync();
        commit.join().unwrap().unwrap();
        let during = device.inner().recent();
        // Until there is no room; more than there is room for if slots were freed.
        let refused = (0..BLOCKS).find_map(|_| write(4).err());
        assert!(refused.is_some(), "no slot is free before the next sync");
        let mut random = fastrand::Rng::with_seed(1);
        for cut in 0..20 {
            let left = device.inner().after_power_cut(|unit| match cut {
                0 => false,
                1 => unit >= during,
                _ => random.bool(),
            });
            let copy = copy_of(folder.path());
            lose_power(&copy.path().join("v.state"));
            let volume = open(copy.path(), Box::new(left));
            let mut found = [0; (BLOCKS * BLOCK) as usize];
            volume.read(&mut Io::new(), 0, &mut found).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
            let (first, others) = found.split_at(BLOCK as usize);
            assert!(first.iter().all(|byte| *byte == 2), "cut {cut}: it was committed");
            for (lba, block) in (1..).zip(others.chunks_exact(BLOCK as usize)) {
                let is_one = [1, 0, 3, 4].iter().any(|version| block.iter().all(|byte| byte == version));
                assert!(is_one, "cut {cut}: block {lba} is {:?}", &block[..16]);
            }
            volume.abandon();
        }
    });
    volume.abandon();
}
