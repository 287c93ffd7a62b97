//! Recovery after a stop, a kill, a loss of power and faults of the device: everything served is the newest version,
//! and every complete segment behind the last hole is served.

mod framing;

use framing::golden::{fix_boot_id, lose_power};
use framing::random::Random;
use framing::{Store, intact, options};
use granary_cache::framing::{Log, has_summary, record_bytes_max};
use granary_log::device::{Device, Fault, Faults, FaultyDevice, FileDevice, MemoryDevice};
use granary_log::{Engine, Geometry, Io, Options};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

const KEYS: u64 = 200;

/// With summaries; without, in small segments and in single blocks.
fn geometries() -> [Geometry; 3] {
    [
        Geometry::new(16 * 16 * 512, 16 * 512, 512).unwrap(),
        Geometry::new(32 * 4 * 512, 4 * 512, 512).unwrap(),
        Geometry::new(64 * 4096, 4096, 4096).unwrap(),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Clean,
    Kill,
    PowerLoss,
}

/// The last change of each key: its version, or `None` if it was deleted.
#[derive(Default)]
struct Model {
    newest: HashMap<u64, Option<u64>>,
    version: u64,
}

impl Model {
    fn change(&mut self, store: &Store, random: &mut Random) {
        let key = random.below(KEYS);
        self.version += 1;
        let deletes = random.below(5) == 0;
        let len = if random.below(12) == 0 { random.below(1_500) } else { random.below(120) };
        let len = (len as usize).min(record_bytes_max(store.log.geometry()));
        if store.append(key, deletes, self.version, len) {
            self.newest.insert(key, (!deletes).then_some(self.version));
        }
    }

    /// Returns how many keys are found, and checks their versions.
    fn check(&self, store: &Store, io: &mut Io, what: &str) -> usize {
        let found = (0..KEYS).filter_map(|key| Some((key, store.get(io, key)?)));
        found
            .map(|(key, version)| {
                let newest = self.newest.get(&key).copied().flatten();
                assert_eq!(Some(version), newest, "{what}: key {key}");
            })
            .count()
    }
}

fn end(store: Store, end: End, options: &Options) {
    match end {
        End::Clean => store.stop(),
        End::Kill => store.abandon(),
        End::PowerLoss => {
            store.abandon();
            lose_power(&options.state_path.with_extension("state"));
        }
    }
}

fn through_stops(seed: u64, geometry: Geometry, folder: &Path, device: impl Fn() -> Option<Box<dyn Device>>) {
    let options = options(folder, geometry);
    let mut random = Random(seed);
    let (mut model, mut store) = (Model::default(), Store::open(device(), &options));
    let engines = [Engine::Ring, Engine::Pool, Engine::Plain];
    for round in 0..12 {
        let mut io = Io::with_engine(engines[round % 3]);
        for _ in 0..random.below(400) {
            model.change(&store, &mut random);
        }
        let flushed = random.below(2) == 0;
        if flushed {
            let _ = store.log.flush();
        }
        let ending = [End::Clean, End::Kill, End::Kill, End::PowerLoss][random.below(4) as usize];
        let what = format!("seed {seed}, {geometry:?}, round {round}, {ending:?}");
        model.check(&store, &mut io, &what);
        let found: Vec<(u64, u64)> =
            (0..KEYS).filter_map(|key| store.sequence(key).map(|sequence| (key, sequence))).collect();
        let (head, instance) = (store.log.head(), store.log.instance());
        end(store, ending, &options);
        store = Store::open(device(), &options);
        let after = model.check(&store, &mut io, &what);
        if ending == End::PowerLoss {
            assert_eq!(after, 0, "{what}");
            assert_ne!(store.log.instance(), instance, "{what}");
            model = Model { version: model.version, ..Model::default() };
            continue;
        }
        assert_eq!(store.log.instance(), instance, "{what}");
        if ending == End::Clean || flushed {
            // The new process has emptied a few slots ahead of its head.
            let emptied = store.log.head() + (geometry.segments() / 16).max(1);
            for (key, sequence) in found.iter().filter(|found| found.1 + geometry.segments() > emptied) {
                assert!(store.get(&mut io, *key).is_some(), "{what}: key {key} of segment {sequence}");
            }
            assert!(store.log.head() >= head, "{what}: sequence numbers go on");
        }
    }
    end(store, End::Clean, &options);
}

#[test]
fn stops_kills_and_losses_of_power_in_memory() {
    for seed in 0..8 {
        for geometry in geometries() {
            let folder = tempfile::tempdir().unwrap();
            let memory = Arc::new(MemoryDevice::new(geometry.file_bytes()));
            through_stops(seed, geometry, folder.path(), || Some(Box::new(Arc::clone(&memory))));
        }
    }
}

#[test]
fn stops_kills_and_losses_of_power_on_a_file() {
    for (seed, geometry) in (100..).zip(geometries()) {
        let folder = tempfile::tempdir().unwrap();
        through_stops(seed, geometry, folder.path(), || None);
    }
}

/// The journal outlives its segments. Entries for segments that the ring has passed must not void later records.
#[test]
fn a_kill_loses_nothing_that_is_on_the_device() {
    for geometry in geometries() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), geometry);
        let store = Store::open(None, &options);
        for version in 0..3 * geometry.segments() {
            assert!(store.append(version % 5, false, version, 100));
            let _ = store.log.flush();
        }
        store.abandon();
        let (log, recovered) = Log::open(framing::framing(), &options).unwrap();
        assert!(recovered.lost.is_empty(), "{geometry:?}: {:?}", recovered.lost);
        assert!(recovered.segments.len() as u64 >= geometry.segments() - 1);
        drop(log);
    }
}

