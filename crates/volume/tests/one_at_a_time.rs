//! One process at a time works on a volume: a start that waited for another process sees its changes, and simultaneous
//! operations are done once, or refused. A volume whose files are copies from different times is refused, or loses
//! nothing.

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;

use golden::lose_power;
use granary_volume::{Config, Error, Io, Volume};
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;
const TRIMMED: u64 = 64;

fn open(folder: &Path) -> Result<Volume, Error> {
    Volume::open(folder, "v", &mut |_, _| {})
}

fn config(size: u64) -> Config {
    Config { segment_bytes: 256 << 10, ..Config::new(size) }
}

/// A closed volume with content, whose first blocks will be trimmed.
fn create(folder: &Path) {
    Volume::create(folder, "v", &config(4 * MIB)).unwrap();
    let (volume, mut io) = (open(folder).unwrap(), Io::new());
    volume.write(&mut io, 0, &vec![1; 2 << 20]).unwrap();
    volume.close().unwrap();
}

/// Trims blocks, and overwrites others until the log has no trace of the trims.
fn trim_and_write_on(volume: &Volume) {
    let mut io = Io::new();
    volume.trim(0, TRIMMED * BLOCK).unwrap();
    volume.commit().unwrap();
    let before = volume.stats();
    for _ in 0..40 {
        for lba in TRIMMED..512 {
            volume.write(&mut io, lba * BLOCK, &[2; BLOCK as usize]).unwrap();
        }
        volume.commit().unwrap();
    }
    assert!(volume.stats().checkpoints > before.checkpoints + 1, "{before:?} {:?}", volume.stats());
}

fn is_right(volume: &Volume) {
    let (mut io, mut found) = (Io::new(), vec![9; 2 << 20]);
    volume.read(&mut io, 0, &mut found).unwrap();
    let (trimmed, written) = found.split_at((TRIMMED * BLOCK) as usize);
    assert!(trimmed.iter().all(|byte| *byte == 0), "trimmed blocks are zero");
    assert!(written.iter().all(|byte| *byte == 2), "what was written last is there");
}

#[test]
fn a_start_that_waits_for_another_process_sees_what_that_did() {
    for killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let volume = open(folder.path()).unwrap();
        let begin = Barrier::new(2);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                begin.wait();
                loop {
                    match open(folder.path()) {
                        Err(Error::InUse { .. }) => {}
                        opened => return opened.unwrap(),
                    }
                }
            });
            // It waits for the lock from here on.
            begin.wait();
            std::thread::sleep(Duration::from_millis(20));
            trim_and_write_on(&volume);
            if killed {
                volume.abandon()
            } else {
                volume.close().unwrap()
            }
            is_right(&next.join().unwrap());
        });
    }
}

#[test]
fn an_older_copy_of_the_map_is_refused() {
    for killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let (map, log) = (folder.path().join("v.map"), folder.path().join("v.log"));
        let older = std::fs::read(&map).unwrap();
        let volume = open(folder.path()).unwrap();
        trim_and_write_on(&volume);
        end(volume, killed);
        let newest = std::fs::read(&map).unwrap();
        let before = std::fs::read(&log).unwrap();
        std::fs::write(&map, &older).unwrap();
        let error = open(folder.path()).err().expect("an older map is refused");
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(std::fs::read(&log).unwrap() == before, "nothing is written");
        std::fs::write(&map, &newest).unwrap();
        is_right(&open(folder.path()).unwrap());
    }
}

fn end(volume: Volume, killed: bool) {
    if killed { volume.abandon() } else { volume.close().unwrap() }
}

/// Restores the files in `older`, by name.
fn put_back(folder: &Path, older: &[(&str, Vec<u8>)]) {
    older.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
}

