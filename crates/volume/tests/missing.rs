//! A part of a volume is missing, or belongs to another one: the volume is refused, nothing is created in place of the
//! part, and with the part back all is there. Raw devices that are in use or have data are not taken.

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use granary_log::device::VolatileDevice;
use granary_volume::map::{Map, MapKind, Place};
use granary_volume::{Config, Error, Io, Volume, checkpoint};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SIZE: u64 = 16 << 20;
const BLOCK: u64 = 4096;

fn open(folder: &Path) -> Result<Volume, Error> {
    Volume::open(folder, "v", &mut |_, _| {})
}

/// A volume with durable content, which was closed, or ended as by a kill.
fn create(folder: &Path, config: &Config, closed: bool) {
    Volume::create(folder, "v", config).unwrap();
    let (volume, mut io) = (open(folder).unwrap(), Io::new());
    volume.write(&mut io, 5 * BLOCK, &[7; BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    if closed { volume.close().unwrap() } else { volume.abandon() }
}

fn has_its_content(folder: &Path) {
    let volume = open(folder).unwrap();
    let mut found = [0; BLOCK as usize];
    volume.read(&mut Io::new(), 5 * BLOCK, &mut found).unwrap();
    assert_eq!(found, [7; BLOCK as usize]);
    volume.close().unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The refusal names the part.
fn is_refused(folder: &Path, part: &str) {
    let before = names(folder);
    let error = open(folder).err().expect("a part is missing, or another's");
    let is_about_files = matches!(error, Error::Damaged { .. } | Error::Missing { .. });
    assert!(is_about_files && error.to_string().contains(part), "{error}");
    assert_eq!(names(folder), before, "nothing is made in its place");
}

/// A segment synced after the last checkpoint cannot be found: header and summary are damaged, or the device lost all
/// writes to it. Content that it overwrote or made zero must not come back.
#[test]
fn a_segment_that_was_synced_and_is_gone_refuses_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(SIZE);
    let bytes = config.segment_bytes as usize;
    Volume::create(folder.path(), "v", &config).unwrap();
    let (volume, mut io) = (open(folder.path()).unwrap(), Io::new());
    volume.write(&mut io, 0, &vec![1; 8 << 20]).unwrap();
    volume.close().unwrap();
    let log = folder.path().join("v.log");
    let older = std::fs::read(&log).unwrap();
    let volume = open(folder.path()).unwrap();
    for lba in 0..400 {
        match lba % 7 {
            0 => volume.trim(lba * BLOCK, BLOCK).unwrap(),
            _ => volume.write(&mut io, lba * BLOCK, &[2; BLOCK as usize]).unwrap(),
        }
        if lba % 10 == 9 {
            volume.commit().unwrap();
        }
    }
    volume.commit().unwrap();
    volume.abandon();
    let files = names(folder.path());
    let whole: Vec<_> = files.iter().map(|name| std::fs::read(folder.path().join(name)).unwrap()).collect();
    let newer = std::fs::read(&log).unwrap();
    let number = |slot: usize| {
        let header = &newer[slot * bytes + 8..slot * bytes + 14];
        header.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let is_changed = |slot: &usize| newer[slot * bytes..][..bytes] != older[slot * bytes..][..bytes];
    let mut slots: Vec<usize> = (0..newer.len() / bytes).filter(is_changed).collect();
    slots.sort_by_key(|slot| number(*slot));
    assert!(slots.len() >= 6, "{slots:?}");
    for (i, slot) in slots.iter().enumerate() {
        let segment = slot * bytes..(slot + 1) * bytes;
        let mut flipped = newer.clone();
        flipped[segment.start + 9] ^= 1;
        flipped[segment.end - BLOCK as usize + 9] ^= 1;
        let mut zeroed = newer.clone();
        zeroed[segment.clone()].fill(0);
        let mut lost = newer.clone();
        lost[segment.clone()].copy_from_slice(&older[segment.clone()]);
        let mut copied = newer.clone();
        copied.copy_within(
            slots[(i + 1) % slots.len()] * bytes..(slots[(i + 1) % slots.len()] + 1) * bytes,
            segment.start,
        );
        for damaged in [flipped, zeroed, lost, copied] {
            std::fs::write(&log, damaged).unwrap();
            // The two newest segments were not full at the last sync.
            if i + 2 < slots.len() {
                is_refused(folder.path(), &format!("segment {}", number(*slot)));
            }
            for (name, bytes) in files.iter().zip(&whole) {
                std::fs::write(folder.path().join(name), bytes).unwrap();
            }
        }
    }
    let (volume, mut found) = (open(folder.path()).unwrap(), vec![0; 400 * BLOCK as usize]);
    volume.read(&mut io, 0, &mut found).unwrap();
    let mut blocks = (0..).zip(found.chunks(BLOCK as usize));
    assert!(blocks.all(|(lba, bytes)| bytes[0] == if lba % 7 == 0 { 0 } else { 2 }));
}

/// A start skips many sequence numbers, which were never synced. A loss of power may take the first segment that such a
/// start writes and leave a later one.
#[test]
fn a_loss_of_power_may_take_the_first_segment_of_a_start() {
    const BLOCK: u64 = 512;
    let config = Config { block_size: BLOCK, segment_bytes: 16 * BLOCK, ..Config::new(1024 * BLOCK) };
    for starts in 1..4 {
        for written_before in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let bytes = config.geometry().unwrap().file_bytes();
            let device = Arc::new(VolatileDevice::new(bytes, BLOCK as usize));
            let open = |device: &Arc<VolatileDevice>| {
                Volume::open_on(folder.path(), "v", &config, Box::new(Arc::clone(device)))
            };
            let (volume, mut io) = (open(&device).unwrap(), Io::new());
            volume.write(&mut io, 0, &[1; 128 * BLOCK as usize]).unwrap();
            volume.close().unwrap();
            for _ in 0..starts {
                open(&device).unwrap().abandon();
            }
            let volume = open(&device).unwrap();
            if written_before {
                volume.write(&mut io, 0, &[2; 40 * BLOCK as usize]).unwrap();
                volume.commit().unwrap();
            }
            let before = device.recent();
            volume.write(&mut io, 0, &[3; 40 * BLOCK as usize]).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while device.recent() < before + 32 {
                assert!(Instant::now() < deadline, "two segments are full");
                sleep(Duration::from_millis(1));
            }
            volume.abandon();
            let cut = Arc::new(device.after_power_cut(|unit| unit >= before + 16));
            let volume = open(&cut).unwrap_or_else(|error| panic!("{starts}, {written_before}: {error}"));
            let mut found = vec![0; 128 * BLOCK as usize];
            volume.read(&mut io, 0, &mut found).unwrap();
            let (written, rest) = found.split_at(40 * BLOCK as usize);
            let older = if written_before { 2 } else { 1 };
            assert!(written.iter().all(|byte| [older, 3].contains(byte)), "{starts}, {written_before}");
            assert!(written.contains(&3) && written.contains(&older) && rest.iter().all(|byte| *byte == 1));
            volume.close().unwrap();
        }
    }
}

#[test]
fn a_note_of_another_shape_makes_no_volume_larger() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), &Config::new(SIZE), true);
    let shape = std::fs::read_to_string(folder.path().join("v.volume")).unwrap();
    for (was, is) in [("size = 16777216", "size = 8388608"), ("block_size = 4096", "block_size = 8192")] {
        assert!(shape.contains(was), "{shape}");
        std::fs::write(folder.path().join("v.volume.resized"), shape.replacen(was, is, 1)).unwrap();
        is_refused(folder.path(), "v.volume.resized");
        assert_eq!(std::fs::read_to_string(folder.path().join("v.volume")).unwrap(), shape);
    }
    std::fs::remove_file(folder.path().join("v.volume.resized")).unwrap();
    has_its_content(folder.path());
}

