//! The server with all it keeps, and what is known of that.

use crate::dictionaries::Dictionaries;
use crate::disk::{Disk, Mounted};
use crate::history::History;
use crate::items::Items;
use crate::nbd::Client;
use crate::process::Process;
use crate::program::GRANARY;
use crate::programs::run;
use crate::unlocked::await_unlocked;
use crate::volume::{self, Blocks};
use crate::watched::Watched;
use fastrand::Rng;
use std::path::{Path, PathBuf};

/// Operations of one life of the server.
const OPERATIONS: usize = 150;

/// The server's folder on the file system.
const FOLDER: &str = "granary/data";

/// A boot id that no kernel draws.
const BOOT_ID: &str = "00000000-0000-0000-0000-00000000000a\n";

/// How the server ends.
#[derive(Clone, Copy)]
enum End {
    Kill,
    Stop,
}

pub struct World {
    dictionaries: Dictionaries,
    items: Items,
    blocks: Blocks,
    watched: Watched,
    path: PathBuf,
    boot_id: PathBuf,
    arguments: Vec<&'static str>,
}

impl World {
    pub fn new(folder: &Path, disk: &Disk, admission: &'static str) -> Self {
        let boot_id = folder.join("boot_id");
        std::fs::write(&boot_id, BOOT_ID).unwrap();
        let arguments = vec![
            "--memcached-sync-changes",
            "--memcached-memory=2MiB",
            "--memcached-flash=32MiB",
            "--memcached-max-item-size=8KiB",
            "--memcached-compression=zstd",
            "--memcached-admission",
            admission,
        ];
        Self {
            dictionaries: Dictionaries::new(folder),
            items: Items::new(),
            blocks: Blocks::new(),
            watched: Watched::new(),
            path: disk.path().join(FOLDER),
            boot_id,
            arguments,
        }
    }

    /// Lives of the server, each with its end.
    pub fn live(&mut self, history: &mut History, random: &mut Rng) {
        let path = self.path.to_str().unwrap().to_owned();
        let create = ["volume", "create", volume::NAME, "--size", volume::SIZE, "--path", &path];
        history.note("volume create", || run(Path::new("/"), GRANARY, &create));
        let memory = memory();
        let none = Path::new("none");
        for (life, (start, memory, end)) in [
            ("the first start", memory.path(), End::Kill),
            // What was in write buffers is lost.
            ("a start after a kill", none, End::Kill),
            ("a start after a kill", none, End::Stop),
            ("a start after a stop", memory.path(), End::Kill),
        ]
        .into_iter()
        .enumerate()
        {
            let process = history.note(start, || Process::start(&self.path, None, memory, &self.arguments));
            let mut client = Client::new(process.nbd(), volume::NAME);
            self.blocks.restarted(&mut client, history);
            self.items.looked_at(&process, history.len());
            if life == 0 {
                self.watched.make(&self.path, &process, history);
            }
            for _ in 0..OPERATIONS {
                match random.u8(..100) {
                    0 => self.watched.change(&self.path, &process, history, random),
                    1..33 => self.dictionaries.change(&process, history, random),
                    33..66 => self.items.change(&process, history, random),
                    _ => self.blocks.change(&mut client, history, random),
                }
            }
            drop(client);
            match end {
                End::Kill => {
                    drop(process);
                    await_unlocked(&self.path);
                }
                End::Stop => {
                    self.items.looked_at(&process, history.len());
                    self.items.stopped(history.len());
                    self.blocks.stopped(history.len());
                    history.note("a stop", || process.stop());
                }
            }
        }
    }

    /// Whether the server had not been stopped by then: what is there outlived kills alone.
    pub fn is_before_stops(&self, done: usize) -> bool {
        self.items.stops().iter().all(|stop| done <= *stop)
    }

    /// Starts the server after a loss of power behind `done` operations, and looks at everything; gives how many items
    /// and how many rows of dictionaries are there.
    pub fn check(&mut self, mounted: &Mounted, done: usize, random: &mut Rng) -> [usize; 2] {
        if done == 0 {
            return [0, 0];
        }
        let memory = memory();
        let path = mounted.path().join(FOLDER);
        self.watched.change_while_down(&path, done, random);
        let process =
            Process::start(&path, Some((&self.boot_id, mounted.path())), memory.path(), &self.arguments);
        self.blocks.check(&process, done);
        let there = [self.items.check(&process, done), self.dictionaries.check(&process, done)];
        self.watched.check(&path, &process, done);
        there
    }
}

/// A folder in RAM.
fn memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}
