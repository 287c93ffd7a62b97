//! Opening a cache: options are checked, and files that are not the cache's own are refused and left as they were.

mod common;

use common::{get, options, put};
use granary_cache::admission::{Admission, Flashield};
use granary_cache::{Cache, Compression, FlashOptions, OpenError, Options};
use std::collections::BTreeMap;
use std::path::Path;

/// The files of a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let named = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    entries.map(named).collect()
}

fn refusal(options: Options) -> String {
    Cache::open(options).expect_err("it is refused").to_string()
}

#[test]
fn a_strangers_file_is_refused_by_its_name_and_left_alone() {
    for name in
        ["c.bin", "c.state", "c.journal.0", "c.journal.1", "c.partition.1.state", "c.partition.1.journal.0"]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), "somebody's letters").unwrap();
        let before = contents(folder.path());
        let mut options = options(folder.path(), 64, 16, 0);
        options.flash.as_mut().unwrap().partitions = 2;
        let said = refusal(options);
        assert!(said.contains(&format!("/{name} is there already, and is no cache of Granary's")), "{said}");
        assert!(contents(folder.path()) == before, "{name}");
    }
}

#[test]
fn a_cache_takes_over_its_own_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 16, 0)).unwrap();
    put(&cache, 1, 1);
    drop(cache);
    assert_eq!(get(&Cache::open(options(folder.path(), 64, 16, 0)).unwrap(), 1), Some(1));
    // Without its state file it cannot be recognised as a cache.
    std::fs::remove_file(folder.path().join("c.state")).unwrap();
    assert!(refusal(options(folder.path(), 64, 16, 0)).contains("/c.bin is there already"));
}

#[test]
fn a_failed_open_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut too_large = options(folder.path(), 64, 16, 0);
    let flash = too_large.flash.as_mut().unwrap();
    flash.file_size = 1 << 52;
    assert!(matches!(Cache::open(too_large), Err(OpenError::Device(_))));
    assert!(contents(folder.path()).is_empty());

    let nowhere = folder.path().join("no/such/folder/c");
    let said = refusal(Options { flash: Some(FlashOptions::new(nowhere, 1 << 20)), ..Options::default() });
    assert!(said.contains("no/such/folder/c"), "{said}");
    assert!(contents(folder.path()).is_empty());

    // A failure after the data file was created.
    let journal = folder.path().join("c.journal.0");
    std::fs::create_dir(&journal).unwrap();
    assert!(matches!(Cache::open(options(folder.path(), 64, 16, 0)), Err(OpenError::State { .. })));
    std::fs::remove_dir(&journal).unwrap();
    assert_eq!(contents(folder.path()).into_keys().collect::<Vec<_>>(), Vec::<String>::new());
}

/// Another cache was made, filled and closed while this one waited for the lock.
#[test]
fn a_failed_open_leaves_what_came_before_it_had_the_lock() {
    assert!((0..20).any(|_| fails_once_it_has_the_lock()), "it waits for the lock and gets it");
}

/// Returns `false` if this thread was held up so long that the open waited in vain.
fn fails_once_it_has_the_lock() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let at = |name: &str| folder.join(name);
    let options = options(&folder, 8, 8, 0);
    let state = std::fs::File::create(at("c.state")).unwrap();
    state.lock().unwrap();
    let opening = std::thread::spawn(|| Cache::open(options).map(drop));
    let are_opened = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
        let opened = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        opened.filter(|path| *path == at("c.state")).count() == 2
    };
    // It opens the file for a moment before it waits for the lock.
    let waits = || {
        (0..50).all(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            are_opened()
        })
    };
    while !waits() && !opening.is_finished() {}
    std::fs::write(at("c.bin"), vec![7; 8 * 8 * 512]).unwrap();
    // It fails after it has taken the lock.
    std::fs::create_dir(at("c.journal.0.new")).unwrap();
    drop(state);
    let error = opening.join().unwrap().unwrap_err();
    if matches!(error, OpenError::InUse { .. }) {
        return false;
    }
    assert!(matches!(error, OpenError::State { .. }), "{error}");
    assert_eq!(std::fs::read(at("c.bin")).unwrap(), vec![7; 8 * 8 * 512]);
    true
}

/// A folder with a cache in two partitions, which has 40 keys.
fn divided(folder: &Path) -> Options {
    let mut options = options(folder, 64, 16, 0);
    options.flash.as_mut().unwrap().partitions = 2;
    let cache = Cache::open(options.clone()).unwrap();
    (0..40).for_each(|key| put(&cache, key, key));
    options
}