/// The folder is moved away while a process has the volume open, and a copy takes its place: the process must not
/// overwrite the copy.
#[test]
fn a_copy_in_place_of_the_folder_stays_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let (data, old) = (parent.path().join("data"), parent.path().join("old"));
    std::fs::create_dir(&data).unwrap();
    create(&data, &Config::new(SIZE), true);
    let files: Vec<_> =
        names(&data).iter().map(|name| (name.clone(), std::fs::read(data.join(name)).unwrap())).collect();
    let (volume, mut io) = (open(&data).unwrap(), Io::new());
    volume.write(&mut io, 5 * BLOCK, &[8; BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    std::fs::rename(&data, &old).unwrap();
    std::fs::create_dir(&data).unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(data.join(name), bytes).unwrap());
    // A write may find room in RAM. Its flush fails, and so do later writes.
    let written = volume.write(&mut io, 6 * BLOCK, &[9; BLOCK as usize]);
    for error in [volume.commit().err(), volume.write(&mut io, 6 * BLOCK, &[9; BLOCK as usize]).err()] {
        let error = error.expect("another folder is there");
        assert!(error.to_string().contains("another folder"), "{error}");
    }
    let refused = [volume.trim(0, BLOCK).err(), volume.write_zeroes(&mut io, 0, BLOCK).err()];
    assert!(refused.iter().all(Option::is_some), "{written:?}, {refused:?}");
    let error = volume.close().expect_err("another folder is there");
    assert!(error.to_string().contains("another folder"), "{error}");
    for (name, bytes) in &files {
        assert!(std::fs::read(data.join(name)).unwrap() == *bytes, "{name}");
    }
    has_its_content(&data);
    let (volume, mut found) = (open(&old).unwrap(), [0; BLOCK as usize]);
    volume.read(&mut io, 5 * BLOCK, &mut found).unwrap();
    assert_eq!(found, [8; BLOCK as usize]);
    // A folder that is put back before the process ends is the volume's again.
    let elsewhere = parent.path().join("elsewhere");
    std::fs::rename(&old, &elsewhere).unwrap();
    // While it is moved, it still has the volume's files.
    volume.commit().unwrap();
    std::fs::create_dir(&old).unwrap();
    assert!(volume.commit().is_err());
    std::fs::remove_dir(&old).unwrap();
    std::fs::rename(&elsewhere, &old).unwrap();
    volume.write(&mut io, 5 * BLOCK, &[10; BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    // Nor is anything lost if the lock file is removed.
    std::fs::remove_file(old.join("v.lock")).unwrap();
    volume.commit().unwrap();
    volume.close().unwrap();
}

/// A volume that is not noted as formatted, being new or of an older version, can be resized.
#[test]
fn what_is_not_noted_as_formatted_is_made_larger() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), &Config::new(SIZE), true);
    let shape = folder.path().join("v.volume");
    let formatted = std::fs::read_to_string(&shape).unwrap();
    assert!(formatted.contains("formatted = true"), "{formatted}");
    let before = formatted.replacen("formatted = true", "formatted = false", 1);
    std::fs::write(&shape, &before).unwrap();
    Volume::resize(folder.path(), "v", 2 * SIZE).unwrap();
    has_its_content(folder.path());
    assert_eq!(std::fs::read_to_string(&shape).unwrap(), formatted.replacen("16777216", "33554432", 1));
    // As older versions left it.
    std::fs::write(folder.path().join("v.volume.resized"), before.replacen("16777216", "50331648", 1))
        .unwrap();
    has_its_content(folder.path());
    assert_eq!(std::fs::read_to_string(&shape).unwrap(), formatted.replacen("16777216", "50331648", 1));
}

