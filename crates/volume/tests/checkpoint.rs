//! Checkpoints on a file system: all maps, damage of every kind, and interrupted writes.

mod common;

use common::{maps, place};
use fastrand::Rng;
use granary_volume::checkpoint::{self, CheckpointHeader};
use granary_volume::map::{Map, MapKind, Place};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn header(blocks: u64) -> CheckpointHeader {
    CheckpointHeader { instance: 0xABCD, block_size: 4096, blocks, sequence: 1 << 40, position: 17 }
}

fn write(path: &Path, map: &dyn Map) {
    checkpoint::write(path, &header(map.blocks()), map, &mut |_| {}).unwrap();
}

fn is_found(path: &Path) -> bool {
    checkpoint::read(path).unwrap().is_some()
}

struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
    fresh: PathBuf,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let (path, fresh) = (folder.path().join("v.map"), folder.path().join("v.map.new"));
    Folder { _folder: folder, path, fresh }
}

/// Fills a map with stretches and single blocks.
fn fill(map: &dyn Map, mapped: u64, seed: u64) {
    let mut random = Rng::with_seed(seed);
    while map.len() < mapped {
        let first = random.u64(..map.blocks());
        let end = (first + random.u64(1..5000)).min(map.blocks());
        for lba in first..if random.bool() { end } else { first + 1 } {
            map.set(lba, place(random.u32(..Place::BLOCK_MAX)));
        }
    }
}

#[test]
fn what_was_written_is_read_by_all_maps() {
    for blocks in [1, 1024, 1025, 3_000_000] {
        let Folder { path, fresh, _folder } = folder();
        for (name, map) in maps(blocks) {
            for mapped in [0, blocks.div_ceil(20)] {
                fill(&*map, mapped, blocks);
                let mut told = Vec::new();
                checkpoint::write(&path, &header(blocks), &*map, &mut |done| told.push(done)).unwrap();
                assert!(told.is_sorted() && told.last() == Some(&blocks), "{name}: {told:?}");
                assert!(!fresh.exists());
                for (name, mut copy) in maps(blocks) {
                    let found = checkpoint::read(&path).unwrap().unwrap();
                    assert_eq!(found.header, header(blocks));
                    let mut told = Vec::new();
                    found.restore(&mut *copy, &mut |done| told.push(done)).unwrap();
                    assert!(told.is_sorted() && told.last() == Some(&blocks), "{name}: {told:?}");
                    let mut from = 0;
                    while let Some((lba, place)) = map.next_mapped(from) {
                        assert_eq!(copy.next_mapped(from), Some((lba, place)), "{name}");
                        from = lba + 1;
                    }
                    assert_eq!((copy.next_mapped(from), copy.len()), (None, map.len()), "{name}");
                }
            }
        }
    }
}

#[test]
fn any_flipped_bit_and_any_cut_is_found() {
    let Folder { path, _folder, .. } = folder();
    let map = MapKind::Flat.create(1500).unwrap();
    fill(&*map, 700, 1);
    write(&path, &*map);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 64 + 2 * 4112 + 32);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        assert!(!is_found(&path), "byte {at}");
        fs::write(&path, &bytes[..at]).unwrap();
        assert!(!is_found(&path), "cut to {at} bytes");
    }
    // Extra bytes; a page twice, or missing.
    let page = &bytes[64..64 + 4112];
    let longer = [&bytes[..], &[0]].concat();
    let twice = [&bytes[..64], page, page, &bytes[64 + 4112..]].concat();
    let missing = [&bytes[..64], &bytes[64 + 4112..]].concat();
    let swapped = [&bytes[..64], &bytes[64 + 4112..64 + 2 * 4112], page, &bytes[64 + 2 * 4112..]].concat();
    for damaged in [longer, twice, missing, swapped] {
        fs::write(&path, damaged).unwrap();
        assert!(!is_found(&path));
    }
    fs::write(&path, &bytes).unwrap();
    assert!(is_found(&path));
}

/// A page of another checkpoint counts as damage, even if it is of the same log.
#[test]
fn pages_of_two_checkpoints_do_not_mix() {
    let Folder { path, _folder, .. } = folder();
    let map = MapKind::Flat.create(1024).unwrap();
    map.set(1, place(1));
    write(&path, &*map);
    let older = fs::read(&path).unwrap();
    map.set(1, place(2));
    let newer_header = CheckpointHeader { sequence: (1 << 40) + 1, ..header(1024) };
    checkpoint::write(&path, &newer_header, &*map, &mut |_| {}).unwrap();
    let newer = fs::read(&path).unwrap();
    fs::write(&path, [&newer[..64], &older[64..64 + 4112], &newer[64 + 4112..]].concat()).unwrap();
    assert!(!is_found(&path));
}

