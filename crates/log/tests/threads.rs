//! Reads of a process that may start no thread.

#![cfg(not(miri))]

use granary_log::device::{Device, FileDevice};
use granary_log::{AlignedBuffer, Engine, Extent, Io};
use std::path::Path;
use std::process::Command;

/// The folder of the process without threads.
const FOLDER: &str = "GRANARY_TEST_WITHOUT_THREADS";

/// A stack that fits no address space.
const STACK_BYTES: &str = "281474976710656";

const SIZE: usize = 1 << 20;

#[test]
fn worker() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "no thread can be started");
    let device = FileDevice::open(&Path::new(&folder).join("data"), SIZE as u64).unwrap();
    let mut bytes = AlignedBuffer::zeroed(SIZE);
    bytes.chunks_exact_mut(8).enumerate().for_each(|(i, word)| word.copy_from_slice(&i.to_le_bytes()));
    device.write_at(0, &[&bytes]).unwrap();
    let extents: Vec<Extent> =
        (0..SIZE as u64 / 4096).rev().map(|block| Extent { offset: block * 4096, len: 4096 }).collect();
    let mut read = 0;
    Io::with_engine(Engine::Pool).read_many(&device, &extents, |i, result| {
        let from = extents[i].offset as usize;
        assert!(result.unwrap() == &bytes[from..from + 4096], "block at {from}");
        read += 1;
    });
    assert_eq!(read, extents.len());
}

#[test]
fn a_process_that_may_start_no_thread_reads_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--test-threads=1"]);
    let output = command.env(FOLDER, folder.path()).env("RUST_MIN_STACK", STACK_BYTES).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