#[test]
fn a_missing_part_is_not_made_anew() {
    for closed in [true, false] {
        for part in ["v.log", "v.state", "v.map"] {
            let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            create(folder.path(), &Config::new(SIZE), closed);
            let (here, there) = (folder.path().join(part), elsewhere.path().join(part));
            std::fs::copy(&here, &there).unwrap();
            std::fs::remove_file(&here).unwrap();
            is_refused(folder.path(), &format!("{part} is missing"));
            std::fs::copy(&there, &here).unwrap();
            has_its_content(folder.path());
        }
    }
}

/// Whatever byte of the state file is damaged: it is the volume's, and no file in the way of one.
#[test]
fn a_damaged_state_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), &Config::new(SIZE), true);
    let state = folder.path().join("v.state");
    let right = std::fs::read(&state).unwrap();
    for at in 0..right.len() {
        let mut damaged = right.clone();
        damaged[at] ^= 1;
        std::fs::write(&state, damaged).unwrap();
        is_refused(folder.path(), "v.state is damaged");
    }
    for damaged in [&b""[..], &right[..50], b"minutes of a meeting"] {
        std::fs::write(&state, damaged).unwrap();
        is_refused(folder.path(), "v.state is damaged");
    }
    std::fs::write(&state, right).unwrap();
    has_its_content(folder.path());
}