fn copies(folder: &Path) -> [(&'static str, Vec<u8>); 3] {
    ["v.log", "v.state", "v.map"].map(|name| (name, std::fs::read(folder.join(name)).unwrap()))
}

/// The newer map already covers the next sequence numbers of the older log: a later start would skip newly written
/// segments.
#[test]
fn a_map_that_is_newer_than_the_log_is_refused() {
    for (before, killed) in
        ["closed", "killed", "running"].into_iter().flat_map(|before| [(before, false), (before, true)])
    {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let mut running = None;
        if before != "closed" {
            let volume = open(folder.path()).unwrap();
            volume.write(&mut Io::new(), 0, &[1; BLOCK as usize]).unwrap();
            volume.commit().unwrap();
            running = Some(volume);
        }
        if before == "killed" {
            running.take().into_iter().for_each(Volume::abandon);
        }
        let older = copies(folder.path());
        let volume = running.unwrap_or_else(|| open(folder.path()).unwrap());
        trim_and_write_on(&volume);
        end(volume, killed);
        let newest = copies(folder.path());
        put_back(folder.path(), &older[..2]);
        let is_refused = || {
            let before = copies(folder.path());
            // Twice, for a refused start must not change the result of the next one.
            for _ in 0..2 {
                let error = open(folder.path()).err().expect("a newer map is refused");
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                assert!(error.to_string().contains("v.state"), "{error}");
            }
            assert!(copies(folder.path()) == before, "nothing is written");
        };
        is_refused();
        // Likewise on another machine, or after a reboot.
        lose_power(&folder.path().join("v.state"));
        is_refused();
        put_back(folder.path(), &newest);
        is_right(&open(folder.path()).unwrap());
    }
}

/// The state file is of an earlier stop than log and map: no number that these have is reused.
#[test]
fn beside_an_older_copy_of_the_state_file_nothing_is_lost() {
    for killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let older = copies(folder.path());
        let volume = open(folder.path()).unwrap();
        volume.write(&mut Io::new(), 0, &[3; BLOCK as usize]).unwrap();
        volume.commit().unwrap();
        volume.abandon();
        // The checkpoint of a start after a kill includes the numbers that it skipped.
        let volume = open(folder.path()).unwrap();
        assert!(volume.stats().checkpoints > 0);
        end(volume, killed);
        put_back(folder.path(), &older[1..2]);
        let volume = open(folder.path()).unwrap();
        volume.write(&mut Io::new(), BLOCK, &[4; BLOCK as usize]).unwrap();
        volume.commit().unwrap();
        volume.abandon();
        let (volume, mut found) = (open(folder.path()).unwrap(), vec![9; 2 * BLOCK as usize]);
        volume.read(&mut Io::new(), 0, &mut found).unwrap();
        assert_eq!((found[0], found[BLOCK as usize]), (3, 4), "what was flushed is there");
        volume.close().unwrap();
    }
}

/// Runs `work` on several threads at once.
fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let begin = Barrier::new(threads);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|i| {
                let (begin, work) = (&begin, &work);
                scope.spawn(move || {
                    begin.wait();
                    work(i)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn of_volumes_of_one_name_that_are_made_at_once_one_is_made() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [4 * MIB, 8 * MIB, 12 * MIB];
        let made = at_once(3, |i| Volume::create(folder.path(), "v", &config(sizes[i])));
        let winners: Vec<usize> = (0..3).filter(|i| made[*i].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{made:?}");
        for error in made.into_iter().filter_map(Result::err) {
            assert!(matches!(error, Error::Exists { .. } | Error::InUse { .. }), "{error}");
        }
        assert_eq!(open(folder.path()).unwrap().config().size, sizes[winners[0]]);
    }
}

#[test]
fn a_volume_is_resized_beside_nobody() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let sizes = [8 * MIB, 16 * MIB];
        let done = at_once(3, |i| match sizes.get(i) {
            Some(size) => Volume::resize(folder.path(), "v", *size).map(|_| *size),
            None => open(folder.path()).map(|volume| volume.config().size),
        });
        for error in done.iter().filter_map(|done| done.as_ref().err()) {
            // The smaller size came second.
            let smaller = matches!(error, Error::Invalid { option: "size", .. });
            assert!(smaller || matches!(error, Error::InUse { .. }), "{error}");
        }
        // All may be refused, each because of another.
        let largest = done[..2].iter().flatten().copied().max().unwrap_or(4 * MIB);
        let volume = open(folder.path()).unwrap();
        assert_eq!(volume.config().size, largest);
        let mut io = Io::new();
        volume.write(&mut io, volume.config().size - BLOCK, &[3; BLOCK as usize]).unwrap();
        volume.close().unwrap();
        assert!(!folder.path().join("v.volume.resized").exists());
    }
}