#[test]
fn what_is_no_checkpoint_is_none_and_what_cannot_be_read_is_an_error() {
    let Folder { path, _folder, .. } = folder();
    assert!(!is_found(&path), "there is none");
    for foreign in [&b""[..], b"GRANMAP1", &[0; 4096], &[0xFF; 64 + 32], b"#!/bin/sh\n"] {
        fs::write(&path, foreign).unwrap();
        assert!(!is_found(&path));
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = checkpoint::read(&path).unwrap_err();
    assert!(error.to_string().contains("v.map"), "{error}");
}

#[test]
fn what_is_not_published_changes_nothing() {
    let Folder { path, fresh, _folder } = folder();
    let map = MapKind::Flat.create(5000).unwrap();
    map.set(1, place(1));
    write(&path, &*map);
    let former = fs::read(&path).unwrap();
    map.set(1, place(2));
    // Given up.
    let prepared = checkpoint::prepare(&path, &header(5000), &*map, &mut |_| {}).unwrap();
    assert!(fresh.exists());
    drop(prepared);
    assert!(!fresh.exists() && fs::read(&path).unwrap() == former);
    // Killed: the left-over file does no harm.
    std::mem::forget(checkpoint::prepare(&path, &header(5000), &*map, &mut |_| {}).unwrap());
    fs::write(&fresh, [7; 100_000]).unwrap();
    assert!(fs::read(&path).unwrap() == former && is_found(&path));
    checkpoint::prepare(&path, &header(5000), &*map, &mut |_| {}).unwrap().publish().unwrap();
    let mut copy = MapKind::Flat.create(5000).unwrap();
    checkpoint::read(&path).unwrap().unwrap().restore(&mut *copy, &mut |_| {}).unwrap();
    assert_eq!(copy.get(1), Some(place(2)));
}

/// A full device: the write fails, and the former checkpoint is there.
#[test]
fn a_write_that_fails_leaves_the_former_checkpoint() {
    let Folder { path, fresh, _folder } = folder();
    let map = MapKind::Flat.create(5000).unwrap();
    write(&path, &*map);
    let former = fs::read(&path).unwrap();
    map.set(1, place(1));
    std::os::unix::fs::symlink("/dev/full", &fresh).unwrap();
    let error = checkpoint::write(&path, &header(5000), &*map, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().contains("v.map.new"), "{error}");
    assert!(fs::read(&path).unwrap() == former && !fresh.exists());
    write(&path, &*map);
    assert!(fs::read(&path).unwrap() != former);
}

#[test]
fn a_checkpoint_that_changes_while_it_is_read_is_an_error() {
    let Folder { path, _folder, .. } = folder();
    let map = MapKind::Flat.create(5000).unwrap();
    fill(&*map, 1000, 2);
    write(&path, &*map);
    let bytes = fs::read(&path).unwrap();
    for at in [30, 100, bytes.len() - 1] {
        fs::write(&path, &bytes).unwrap();
        let found = checkpoint::read(&path).unwrap().unwrap();
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).unwrap();
        let mut copy = MapKind::Flat.create(5000).unwrap();
        let error = found.restore(&mut *copy, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "byte {at}");
    }
}

/// Writers go on meanwhile: the file is complete, and has for each block a place that it had.
#[test]
fn a_checkpoint_of_a_map_in_use_is_whole() {
    const BLOCKS: u64 = 300_000;
    for (name, map) in maps(BLOCKS) {
        let Folder { path, _folder, .. } = folder();
        (0..BLOCKS).step_by(3).for_each(|lba| assert_eq!(map.set(lba, place(lba as u32)), None));
        let (map, stop) = (&*map, AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Rng::with_seed(1);
                while !stop.load(Ordering::Relaxed) {
                    let lba = random.u64(..BLOCKS);
                    map.set(lba, place(lba as u32 + random.u32(..5) * 1_000_000));
                    if !lba.is_multiple_of(3) {
                        map.remove(lba);
                    }
                }
            });
            for _ in 0..5 {
                write(&path, map);
                let mut copy = MapKind::Flat.create(BLOCKS).unwrap();
                let found = checkpoint::read(&path).unwrap().expect("it is whole");
                found.restore(&mut *copy, &mut |_| {}).unwrap();
                for lba in 0..BLOCKS {
                    let block = copy.get(lba).map(Place::block);
                    assert!(block.is_some() || !lba.is_multiple_of(3), "{name}: {lba} is missing");
                    assert!(block.is_none_or(|block| u64::from(block) % 1_000_000 == lba), "{name}: {lba}");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// 64 GiB in blocks of 4 KiB: 64 MiB of map. docs/studies/volume.md has the time that it takes at a start.
#[test]
fn a_large_checkpoint_is_read() {
    let Folder { path, _folder, .. } = folder();
    let blocks = (64 << 30) / 4096;
    let map = MapKind::Flat.create(blocks).unwrap();
    (0..blocks).for_each(|lba| assert_eq!(map.set(lba, place(lba as u32)), None));
    write(&path, &*map);
    drop(map);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < blocks * 4 * 101 / 100, "{bytes} bytes");
    let mut copy = MapKind::Flat.create(blocks).unwrap();
    checkpoint::read(&path).unwrap().unwrap().restore(&mut *copy, &mut |_| {}).unwrap();
    assert_eq!(copy.len(), blocks);
    (0..blocks).for_each(|lba| assert_eq!(copy.get(lba), Some(place(lba as u32))));
}