#[test]
fn a_log_that_is_another_is_refused() {
    for closed in [true, false] {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        create(folder.path(), &Config::new(SIZE), closed);
        create(other.path(), &Config::new(SIZE), closed);
        let (log, elsewhere) = (folder.path().join("v.log"), other.path().join("elsewhere"));
        std::fs::rename(&log, &elsewhere).unwrap();
        let bytes = std::fs::read(&elsewhere).unwrap();
        let others = std::fs::read(other.path().join("v.log")).unwrap();
        for wrong in [&vec![0; bytes.len()], &others, &bytes[..bytes.len() / 2].to_vec()] {
            std::fs::write(&log, wrong).unwrap();
            is_refused(folder.path(), "v.log");
            assert!(std::fs::read(&log).unwrap() == *wrong, "it is left alone");
        }
        std::fs::rename(&elsewhere, &log).unwrap();
        has_its_content(folder.path());
    }
}

/// A complete map that contradicts the segments. Blocks that it does not map cannot be checked: the segment with their
/// trim may be gone.
#[test]
fn a_check_finds_places_that_are_not_what_the_map_says() {
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "v", &Config::new(SIZE)).unwrap();
    let (volume, mut io) = (open(folder.path()).unwrap(), Io::new());
    volume.write(&mut io, 0, &[7; 100 * BLOCK as usize]).unwrap();
    volume.close().unwrap();
    let path = folder.path().join("v.map");
    let right = std::fs::read(&path).unwrap();
    type Change = fn(&dyn Map);
    let changes: [(Change, u64); 5] = [
        (|_| {}, 0),
        (|map| _ = map.set(5, map.get(9).unwrap()), 1),
        (|map| _ = map.set(5, Place::of_block(map.get(5).unwrap().block() / 64 * 64).unwrap()), 1),
        (|map| _ = map.set(300, map.get(9).unwrap()), 1),
        (|map| _ = map.remove(5), 0),
    ];
    for (number, (change, wrong)) in changes.into_iter().enumerate() {
        std::fs::write(&path, &right).unwrap();
        let (map, header) = (map_of(&path), checkpoint::read(&path).unwrap().unwrap().header);
        change(&*map);
        checkpoint::write(&path, &header, &*map, &mut |_| {}).unwrap();
        let volume = open(folder.path()).unwrap();
        assert_eq!(volume.check_map(&mut |_| {}), wrong, "change {number}");
        volume.abandon();
    }
}

/// The map in a checkpoint.
fn map_of(path: &Path) -> Box<dyn Map> {
    let mut map = MapKind::Flat.create(SIZE / BLOCK).unwrap();
    checkpoint::read(path).unwrap().unwrap().restore(&mut *map, &mut |_| {}).unwrap();
    map
}

/// An open volume cannot be deleted, even if a part of it is missing.
#[test]
fn what_is_open_is_not_deleted() {
    for part in ["v.log", "v.state", "v.map"] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), &Config::new(SIZE), true);
        let volume = open(folder.path()).unwrap();
        let (here, elsewhere) = (folder.path().join(part), folder.path().join("elsewhere"));
        std::fs::rename(&here, &elsewhere).unwrap();
        let error = Volume::delete(folder.path(), "v").expect_err("it is open");
        assert!(matches!(error, Error::InUse { .. }), "{part}: {error}");
        std::fs::rename(&elsewhere, &here).unwrap();
        volume.close().unwrap();
        has_its_content(folder.path());
    }
}

/// A volume of which a part is missing can be deleted.
#[test]
fn what_cannot_be_opened_can_be_deleted() {
    for part in ["v.log", "v.state", "v.map"] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), &Config::new(SIZE), false);
        std::fs::remove_file(folder.path().join(part)).unwrap();
        Volume::delete(folder.path(), "v").unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

/// So can one whose shape is damaged, and it can be created again.
#[test]
fn a_volume_whose_shape_is_damaged_can_be_deleted() {
    for damaged in [&b""[..], b"size = 1", b"\xFF\xFE\0", b"size = 16777216\nunknown = 1\n"] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), &Config::new(SIZE), true);
        std::fs::write(folder.path().join("v.volume"), damaged).unwrap();
        is_refused(folder.path(), "v.volume");
        let error = Volume::create(folder.path(), "v", &Config::new(SIZE)).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
        Volume::delete(folder.path(), "v").unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
        create(folder.path(), &Config::new(SIZE), true);
        has_its_content(folder.path());
    }
}