/// A machine without boot ids: every kill counts as a loss of power.
#[test]
fn without_a_boot_id_a_kill_costs_the_content() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), geometries()[0]);
    let state = options.state_path.with_extension("state");
    let store = Store::open(None, &options);
    assert!(store.append(1, false, 1, 100));
    let _ = store.log.flush();
    store.abandon();
    framing::golden::change_state(&state, |bytes| bytes[64..80].fill(0));
    let store = Store::open(None, &options);
    assert_eq!(store.get(&mut Io::new(), 1), None);
    store.abandon();
    let _ = fix_boot_id(&state);
}

/// A missing segment costs everything older, which it may have deleted.
#[test]
fn nothing_older_than_a_missing_segment_is_served() {
    for geometry in geometries() {
        for missing in 1..=6 {
            let folder = tempfile::tempdir().unwrap();
            let options = options(folder.path(), geometry);
            let store = Store::open(None, &options);
            for key in 1..=6 {
                assert!(store.append(key, false, key, 100));
                let _ = store.log.flush();
            }
            store.stop();
            let device = FileDevice::open(&options.path, geometry.file_bytes()).unwrap();
            let zeros = granary_log::AlignedBuffer::zeroed(geometry.segment_bytes() as usize);
            device.write_at(geometry.offset(geometry.first_block(missing)), &[&zeros]).unwrap();
            drop(device);
            let store = Store::open(None, &options);
            let mut io = Io::new();
            let found: Vec<u64> = (1..=6).filter(|key| store.get(&mut io, *key) == Some(*key)).collect();
            assert_eq!(found, Vec::from_iter(missing + 1..=6), "{geometry:?}: segment {missing} is gone");
            store.stop();
        }
    }
}

/// Some runs have one kind of fault, others all; some lose every write from one on.
fn faults(random: &mut Random, kind: Option<Fault>, writes: u64) -> Faults {
    let kinds: Vec<Fault> = Fault::ALL.into_iter().filter(|k| kind.is_none_or(|kind| kind == *k)).collect();
    let most = if kind.is_some() { 8_000 } else { 1_500 };
    let crash = kind.is_none() && random.below(3) == 0;
    Faults {
        seed: random.next(),
        chances: kinds.into_iter().map(|kind| (kind, 1 + random.below(most) as u32)).collect(),
        crash_after_writes: crash.then(|| writes + random.below(60)),
    }
}

