//! Resizing and deleting volumes, with crashes between the steps.

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use granary_volume::map::MapKind;
use granary_volume::{Config, Error, Io, Volume};
use skip::skipped;
use std::collections::BTreeMap;
use std::path::Path;

const MIB: u64 = 1 << 20;
const SMALL: u64 = 16 * MIB;
const LARGE: u64 = 40 * MIB;
const BLOCK: u64 = 4096;

fn open(folder: &Path) -> Volume {
    Volume::open(folder, "v", &mut |_, _| {}).unwrap()
}

/// A closed volume with content at its beginning and its end.
fn create(folder: &Path) {
    Volume::create(folder, "v", &Config::new(SMALL)).unwrap();
    let (volume, mut io) = (open(folder), Io::new());
    for offset in [0, SMALL - BLOCK] {
        volume.write(&mut io, offset, &[7; BLOCK as usize]).unwrap();
    }
    volume.close().unwrap();
}

fn read(volume: &Volume, offset: u64) -> Vec<u8> {
    let mut found = vec![1; BLOCK as usize];
    volume.read(&mut Io::new(), offset, &mut found).unwrap();
    found
}

/// The files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

fn is_larger_and_has_its_content(folder: &Path, size: u64, what: &str) {
    let volume = open(folder);
    assert_eq!(volume.config().size, size, "{what}");
    assert_eq!(read(&volume, 0), [7; BLOCK as usize], "{what}");
    assert_eq!(read(&volume, SMALL - BLOCK), [7; BLOCK as usize], "{what}");
    assert_eq!(read(&volume, SMALL), [0; BLOCK as usize], "{what}");
    // There is room for all of it.
    let (mut io, piece) = (Io::new(), vec![9; MIB as usize]);
    for offset in (SMALL..size).step_by(piece.len()) {
        volume.write(&mut io, offset, &piece).unwrap();
    }
    volume.close().unwrap();
    let volume = open(folder);
    assert_eq!(read(&volume, size - BLOCK), [9; BLOCK as usize], "{what}");
    assert_eq!((volume.stats().damaged, volume.check_map(&mut |_| {})), (0, 0), "{what}");
    volume.close().unwrap();
}

#[test]
fn folders_that_are_not_there_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("data/volumes");
    create(&below);
    assert_eq!(read(&open(&below), 0), [7; BLOCK as usize]);
}

/// A folder that cannot be looked into is not one without volumes.
#[test]
fn what_cannot_be_looked_for_is_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let below = file.join("volumes");
    let errors = [
        Volume::open(&below, "v", &mut |_, _| {}).map(drop),
        Volume::delete(&below, "v"),
        Volume::resize(&below, "v", LARGE).map(drop),
        Volume::list(&below).map(drop),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert!(
            matches!(error, Error::Io { .. }) && error.to_string().contains("Not a directory"),
            "{error}"
        );
    }
}

#[test]
fn a_volume_grows_and_keeps_its_content() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    assert_eq!(Volume::resize(folder.path(), "v", LARGE).unwrap(), SMALL);
    is_larger_and_has_its_content(folder.path(), LARGE, "grown");
    let refused = Volume::resize(folder.path(), "v", SMALL).unwrap_err().to_string();
    assert!(refused.contains("would lose data"), "{refused}");
    let open = open(folder.path());
    assert!(Volume::resize(folder.path(), "v", 2 * LARGE).is_err(), "it is open");
    assert!(Volume::delete(folder.path(), "v").is_err(), "it is open");
    open.close().unwrap();
}

/// A resize has written only some of its files: whatever is done next completes it.
#[test]
fn a_resize_that_is_cut_short_is_finished_by_whatever_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    open(folder.path()).close().unwrap();
    let before = files(folder.path());
    Volume::resize(folder.path(), "v", LARGE).unwrap();
    let after = files(folder.path());
    let changed: Vec<&String> = after.keys().filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(changed.iter().any(|name| *name == "v.volume") && changed.iter().any(|name| *name == "v.state"));
    let steps: [&[&str]; 3] = [
        &["v.volume.resized"],
        &["v.volume.resized", "v.state"],
        &["v.volume.resized", "v.state", "v.volume"],
    ];
    for (done, again) in
        steps.into_iter().flat_map(|done| [None, Some(LARGE), Some(2 * LARGE)].map(|n| (done, n)))
    {
        let what = format!("{done:?} and then {again:?}");
        let cut = tempfile::tempdir().unwrap();
        for (name, bytes) in &before {
            std::fs::write(cut.path().join(name), bytes).unwrap();
        }
        for name in done {
            // `v.volume.resized` has the new shape, which is the last file written.
            let bytes = if *name == "v.volume.resized" { &after["v.volume"] } else { &after[*name] };
            std::fs::write(cut.path().join(name), bytes).unwrap();
        }
        if let Some(size) = again {
            assert_eq!(Volume::resize(cut.path(), "v", size).unwrap(), LARGE, "{what}");
        }
        is_larger_and_has_its_content(cut.path(), again.unwrap_or(LARGE), &what);
        assert!(!cut.path().join("v.volume.resized").exists(), "{what}");
    }
}

/// Longer than ext4's longest file.
const TOO_LARGE: u64 = 20 << 40;

fn has_files_of_any_length(folder: &Path) -> bool {
    let path = folder.join("long");
    let made = std::fs::File::create(&path).unwrap().set_len(TOO_LARGE);
    std::fs::remove_file(path).unwrap();
    made.is_ok()
}

