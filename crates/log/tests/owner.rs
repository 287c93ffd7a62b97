//! Whose the files are that root makes.

#[path = "common/skip.rs"]
mod skip;

use granary_log::{UnpublishedFile, create_folders, open_or_create, open_or_create_for};
use rustix::fs::{Mode, OFlags};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

const USER: u32 = 65_534;
const GROUP: u32 = 65_533;

/// User, group and permissions of a file.
fn owner(path: &Path) -> (u32, u32, u32) {
    let found = path.symlink_metadata().unwrap();
    (found.uid(), found.gid(), found.permissions().mode() & 0o777)
}

fn make(path: &Path) {
    open_or_create(path, OFlags::WRONLY, Mode::RUSR | Mode::WUSR).unwrap();
}

/// A folder of another user, if this one may give it away.
fn folder_of_another() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    match chown(folder.path(), Some(USER), Some(GROUP)) {
        Ok(()) => Some(folder),
        Err(_) => {
            skip::skipped("not root: whose the files are that root makes");
            None
        }
    }
}

#[test]
fn what_root_makes_in_a_folder_of_another_user_is_that_users() {
    let Some(folder) = folder_of_another() else { return };
    let at = |name: &str| folder.path().join(name);
    make(&at("a"));
    assert_eq!(owner(&at("a")), (USER, GROUP, 0o600));
    UnpublishedFile::write(at("b.new"), 0o600, |file| file.write_all(b"b"))
        .unwrap()
        .publish_as(&at("b"))
        .unwrap();
    assert_eq!(owner(&at("b")), (USER, GROUP, 0o600));
    create_folders(&at("c/d")).unwrap();
    make(&at("c/d/e"));
    for name in ["c", "c/d", "c/d/e"] {
        let (user, group, _) = owner(&at(name));
        assert_eq!((user, group), (USER, GROUP), "{name}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("f");
    open_or_create_for(folder.path(), &path, OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
    assert_eq!(owner(&path), (USER, GROUP, 0o600));
}

/// Whoever may write to the folder must not get other files of root's by links to them.
#[test]
fn what_was_there_stays_whose_it_is() {
    let Some(folder) = folder_of_another() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let (there, missing) = (elsewhere.path().join("there"), elsewhere.path().join("missing"));
    std::fs::write(&there, "root's").unwrap();
    for (name, to) in [("a", &there), ("b", &missing)] {
        let path = folder.path().join(name);
        symlink(to, &path).unwrap();
        make(&path);
        assert_eq!(to.metadata().unwrap().uid(), 0, "{name}");
    }
    assert_eq!(std::fs::read_to_string(there).unwrap(), "root's");
}

#[test]
fn folders_are_made_as_far_as_they_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    for _ in 0..2 {
        create_folders(&path).unwrap();
        assert!(path.is_dir());
    }
    make(&path.join("c"));
    create_folders(&path.join("c")).unwrap_err();
    create_folders(&path.join("c/d")).unwrap_err();
    create_folders(Path::new("")).unwrap();
}
