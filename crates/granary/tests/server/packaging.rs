//! What the Debian package removes when it is purged.

use std::path::Path;
use std::process::Command;

/// Whether each of these files is there.
fn are_there<const N: usize>(folder: &Path, names: [&str; N]) -> [bool; N] {
    names.map(|name| folder.join(name).exists())
}

#[test]
fn a_purge_removes_caches_and_neither_volumes_nor_what_people_put_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("granary");
    for name in ["user_files", "user_scripts", "volumes", "metadata/default", "memcached", "fast/disks"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    let volume = [
        "volumes/v.volume",
        "volumes/v.log",
        "volumes/v.map",
        "volumes/v.state",
        "volumes/v.journal.0",
        "volumes/v.journal.1",
        "user_files/w.volume",
        "user_files/w.log",
        "user_files/w.state",
        "user_files/w.journal.0",
        "fast/disks/x.volume",
        "fast/disks/x.log",
    ];
    let kept = ["user_files/people.db", "user_scripts/ask.sh"];
    let caches = [
        "user_files/d.bin",
        "user_files/d.state",
        "user_files/d.journal.0",
        "user_files/d.journal.1",
        "user_files/d.dictionaries",
        "memcached/items.journal.0",
        "memcached/items.bin",
        "memcached/numbers",
        "metadata/default/d.sql",
        ".granary.lock",
    ];
    for name in volume.iter().chain(&kept).chain(&caches) {
        std::fs::write(root.join(name), "x").unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/postrm");
    let script = std::fs::read_to_string(script).unwrap();
    let script = script.replace("/var/lib/granary", root.to_str().unwrap());
    let status = Command::new("sh").args(["-c", &script, "postrm", "purge"]).status().unwrap();
    assert!(status.success());
    assert_eq!(are_there(&root, volume), [true; 12]);
    assert_eq!(are_there(&root, kept), [true; 2]);
    assert_eq!(are_there(&root, caches), [false; 10]);
}
