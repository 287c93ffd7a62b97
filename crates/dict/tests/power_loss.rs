//! A machine that loses power: what a dictionary on SSD had cached is there, and what was forgotten or renewed stays
//! so.

mod common;
#[path = "../../log/tests/common/golden.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod golden;

use common::*;
use granary_dict::{Dictionary, Environment};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

const KEYS: u64 = 5_000;

fn dictionary(fake: &Arc<Fake>, folder: &Path, clock: &Environment) -> Dictionary {
    let sql = "CREATE DICTIONARY d (id UInt64, v UInt64 DEFAULT 77) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
               LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 1048576 MEMORY_CACHE_SIZE 0)) LIFETIME(MIN 100 MAX 200)";
    fake.open(sql, &Environment { clock: clock.clock.clone(), ..Environment::new(folder) })
}

fn get(dictionary: &Dictionary, keys: impl IntoIterator<Item = u64>) -> Vec<u64> {
    values(&dictionary.get(&[0], &u64s(keys)).unwrap().columns[0])
}

/// Looks up all keys until they are on flash, but for those of the segment that is not full.
fn get_all_from_flash(dictionary: &Dictionary) {
    until("most is on flash", || {
        let earlier = dictionary.status().hits_flash;
        get(dictionary, 1..=KEYS);
        dictionary.status().hits_flash > earlier + KEYS - KEYS / 16
    });
}

/// A folder with the files as the kernel has them now, under another boot id.
fn after_power_loss(folder: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().unwrap();
    let (from, to) = (folder.join("user_files"), left.path().join("user_files"));
    std::fs::create_dir(&to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    golden::lose_power(&to.join("d.state"));
    left
}

#[test]
fn what_was_cached_is_there_and_what_was_changed_stays_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let before = dictionary(&fake, folder.path(), &environment);
    get_all_from_flash(&before);
    fake.version.store(5, SeqCst);
    before.invalidate(&u64s([11, 12])).unwrap();
    assert_eq!(before.refresh(&u64s([21, 22])).unwrap(), 2);
    let left = after_power_loss(folder.path());
    let after = dictionary(&fake, left.path(), &environment);
    let asked = fake.keys();
    fake.version.store(7, SeqCst);
    for (key, value) in (1..=KEYS).zip(get(&after, 1..=KEYS)) {
        let expected = match key {
            11 | 12 => vec![7],
            21 | 22 => vec![5, 7],
            _ if key % 10 == 0 => continue,
            _ => vec![0, 7],
        };
        assert!(expected.contains(&(value - key * 10)), "key {key} has {value}");
    }
    let asked = fake.keys() - asked;
    assert!(asked < KEYS / 10, "{asked} of {KEYS} keys were asked for anew");
    // Each row has the lifetime that it had.
    clock.fetch_add(201, SeqCst);
    assert_eq!(get(&after, [1]), [17]);
    after.remove();
}

#[test]
fn a_dictionary_that_was_reloaded_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, _) = manual_environment(folder.path());
    let fake = Arc::new(Fake::default());
    let before = dictionary(&fake, folder.path(), &environment);
    get_all_from_flash(&before);
    let elements = || {
        let left = after_power_loss(folder.path());
        dictionary(&fake, left.path(), &environment).status().element_count
    };
    assert!(elements() > KEYS / 2);
    before.reload().unwrap();
    assert_eq!(elements(), 0);
}