#[test]
fn a_failed_open_as_fewer_partitions_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let divided = divided(folder.path());
    let data = std::fs::File::open(folder.path().join("c.bin")).unwrap();
    data.lock().unwrap();
    assert!(matches!(Cache::open(options(folder.path(), 64, 16, 0)), Err(OpenError::InUse { .. })));
    drop(data);
    let cache = Cache::open(divided).unwrap();
    (0..40).for_each(|key| assert_eq!(get(&cache, key), Some(key)));
}

#[test]
fn no_cache_has_the_name_of_anothers_partition() {
    let folder = tempfile::tempdir().unwrap();
    let mut named = divided(folder.path());
    let flash = named.flash.as_mut().unwrap();
    flash.path = folder.path().join("c.partition.1");
    let before = contents(folder.path());
    let said = refusal(named);
    assert!(said.starts_with("path: names that end in .partition.N"), "{said}");
    assert!(contents(folder.path()) == before);
}

#[test]
fn a_second_cache_on_the_same_files_leaves_those_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 16, 0)).unwrap();
    put(&cache, 1, 1);
    let mut elsewhere = options(folder.path(), 64, 16, 0);
    elsewhere.flash.as_mut().unwrap().state_path = Some(folder.path().join("other"));
    assert!(matches!(Cache::open(elsewhere), Err(OpenError::Foreign { .. } | OpenError::InUse { .. })));
    assert!(matches!(Cache::open(options(folder.path(), 64, 16, 0)), Err(OpenError::InUse { .. })));
    drop(cache);
    assert_eq!(
        contents(folder.path()).into_keys().collect::<Vec<_>>(),
        ["c.bin", "c.journal.0", "c.journal.1", "c.state"]
    );
    assert_eq!(get(&Cache::open(options(folder.path(), 64, 16, 0)).unwrap(), 1), Some(1));
}

#[test]
fn options_that_make_no_sense_are_refused_by_their_names() {
    type Change = fn(&mut Options);
    fn flash(options: &mut Options) -> &mut FlashOptions {
        options.flash.as_mut().unwrap()
    }
    let changes: [(&str, Change); 18] = [
        ("admission", |options| flash(options).admission = Admission::Probability(7.0)),
        ("admission", |options| flash(options).admission = Admission::Probability(-0.1)),
        ("admission", |options| flash(options).admission = Admission::Probability(f64::NAN)),
        ("admission", |options| {
            flash(options).admission = Admission::Flashield(Flashield { reads: 0 });
        }),
        ("bytes_per_day", |options| flash(options).bytes_per_day = Some(1 << 30)),
        ("bytes_per_day", |options| {
            (flash(options).admission, flash(options).bytes_per_day) = (Admission::Reuse, Some(0));
        }),
        ("max_stored_keys", |options| flash(options).max_stored_keys = Some(0)),
        ("memory_entries", |options| options.memory_entries = Some(0)),
        ("memory_entries", |options| {
            options.memory_entries = Some(1_000);
            flash(options).admission = Admission::Reuse;
        }),
        ("memory_bytes", |options| (options.flash, options.memory_bytes) = (None, 0)),
        ("path", |options| flash(options).path = "".into()),
        ("path", |options| flash(options).path.push("")),
        ("path", |options| flash(options).path.push("..")),
        ("partitions", |options| flash(options).partitions = 0),
        ("partitions", |options| flash(options).partitions = 3),
        ("block_size", |options| flash(options).block_size = 100),
        ("write_buffer_size", |options| flash(options).write_buffer_size = 700),
        ("file_size", |options| flash(options).file_size = 0),
    ];
    for (option, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path(), 64, 16, 1 << 20);
        change(&mut options);
        let said = refusal(options.clone());
        assert!(said.starts_with(option), "{options:?}: {said}");
        assert!(contents(folder.path()).is_empty() && !Path::new(".bin").exists(), "{option}");
    }
}

#[test]
fn a_file_that_is_no_caches_dictionaries_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let dictionaries = folder.path().join("words.dictionaries");
    let options = Options {
        flash: Some(FlashOptions { memory_folder: None, ..FlashOptions::new(&path, 64 << 20) }),
        compression: Compression::Zstd,
        ..Options::default()
    };
    std::fs::write(&dictionaries, "of words").unwrap();
    assert!(matches!(Cache::open(options.clone()), Err(OpenError::Foreign { path }) if path == dictionaries));
    // Without compression it is none of the cache's files.
    let plain = Options { compression: Compression::None, ..options.clone() };
    drop(Cache::open(plain).unwrap());
    options.flash.as_ref().unwrap().remove_files().unwrap();
    assert_eq!(std::fs::read(&dictionaries).unwrap(), b"of words");
    std::fs::remove_file(&dictionaries).unwrap();
    // An open that fails leaves none of its own.
    std::fs::write(folder.path().join("words.bin"), "somebody's").unwrap();
    assert!(matches!(Cache::open(options), Err(OpenError::Foreign { .. })));
    assert!(!dictionaries.exists());
}