fn with_faults(seed: u64, kind: Option<Fault>, geometry: Geometry) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), geometry);
    let mut random = Random(seed);
    let memory = Arc::new(MemoryDevice::new(geometry.file_bytes()));
    let first = faults(&mut random, kind, 0);
    let device = Arc::new(FaultyDevice::new(Arc::clone(&memory), geometry.block_size(), first));
    let open = || Store::open(Some(Box::new(Arc::clone(&device))), &options);
    let (mut model, mut store) = (Model::default(), open());
    let mut io = Io::with_engine(Engine::Plain);
    for round in 0..8 {
        let what = format!("seed {seed}, {kind:?}, {geometry:?}, round {round}");
        for _ in 0..random.below(300) {
            model.change(&store, &mut random);
            if random.below(50) == 0 {
                model.check(&store, &mut io, &what);
            }
        }
        if random.below(2) == 0 {
            let _ = store.log.flush();
        }
        let instance = store.log.instance();
        if random.below(3) == 0 {
            // If the device fails, it counts as a kill.
            let _ = store.try_stop();
        } else {
            store.abandon();
        }
        // Half of the starts meet no faults.
        let calm = random.below(2) == 0;
        let next = if calm { Faults::default() } else { faults(&mut random, kind, device.writes()) };
        device.set_faults(next);
        if calm {
            let whole = intact(&memory, &geometry, instance);
            let (log, recovered) =
                Log::open_on(framing::framing(), Box::new(Arc::clone(&device)), &options).unwrap();
            assert_eq!(log.instance(), instance, "{what}");
            let served: Vec<u64> = recovered.segments.iter().map(|segment| segment.sequence).collect();
            // A summary can be valid though its data is not; reads find out.
            let vouched = |sequence| has_summary(&geometry) || whole.contains(sequence);
            assert!(served.iter().all(vouched), "{what}: {served:?} of {whole:?}");
            // From the newest segment back, as far as all are complete and the ring reaches.
            let oldest = (log.head() + 1).saturating_sub(geometry.segments()).max(1);
            let must = (oldest..=log.head()).rev().take_while(|sequence| whole.contains(sequence));
            for sequence in must {
                assert!(served.contains(&sequence), "{what}: {sequence} is whole, {served:?} is served");
            }
        }
        // This start follows a kill in the middle of the last one.
        store = open();
        model.check(&store, &mut io, &what);
        let next = faults(&mut random, kind, device.writes());
        device.set_faults(next);
    }
    store.abandon();
    device.struck()
}

#[test]
fn a_device_that_fails_in_one_way() {
    let seeds = std::env::var("GRANARY_LOG_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for kind in Fault::ALL {
        let mut struck = 0;
        for seed in 0..seeds {
            for geometry in geometries() {
                struck += with_faults(seed, Some(kind), geometry);
            }
        }
        assert!(struck > 0, "{kind:?} never struck");
    }
}

#[test]
fn a_device_that_fails_in_every_way() {
    let seeds = std::env::var("GRANARY_LOG_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    for seed in 1_000..1_000 + seeds {
        for geometry in geometries() {
            with_faults(seed, None, geometry);
        }
    }
}

/// The same seed strikes the same way.
#[test]
fn faults_are_repeatable() {
    let run = || {
        let device = FaultyDevice::new(
            MemoryDevice::new(1 << 16),
            512,
            Faults {
                seed: 5,
                chances: Fault::ALL.map(|kind| (kind, 9_000)).into(),
                crash_after_writes: Some(90),
            },
        );
        let mut results = Vec::new();
        for i in 0..100u64 {
            results.push(device.write_at(i % 16 * 4096, &[&[i as u8; 4096]]).map_err(|e| e.to_string()));
            let mut bytes = [0; 4096];
            results.push(device.read_at(i % 16 * 4096, &mut bytes).map_err(|e| e.to_string()));
            results.push(Err(format!("{:?}", &bytes[..])));
        }
        (results, device.struck(), device.writes())
    };
    assert!(run() == run());
}
