//! What `granary server` promises after a loss of power, on a real file system.
//!
//! Dictionaries, memcached's items and a volume are changed on a file system whose disk logs every write and flush;
//! each change is noted with the byte of that log at which it was answered. Then the disk is made as a loss of power
//! may leave it at some byte: all that was flushed, and of the writes since then none, some or all. The file system is
//! mounted anew, the server started there as on a machine that came up again, and asked for everything.
//!
//! GRANARY_CUTS: how many losses of power for each file system (20). GRANARY_SEED: another course of events.

mod dictionaries;
mod disk;
#[path = "../../../nbd/tests/common/fuse.rs"]
#[allow(dead_code, reason = "only the disk is used")]
mod fuse;
mod history;
mod items;
#[path = "../../../nbd/tests/common/logged.rs"]
#[allow(dead_code, reason = "images are files")]
mod logged;
mod nbd;
mod process;
#[path = "../server/program.rs"]
mod program;
#[path = "../../../nbd/tests/common/programs.rs"]
mod programs;
#[path = "../../../log/tests/common/skip.rs"]
mod skip;
mod statements;
#[path = "../server/unlocked.rs"]
mod unlocked;
mod volume;
mod watched;
mod world;

use disk::{Disk, FileSystem, Folder, Image};
use fastrand::Rng;
use history::History;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use world::World;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Held by one file system at a time: servers that are started in mount namespaces of their own have each other's
/// mounts, and would keep them.
static ALONE: Mutex<()> = Mutex::new(());

/// Lives through changes on one file system, and looks at what losses of power leave of it.
fn lose_power(file_system: FileSystem, admission: &'static str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let started = Instant::now();
    let seed = setting("GRANARY_SEED", 1);
    let mut random = Rng::with_seed(seed * 3 + file_system as u64);
    let Some(folder) = Folder::new() else { return };
    let Some(disk) = Disk::new(folder.path(), file_system) else { return };
    let mut image = Image::of(&disk, &folder.path().join("image"));
    let mut history = History::new(&disk);
    let mut world = World::new(folder.path(), &disk, admission);
    world.live(&mut history, &mut random);
    let lived = started.elapsed();
    let cuts = history.cuts(setting("GRANARY_CUTS", 20) as usize, &mut random);
    let entries = disk.entries();
    drop(disk);
    // Items and rows that were there, after cuts before the stop and after others.
    let mut warm = [[0; 2]; 2];
    for (number, cut) in cuts.iter().enumerate() {
        let mounted = image.mount(&entries, cut, &mut random);
        let done = history.done(cut.log_bytes);
        let under_way = history.kind(done).unwrap_or("nothing");
        println!("cut {number}: {cut:?}, after operation {done}, {}, before {under_way}", cut.after);
        let there = world.check(&mounted, done, &mut random);
        let sums = &mut warm[usize::from(world.is_before_stops(done))];
        *sums = [sums[0] + there[0], sums[1] + there[1]];
    }
    println!(
        "{file_system:?}, {admission}, seed {seed}: {} operations in {lived:?}, {} cuts, {warm:?} items and rows warm, {:?}",
        history.len(),
        cuts.len(),
        started.elapsed()
    );
    let [after_stops, before_stops] = warm;
    assert!(after_stops[0] + before_stops[0] > 0, "items that were synced are there");
    assert!(after_stops[1] + before_stops[1] > 0, "rows that were synced are there");
    // DRAM first, little is on the SSD before RAM is full of it.
    assert!(before_stops[0] > 0 || admission != "all", "items that no stop wrote are there");
}

#[test]
fn what_was_answered_is_there_on_ext4() {
    lose_power(FileSystem::Ext4, "all");
}

#[test]
fn what_was_answered_is_there_on_xfs() {
    lose_power(FileSystem::Xfs, "reuse");
}

#[test]
fn what_was_answered_is_there_on_btrfs() {
    lose_power(FileSystem::Btrfs, "all");
}