#[test]
fn a_resize_that_is_refused_leaves_the_volume_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let volume = open(folder.path()).unwrap();
    let refused = Volume::resize(folder.path(), "v", 8 * MIB);
    assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
    volume.write(&mut Io::new(), 0, &[3; BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    volume.abandon();
    let volume = open(folder.path()).unwrap();
    assert_eq!(volume.config().size, 4 * MIB);
}

/// The lock file was removed as stale: the log is locked as well. What is refused makes a new lock file, and the volume
/// goes on beside it.
#[test]
fn what_is_open_is_left_alone_without_its_lock_file() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let (volume, lock) = (open(folder.path()).unwrap(), folder.path().join("v.lock"));
    let work = |byte: u8| {
        volume.write(&mut Io::new(), 0, &[byte; BLOCK as usize]).unwrap();
        volume.commit().unwrap();
    };
    // With the log alone, too.
    let (state, elsewhere) = (folder.path().join("v.state"), folder.path().join("elsewhere"));
    for without_state in [false, true] {
        let attempts: [&dyn Fn() -> Result<(), Error>; 3] = [
            &|| Volume::delete(folder.path(), "v"),
            &|| Volume::resize(folder.path(), "v", 8 * MIB).map(drop),
            &|| open(folder.path()).map(drop),
        ];
        for (i, attempt) in attempts.into_iter().enumerate() {
            std::fs::remove_file(&lock).unwrap();
            if without_state {
                std::fs::rename(&state, &elsewhere).unwrap();
            }
            let error = attempt().expect_err("it is open");
            assert!(matches!(error, Error::InUse { .. }), "attempt {i}: {error}");
            if without_state {
                std::fs::rename(&elsewhere, &state).unwrap();
            }
            assert!(lock.exists());
            work(i as u8);
        }
    }
    volume.close().unwrap();
    Volume::delete(folder.path(), "v").unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A flush fails once the files are removed or replaced: no later start would find what it wrote.
#[test]
fn flushes_fail_once_a_file_is_removed_or_replaced() {
    for name in ["v.state", "v.log"] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path());
        let volume = open(folder.path()).unwrap();
        let (path, elsewhere) = (folder.path().join(name), folder.path().join("elsewhere"));
        let write = || volume.write(&mut Io::new(), 0, &[3; BLOCK as usize]);
        let fails = |why: &str| {
            let error = volume.commit().expect_err("a file is not where it was").to_string();
            assert!(error.contains(name) && error.contains(why), "{error}");
            let error = write().expect_err("a file is not where it was").to_string();
            assert!(error.contains(name) && error.contains(why), "{error}");
        };
        std::fs::rename(&path, &elsewhere).unwrap();
        fails("was removed");
        std::fs::copy(&elsewhere, &path).unwrap();
        fails("another file was put in the place");
        // Put back, it is the volume's again.
        std::fs::rename(&elsewhere, &path).unwrap();
        write().unwrap();
        volume.commit().unwrap();
        // Removed from a folder that was moved away, too.
        let moved = folder.path().with_extension("moved");
        std::fs::rename(folder.path(), &moved).unwrap();
        write().unwrap();
        volume.commit().unwrap();
        std::fs::remove_file(moved.join(name)).unwrap();
        fails("was removed");
        volume.close().expect_err("a file is not where it was");
        std::fs::rename(&moved, folder.path()).unwrap();
    }
}

#[test]
fn the_lock_of_a_name_without_a_volume_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path()), Err(Error::NotFound { .. })));
    assert!(Volume::create(folder.path(), "v", &Config { size: 1, ..config(MIB) }).is_err());
    create(folder.path());
    assert!(folder.path().join("v.lock").exists());
    let done = at_once(3, |_| Volume::delete(folder.path(), "v"));
    assert!(done.iter().any(Result::is_ok), "{done:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
