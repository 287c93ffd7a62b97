//! A cache that is served after losses of power: whatever they take of data and journal, a lookup returns only a value
//! that was once put and was not changed before the last sync of changes.

mod common;
#[path = "../../log/tests/common/golden.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod golden;
#[path = "../../log/tests/common/journal_files.rs"]
mod journal_files;

use common::{LOOK_ALIKES, get, options, put};
use fastrand::Rng;
use granary_cache::admission::Admission;
use granary_cache::{Cache, Options, PowerLoss, testing};
use granary_log::device::VolatileDevice;
use journal_files::JournalFiles;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

const KEYS: u64 = 4_000;

/// The newest change of a key: a version that was put, or the number of a deletion.
type Changes = HashMap<u64, (u64, bool)>;

struct Model {
    random: Rng,
    version: u64,
    newest: Changes,
    /// As of the last sync of changes.
    synced: Changes,
}

impl Model {
    /// Any key; look-alikes are drawn often.
    fn key(&mut self) -> u64 {
        match self.random.u8(..8) {
            0 => [LOOK_ALIKES[0].0, LOOK_ALIKES[0].1, LOOK_ALIKES[1].0, LOOK_ALIKES[1].1]
                [self.random.usize(..4)],
            _ => self.random.u64(..KEYS),
        }
    }

    fn keys() -> impl Iterator<Item = u64> {
        (0..KEYS).chain(LOOK_ALIKES.into_iter().flat_map(|(a, b)| [a, b]))
    }

    fn change(&mut self, cache: &Cache) {
        let key = self.key();
        self.version += 1;
        let deletes = self.random.u8(..5) == 0;
        match deletes {
            true => cache.delete_many(&[cache.key(&key.to_le_bytes())]),
            false => put(cache, key, self.version),
        }
        self.newest.insert(key, (self.version, deletes));
    }

    fn check(&self, cache: &Cache, what: &str) -> usize {
        let found = Self::keys().filter_map(|key| Some((key, get(cache, key)?)));
        { found }
            .map(|(key, version)| {
                assert_eq!(self.newest.get(&key), Some(&(version, false)), "{what}: key {key}");
            })
            .count()
    }

    /// Compares after a loss of power. Versions that are found are durable.
    fn check_after_loss(&mut self, cache: &Cache, what: &str) -> usize {
        self.newest = self.synced.clone();
        let mut found = 0;
        for key in Self::keys() {
            let Some(version) = get(cache, key) else { continue };
            found += 1;
            if let Some((synced, deletes)) = self.synced.get(&key).copied() {
                let is_newer = version > synced || version == synced && !deletes;
                assert!(is_newer, "{what}: key {key} has version {version}, {synced} was synced ({deletes})");
            }
            self.newest.insert(key, (version, false));
        }
        self.synced.clone_from(&self.newest);
        found
    }
}

fn cache_options(folder: &Path, admission: &Admission, memory_bytes: u64) -> Options {
    let mut options = options(folder, 64, 16, memory_bytes);
    let flash = options.flash.as_mut().expect("on flash");
    flash.power_loss = PowerLoss::ServeOlder;
    flash.admission = admission.clone();
    options
}

/// The keys that were there before losses of power, and those that were found after them.
fn through_losses(seed: u64, admission: &Admission, memory_bytes: u64) -> (usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let options = cache_options(folder.path(), admission, memory_bytes);
    let state_path = folder.path().join("c");
    let mut device = Arc::new(VolatileDevice::new(64 * 16 * 512, 512));
    let open =
        |device: &Arc<VolatileDevice>| Cache::open_on(Box::new(Arc::clone(device)), options.clone()).unwrap();
    let random = Rng::with_seed(seed);
    let mut model = Model { random, version: 0, newest: Changes::new(), synced: Changes::new() };
    let (mut before, mut after) = (0, 0);
    let mut cache = open(&device);
    for round in 0..12 {
        let what = format!("seed {seed}, {admission:?}, round {round}");
        let mut journal = JournalFiles::of(&state_path);
        for _ in 0..model.random.u64(..2_000) {
            model.change(&cache);
            if model.random.u8(..100) == 0 {
                cache.sync_changes().unwrap();
                model.synced.clone_from(&model.newest);
                journal.note_synced();
            }
        }
        if model.random.bool() {
            cache.flush().unwrap();
        }
        let there = model.check(&cache, &what);
        match model.random.u8(..4) {
            0 => cache.close().unwrap(),
            1 => testing::abandon(cache),
            _ => {
                testing::abandon(cache);
                device = Arc::new(device.after_power_cut(|_| model.random.bool()));
                journal.lose_power(|n| model.random.u64(..n));
                golden::lose_power(&state_path.with_extension("state"));
                cache = open(&device);
                before += there;
                after += model.check_after_loss(&cache, &what);
                continue;
            }
        }
        cache = open(&device);
        model.check(&cache, &what);
    }
    testing::abandon(cache);
    (before, after)
}

#[test]
fn what_was_synced_is_never_undone_and_the_rest_is_served() {
    let seeds = std::env::var("GRANARY_MODEL_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let (mut before, mut after) = (0, 0);
    for seed in 0..seeds {
        let (there, found) = through_losses(seed, &Admission::All, 16 << 10);
        (before, after) = (before + there, after + found);
        // Entries in RAM only are lost, whatever the policy.
        through_losses(1_000 + seed, &Admission::Probability(1.0), 64 << 10);
        through_losses(2_000 + seed, &Admission::Reuse, 64 << 10);
    }
    assert!(after * 2 > before, "{after} of {before} keys are found after losses of power");
}

#[test]
fn a_cache_that_was_opened_otherwise_before_starts_empty() {
    let folder = tempfile::tempdir().unwrap();
    let serving = cache_options(folder.path(), &Admission::All, 0);
    let mut emptying = serving.clone();
    emptying.flash.as_mut().expect("on flash").power_loss = PowerLoss::StartEmpty;
    for (first, second) in [(&serving, &emptying), (&emptying, &serving)] {
        let cache = Cache::open(first.clone()).unwrap();
        put(&cache, 1, 7);
        cache.close().unwrap();
        let cache = Cache::open(first.clone()).unwrap();
        assert_eq!(get(&cache, 1), Some(7));
        cache.close().unwrap();
        let cache = Cache::open(second.clone()).unwrap();
        assert_eq!(get(&cache, 1), None);
        cache.close().unwrap();
    }
}