/// A block device of 64 MiB, until it is dropped.
struct Loop {
    device: PathBuf,
    _backing: tempfile::NamedTempFile,
}

impl Loop {
    fn new() -> Option<Self> {
        let backing = tempfile::NamedTempFile::new().unwrap();
        backing.as_file().set_len(64 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(backing.path()).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            skip::skipped("loop devices");
            return None;
        };
        let device = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        Some(Self { device, _backing: backing })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        assert!(Command::new("losetup").arg("--detach").arg(&self.device).status().unwrap().success());
    }
}

fn on(device: &Path) -> Config {
    Config { device: Some(device.to_owned()), ..Config::new(SIZE) }
}

fn is_invalid(made: Result<(), Error>, text: &str) {
    let error = made.expect_err("a volume is made there");
    assert!(matches!(error, Error::Invalid { option: "device", .. }), "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn a_device_with_data_is_taken_only_when_told() {
    let Some(raw) = Loop::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), &on(&raw.device), false);
    // An empty volume is there all the same.
    is_invalid(Volume::create(folder.path(), "w", &on(&raw.device)), "--force");
    has_its_content(folder.path());
    let larger = Config { device: Some(raw.device.clone()), ..Config::new(1 << 30) };
    for create in [Volume::create, Volume::create_over] {
        let error = create(folder.path(), "w", &larger).unwrap_err().to_string();
        assert!(error.contains("which has 67108864; "), "{error}");
        assert!(error.ends_with(" is the largest that fits there"), "{error}");
    }
    assert!(Volume::create_over(folder.path(), "v", &on(&raw.device)).is_err());
    has_its_content(folder.path());
    Volume::create_over(folder.path(), "w", &on(&raw.device)).unwrap();
    is_invalid(Volume::create(folder.path(), "x", &on(&raw.device)), "--force");
    let error = open(folder.path()).err().expect("another volume has its device");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    Volume::open(folder.path(), "w", &mut |_, _| {}).unwrap().close().unwrap();
    assert_eq!(names(folder.path()).iter().filter(|name| name.starts_with('x')).count(), 0);
}

#[test]
fn a_device_that_is_gone_is_not_made_anew() {
    let Some(raw) = Loop::new() else { return };
    let (folder, nodes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = nodes.path().join("disk");
    std::os::unix::fs::symlink(&raw.device, &node).unwrap();
    create(folder.path(), &on(&node), false);
    std::fs::remove_file(&node).unwrap();
    is_refused(folder.path(), "disk");
    assert_eq!(names(nodes.path()), [""; 0]);
    // The path leads to another device now.
    let Some(other) = Loop::new() else { return };
    std::os::unix::fs::symlink(&other.device, &node).unwrap();
    is_refused(folder.path(), "disk");
    std::fs::remove_file(&node).unwrap();
    std::os::unix::fs::symlink(&raw.device, &node).unwrap();
    has_its_content(folder.path());
}

/// A file lies where a volume's raw device was: its length is not changed.
#[test]
fn a_file_in_place_of_a_device_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), &Config::new(SIZE), false);
    let (shape, file) = (folder.path().join("v.volume"), folder.path().join("disk"));
    let on_device = format!("{}device = {file:?}\n", std::fs::read_to_string(&shape).unwrap());
    std::fs::write(&shape, on_device).unwrap();
    std::fs::rename(folder.path().join("v.log"), &file).unwrap();
    let bytes = Config::new(SIZE).geometry().unwrap().file_bytes();
    for len in [bytes / 2, 2 * bytes] {
        std::fs::File::options().write(true).open(&file).unwrap().set_len(len).unwrap();
        is_refused(folder.path(), "disk");
        assert!(Volume::resize(folder.path(), "v", 2 * SIZE).is_err());
        assert_eq!(std::fs::metadata(&file).unwrap().len(), len);
    }
}

