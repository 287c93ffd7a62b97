//! A loss of power that takes any part of unsynced data and journal: every version served afterwards was once the
//! newest, and was not changed before the last sync of the journal.

mod framing;
#[path = "../../log/tests/common/journal_files.rs"]
mod journal_files;

use framing::golden::lose_power;
use framing::random::Random;
use framing::{Store, options};
use granary_cache::framing::record_bytes_max;
use granary_log::device::VolatileDevice;
use granary_log::{CrashPolicy, Engine, Geometry, Io, Options};
use journal_files::JournalFiles;
use std::collections::HashMap;
use std::sync::Arc;

const KEYS: u64 = 200;

/// With summaries; without, in small segments and in single blocks.
fn geometries() -> [Geometry; 3] {
    [
        Geometry::new(64 * 16 * 512, 16 * 512, 512).unwrap(),
        Geometry::new(64 * 4 * 512, 4 * 512, 512).unwrap(),
        Geometry::new(64 * 4096, 4096, 4096).unwrap(),
    ]
}

/// Changes are numbered; the numbers are versions.
#[derive(Default)]
struct Model {
    version: u64,
    /// The newest change of each key, and whether it deletes.
    newest: HashMap<u64, (u64, bool)>,
    /// As of the last sync: nothing older may be served.
    synced: HashMap<u64, (u64, bool)>,
}

impl Model {
    fn change(&mut self, store: &Store, random: &mut Random) {
        let key = random.below(KEYS);
        self.version += 1;
        let deletes = random.below(5) == 0;
        let len = if random.below(12) == 0 { random.below(1_500) } else { random.below(120) };
        let len = (len as usize).min(record_bytes_max(store.log.geometry()));
        if store.append(key, deletes, self.version, len) {
            self.newest.insert(key, (self.version, deletes));
        }
    }

    /// Returns how many keys are found after a loss of power. Versions that are found are durable.
    fn check_after_loss(&mut self, store: &Store, io: &mut Io, what: &str) -> usize {
        let mut count = 0;
        self.newest = self.synced.clone();
        for key in 0..KEYS {
            let Some(version) = store.get(io, key) else { continue };
            count += 1;
            if let Some((synced, deletes)) = self.synced.get(&key).copied() {
                let is_newer = version > synced || version == synced && !deletes;
                assert!(is_newer, "{what}: key {key} has version {version}, {synced} was synced ({deletes})");
            }
            self.newest.insert(key, (version, false));
        }
        self.synced.clone_from(&self.newest);
        count
    }

    /// Without a loss of power only newest versions are served.
    fn check(&self, store: &Store, io: &mut Io, what: &str) {
        for key in 0..KEYS {
            let Some(version) = store.get(io, key) else { continue };
            assert_eq!(self.newest.get(&key), Some(&(version, false)), "{what}: key {key}");
        }
    }
}

/// Numbers of keys, summed over all losses of power.
#[derive(Default)]
struct Counts {
    before: usize,
    after: usize,
    /// After one more start.
    later: usize,
}

fn through_losses(seed: u64, geometry: Geometry, changes: u64, counts: &mut Counts) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { crash_policy: CrashPolicy::ServeOlder, ..options(folder.path(), geometry) };
    let mut random = Random(seed);
    let mut device = Arc::new(VolatileDevice::new(geometry.file_bytes(), 512));
    let open = |device: &Arc<VolatileDevice>| Store::open(Some(Box::new(Arc::clone(device))), &options);
    let (mut model, mut store) = (Model::default(), open(&device));
    let mut io = Io::with_engine(Engine::Plain);
    for round in 0..16 {
        let what = format!("seed {seed}, {geometry:?}, round {round}");
        let mut journal = JournalFiles::of(&options.state_path);
        for _ in 0..random.below(changes) {
            model.change(&store, &mut random);
            if random.below(changes / 8) == 0 {
                store.log.sync_journal().unwrap();
                model.synced.clone_from(&model.newest);
                journal.note_synced();
            }
        }
        if random.below(2) == 0 {
            let _ = store.log.flush();
        }
        model.check(&store, &mut io, &what);
        let live = (0..KEYS).filter(|key| store.get(&mut io, *key).is_some()).count();
        match random.below(4) {
            0 => store.stop(),
            1 => store.abandon(),
            _ => {
                store.abandon();
                device = Arc::new(device.after_power_cut(|_| random.below(2) == 0));
                journal.lose_power(|n| random.below(n));
                lose_power(&options.state_path.with_extension("state"));
                store = open(&device);
                counts.before += live;
                counts.after += model.check_after_loss(&store, &mut io, &what);
                store.abandon();
                store = open(&device);
                model.check(&store, &mut io, &what);
                counts.later += (0..KEYS).filter(|key| store.get(&mut io, *key).is_some()).count();
                continue;
            }
        }
        store = open(&device);
        model.check(&store, &mut io, &what);
    }
    store.abandon();
}

#[test]
fn what_was_synced_is_never_undone_and_the_rest_is_served() {
    let seeds = std::env::var("GRANARY_LOG_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let mut counts = Counts::default();
    for seed in 0..seeds {
        for geometry in geometries() {
            through_losses(seed, geometry, 1_600, &mut counts);
        }
    }
    let Counts { before, after, later } = counts;
    assert!(after * 2 > before, "{after} of {before} keys are found after losses of power");
    assert!(later * 10 > after * 9, "{later} of {after} keys are found at the next start");
}

/// So many changes that the files of the journal take turns.
#[test]
fn a_journal_that_takes_turns_keeps_what_was_synced() {
    for seed in 500..502 {
        through_losses(seed, geometries()[0], 200_000, &mut Counts::default());
    }
}