#[test]
fn a_resize_beyond_the_longest_file_is_refused_and_the_volume_stays() {
    let folder = tempfile::tempdir().unwrap();
    if has_files_of_any_length(folder.path()) {
        return skipped("a file system without files of 20 TiB");
    }
    // A map that takes no memory for blocks without content.
    let config = |size| Config { block_size: 16384, map: MapKind::SkipList, ..Config::new(size) };
    Volume::create(folder.path(), "v", &config(SMALL)).unwrap();
    let before = files(folder.path());
    let error = Volume::resize(folder.path(), "v", TOO_LARGE).unwrap_err().to_string();
    assert!(error.contains("v.log") && error.contains("File too large"), "{error}");
    assert!(!folder.path().join("v.volume.resized").exists());
    assert_eq!(open(folder.path()).config().size, SMALL);
    // One that was begun by a process that was killed.
    let text = String::from_utf8(before["v.volume"].clone()).unwrap();
    let note = text.replace(&SMALL.to_string(), &TOO_LARGE.to_string());
    assert_ne!(note, text);
    std::fs::write(folder.path().join("v.volume.resized"), note).unwrap();
    assert_eq!(open(folder.path()).config().size, SMALL, "what was begun is undone");
    assert_eq!(Volume::resize(folder.path(), "v", LARGE).unwrap(), SMALL);
    // A volume that cannot be made leaves nothing.
    let names = || files(folder.path()).into_keys().collect::<Vec<_>>();
    let before = names();
    let error = Volume::create(folder.path(), "x", &config(TOO_LARGE)).unwrap_err().to_string();
    assert!(error.contains("lengthen") && error.contains("x.log"), "{error}");
    assert_eq!(names(), before);
}

#[test]
fn nothing_is_left_of_a_volume_that_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    Volume::delete(folder.path(), "v").unwrap();
    assert_eq!(files(folder.path()), BTreeMap::new());
    assert!(Volume::delete(folder.path(), "v").unwrap_err().to_string().contains("there is no volume v"));
}

/// Calls `next` with a folder in which a deletion has removed the shape and any of the other files.
fn after_deletions_that_were_cut_short(mut next: impl FnMut(&Path, &str)) {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let before = files(folder.path());
    let others: Vec<&String> = before.keys().filter(|name| *name != "v.volume").collect();
    assert!(others.len() >= 3, "{others:?}");
    for left in 0..1 << others.len() {
        let cut = tempfile::tempdir().unwrap();
        for (i, name) in others.iter().enumerate() {
            if left >> i & 1 == 1 {
                std::fs::write(cut.path().join(name), &before[*name]).unwrap();
            }
        }
        std::fs::write(cut.path().join("v.volume.deleted"), &before["v.volume"]).unwrap();
        assert!(Volume::open(cut.path(), "v", &mut |_, _| {}).is_err(), "there is no volume");
        next(cut.path(), &format!("{left:b} of {others:?}"));
    }
}

#[test]
fn what_a_deletion_that_was_cut_short_left_is_not_found_in_a_new_volume() {
    after_deletions_that_were_cut_short(|folder, what| {
        Volume::create(folder, "v", &Config::new(SMALL)).unwrap();
        assert!(!folder.join("v.volume.deleted").exists());
        let volume = open(folder);
        assert_eq!(volume.stats().blocks_mapped, 0, "{what}");
        assert_eq!(read(&volume, 0), [0; BLOCK as usize], "{what}");
        volume.close().unwrap();
    });
}

/// By the next deletion, or by a listing of the volumes.
#[test]
fn a_deletion_that_was_cut_short_is_finished() {
    after_deletions_that_were_cut_short(|folder, what| {
        Volume::delete(folder, "v").unwrap();
        assert_eq!(files(folder), BTreeMap::new(), "{what}");
    });
    after_deletions_that_were_cut_short(|folder, what| {
        Volume::create(folder, "w", &Config::new(SMALL)).unwrap();
        let names: Vec<String> =
            Volume::list(folder).unwrap().iter().map(|files| files.name().to_owned()).collect();
        assert_eq!(names, ["w"], "{what}");
        assert!(files(folder).keys().all(|name| name.starts_with("w.")), "{what}");
    });
    // A volume that is held counts as being created or deleted.
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let open = open(folder.path());
    std::fs::rename(folder.path().join("v.volume"), folder.path().join("v.volume.deleted")).unwrap();
    let before: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(Volume::list(folder.path()).unwrap().len(), 0);
    assert_eq!(files(folder.path()).into_keys().collect::<Vec<_>>(), before);
    std::fs::rename(folder.path().join("v.volume.deleted"), folder.path().join("v.volume")).unwrap();
    open.close().unwrap();
}

/// The creation of a volume ended before it had a shape: it can be created again, of any size. Foreign files are left
/// alone, and so are those of a volume whose shape is missing.
#[test]
fn making_a_volume_that_was_cut_short_is_done_again() {
    for size in [SMALL, LARGE] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let (shape, elsewhere) = (folder.path().join("v.volume"), folder.path().join("elsewhere"));
        std::fs::rename(&shape, &elsewhere).unwrap();
        assert!(Volume::create(folder.path(), "v", &Config::new(size)).is_err());
        std::fs::rename(&elsewhere, &shape).unwrap();
        assert_eq!(read(&open(folder.path()), 0), [7; BLOCK as usize]);
        std::fs::rename(&shape, folder.path().join("v.volume.deleted")).unwrap();
        Volume::create(folder.path(), "v", &Config::new(size)).unwrap();
        let volume = open(folder.path());
        assert_eq!((volume.config().size, volume.stats().blocks_mapped), (size, 0));
        volume.close().unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("v.log"), b"minutes of a meeting").unwrap();
    assert!(Volume::create(folder.path(), "v", &Config::new(SMALL)).is_err());
    assert_eq!(std::fs::read(folder.path().join("v.log")).unwrap(), b"minutes of a meeting");
}