#[test]
fn what_is_no_device_or_is_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    is_invalid(Volume::create(folder.path(), "v", &on(&file)), "there is no");
    std::fs::write(&file, b"").unwrap();
    is_invalid(Volume::create(folder.path(), "v", &on(&file)), "no block device");
    assert_eq!(names(folder.path()), ["file"]);
    let Some(raw) = Loop::new() else { return };
    let mounted = tempfile::tempdir().unwrap();
    let mkfs = Command::new("mkfs.ext4").arg("-q").arg(&raw.device).status();
    let mount = || Command::new("mount").arg(&raw.device).arg(mounted.path()).status();
    if !(mkfs.is_ok_and(|made| made.success()) && mount().is_ok_and(|mounted| mounted.success())) {
        return skip::skipped("an ext4 file system on a loop device");
    }
    is_invalid(Volume::create(folder.path(), "v", &on(&raw.device)), "in use");
    is_invalid(Volume::create_over(folder.path(), "v", &on(&raw.device)), "in use");
    assert!(Command::new("umount").arg(mounted.path()).status().unwrap().success());
    is_invalid(Volume::create(folder.path(), "v", &on(&raw.device)), "--force");
    Volume::create_over(folder.path(), "v", &on(&raw.device)).unwrap();
    Volume::delete(folder.path(), "v").unwrap();
}

/// (offset, kind) of the blocks of the newest segment that are not content.
fn marked_blocks(log: &[u8]) -> Vec<(usize, u8)> {
    let marked = (0..log.len()).step_by(BLOCK as usize).filter(|at| &log[at + 40..at + 48] == b"GRVOLUME");
    let sequence =
        |at: usize| log[at + 8..at + 14].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let newest = marked.clone().map(sequence).max().unwrap();
    marked.filter(|at| sequence(*at) == newest).map(|at| (at, log[at + 14])).collect()
}

/// The newest segment has no summary: its header and footers show what was flushed. A damaged one must not count as
/// never written: flushed blocks would get their old content back.
#[test]
fn damage_to_what_says_what_was_flushed_refuses_the_start() {
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "v", &Config::new(SIZE)).unwrap();
    let (volume, mut io) = (open(folder.path()).unwrap(), Io::new());
    volume.write(&mut io, 0, &vec![1; 1 << 20]).unwrap();
    volume.close().unwrap();
    let volume = open(folder.path()).unwrap();
    for lba in 0..5 {
        volume.write(&mut io, lba * BLOCK, &[2; BLOCK as usize]).unwrap();
        volume.commit().unwrap();
    }
    volume.abandon();
    let log = folder.path().join("v.log");
    let files = names(folder.path());
    let whole: Vec<_> = files.iter().map(|name| std::fs::read(folder.path().join(name)).unwrap()).collect();
    let restore = || {
        for (name, bytes) in files.iter().zip(&whole) {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
    };
    let bytes = std::fs::read(&log).unwrap();
    let damage = |at: usize| {
        restore();
        let mut bytes = bytes.clone();
        bytes[at + 100] ^= 4;
        std::fs::write(&log, bytes).unwrap();
    };
    let marked = marked_blocks(&bytes);
    assert_eq!(marked.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), [1, 2, 2, 2, 2, 2]);
    let contents = || {
        let (volume, mut io) = (open(folder.path()).unwrap(), Io::new());
        let mut found = [0; BLOCK as usize];
        let contents =
            (0..6).map(|lba| volume.read(&mut io, lba * BLOCK, &mut found).map(|()| found[0]).ok());
        let contents: Vec<Option<u8>> = contents.collect();
        volume.close().unwrap();
        contents
    };
    for (at, _) in &marked[..5] {
        damage(*at);
        is_refused(folder.path(), "v.log");
    }
    // The last commit cannot be distinguished from one that was never written.
    damage(marked[5].0);
    assert_eq!(contents(), [2, 2, 2, 2, 1, 1].map(Some));
    damage(marked[5].0 - BLOCK as usize);
    assert_eq!(contents(), [2, 2, 2, 2, 1, 1].map(Some));
    // Content of earlier commits is damaged, and does not fall back to older content.
    damage(marked[3].0 - BLOCK as usize);
    assert_eq!(contents(), [Some(2), Some(2), None, Some(2), Some(2), Some(1)]);
    restore();
    assert_eq!(contents(), [2, 2, 2, 2, 2, 1].map(Some));
}
