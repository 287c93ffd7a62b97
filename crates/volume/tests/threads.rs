//! A process that may start no further thread, at each of the threads that a volume needs.

use granary_volume::{Config, Io, Volume};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::process::Command;

/// The folder of the process whose threads are counted.
const FOLDER: &str = "GRANARY_TEST_WITH_FEW_THREADS";

/// A thread's stack dominates the process's address space.
const STACK_BYTES: u64 = 4 << 30;

const BLOCK: usize = 4096;

fn open(folder: &Path) -> Result<Volume, granary_volume::Error> {
    Volume::open(folder, "v", &mut |_, _| {})
}

/// Lets the process start only `threads` more threads.
fn allow_threads(threads: u64) {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let bytes = pages * rustix::param::page_size() as u64 + threads * STACK_BYTES + STACK_BYTES / 2;
    setrlimit(Resource::As, Rlimit { current: Some(bytes), ..getrlimit(Resource::As) }).unwrap();
}

#[test]
fn worker() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    for threads in 0..3 {
        allow_threads(threads);
        // Twice: the first refused start must not leave the volume held.
        for _ in 0..2 {
            let refused = open(folder).err().expect("a thread is missing").to_string();
            assert!(refused.starts_with("cannot start a thread for"), "{threads} threads: {refused}");
        }
    }
    allow_threads(3);
    let volume = open(folder).unwrap();
    let mut found = [0; BLOCK];
    volume.read(&mut Io::new(), 0, &mut found).unwrap();
    assert_eq!(found, [7; BLOCK]);
    volume.close().unwrap();
}

#[test]
fn a_volume_that_finds_no_threads_is_refused_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "v", &Config::new(16 << 20)).unwrap();
    let volume = open(folder.path()).unwrap();
    volume.write(&mut Io::new(), 0, &[7; BLOCK]).unwrap();
    volume.close().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--test-threads=1"]).env(FOLDER, folder.path());
    let output = command.env("RUST_MIN_STACK", STACK_BYTES.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
