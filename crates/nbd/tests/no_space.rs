//! A volume in a full file system: writes and flushes fail, nothing flushed is lost, and with room again all goes on.

mod common;

use common::bytes::*;
use common::serving::Serving;
use common::skip;
use granary_nbd::{Exports, VolumeExports};
use granary_volume::{Config, Volume};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 64 * MIB;
const PIECE: u64 = 64 << 10;

/// A file system of 24 MiB, until it is dropped.
struct SmallSpace(
    PathBuf,
    #[expect(dead_code, reason = "it is removed behind the file system")] tempfile::TempDir,
);

impl SmallSpace {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m", "none"]).arg(folder.path());
        let is_mounted = mount.output().is_ok_and(|mounted| mounted.status.success());
        is_mounted.then(|| Self(folder.path().to_owned(), folder))
    }
}

impl Drop for SmallSpace {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn open(folder: &Path) -> Arc<Volume> {
    Arc::new(Volume::open(folder, "disk", &mut |_, _| {}).unwrap())
}

struct Client(UnixStream);

impl Client {
    fn new(serving: &Serving) -> Self {
        let mut stream = UnixStream::connect(serving.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        stream.write_all(&handshake("disk", false)).unwrap();
        stream.read_exact(&mut [0; 18 + (20 + 12) + 20]).unwrap();
        Self(stream)
    }

    /// Sends a request and returns the error of its reply.
    fn ask(&mut self, asked: &[u8]) -> u32 {
        self.0.write_all(asked).unwrap();
        let mut header = [0; 16];
        self.0.read_exact(&mut header).expect("a reply comes");
        Heard(&header).simple().0
    }

    fn piece(&mut self, number: u64) -> Vec<u8> {
        assert_eq!(self.ask(&request(0, READ, 0, number * PIECE, PIECE as u32)), 0, "piece {number}");
        let mut bytes = vec![0; PIECE as usize];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }
}

/// The content of a piece.
fn content(number: u64) -> Vec<u8> {
    (number + 1).to_le_bytes().repeat(PIECE as usize / 8)
}

#[test]
fn a_full_file_system_costs_nothing_that_was_flushed() {
    let Some(space) = SmallSpace::new() else {
        return skip::skipped("no tmpfs can be mounted: a full file system below a volume");
    };
    let folder = space.0.as_path();
    Volume::create(folder, "disk", &Config::new(SIZE)).unwrap();
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 8 << 20]).unwrap();
    let volume = open(folder);
    let serving = Serving::new(VolumeExports::new([Arc::clone(&volume)]).open("").unwrap());
    let mut client = Client::new(&serving);
    let (mut flushed, mut written) = (0, 0);
    let error = loop {
        let error = client.ask(&write(0, 0, written * PIECE, &content(written)));
        if error != 0 {
            break error;
        }
        written += 1;
        if written % 8 == 0 {
            match client.ask(&request(0, FLUSH, 0, 0, 0)) {
                0 => flushed = written,
                error => break error,
            }
        }
        assert!(written * PIECE < SIZE, "there is no room for all of it");
    };
    assert_eq!(error, ENOSPC);
    assert!(flushed * PIECE > 4 * MIB, "{flushed} pieces are flushed");
    assert_eq!(client.ask(&write(FUA, 0, 0, &content(0))), ENOSPC, "there is still no room");
    for number in 0..flushed {
        assert!(client.piece(number) == content(number), "piece {number}");
    }
    std::fs::remove_file(&ballast).unwrap();
    // Failed writes are retried after a while, here for a minute.
    let flushes = (0..1200).position(|_| {
        std::thread::sleep(Duration::from_millis(50));
        client.ask(&request(0, FLUSH, 0, 0, 0)) == 0
    });
    assert!(flushes.is_some(), "with room again a flush succeeds");
    assert_eq!(client.ask(&write(FUA, 0, written * PIECE, &content(written))), 0);
    drop(client);
    serving.server.stop();
    let mut volume = volume;
    loop {
        match Arc::try_unwrap(volume) {
            Ok(volume) => break volume.abandon(),
            Err(shared) => volume = shared,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let volume = open(folder);
    let serving = Serving::new(VolumeExports::new([Arc::clone(&volume)]).open("").unwrap());
    let mut client = Client::new(&serving);
    for number in (0..flushed).chain([written]) {
        assert!(client.piece(number) == content(number), "piece {number} after a kill");
    }
}
