//! Volumes of more than 2^32 sectors over NBD: sectors beyond 2 TiB are told from those that 32 bits would make of
//! them, through kills of the server and from a map that was written down.

mod common;
#[path = "../../log/tests/common/worker.rs"]
mod worker;

use common::bytes::*;
use granary_nbd::{Options, Server, UnixSocket, VolumeExports};
use granary_volume::map::MapKind;
use granary_volume::{Config, Error, Io, Volume};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::Worker;

const SECTOR: u64 = 512;
const BLOCK: u64 = 4096;
const TIB: u64 = 1 << 40;
/// The volume's size, of which next to nothing is written.
const SIZE: u64 = 3 * TIB;
/// The first byte whose sector has no number of 32 bits.
const BEYOND: u64 = SECTOR << 32;

/// Ranges that are written: (offset, length). Each at its place, and where other ranges would be if their bytes, their
/// sectors or their blocks were counted in 32 bits, signed or not.
const WRITTEN: [(u64, u64); 9] = [
    (0, BLOCK),
    (4 * BLOCK + SECTOR, 5 * SECTOR),
    (1 << 32, 2 * BLOCK),
    (BEYOND / 2 - BLOCK, 2 * BLOCK),
    (BEYOND - BLOCK - SECTOR, 2 * BLOCK),
    (BEYOND + 4 * BLOCK + SECTOR, 6 * SECTOR),
    (BEYOND + (1 << 32) + BLOCK, 33 * BLOCK),
    (BEYOND + BEYOND / 4 + 7 * SECTOR, SECTOR),
    (SIZE - BLOCK, BLOCK),
];

/// The content of a range as it is written for the `version`th time: each sector says which one it is.
fn content((offset, len): (u64, u64), version: u64) -> Vec<u8> {
    let sectors = offset / SECTOR..(offset + len) / SECTOR;
    sectors.flat_map(|sector| [sector, version].map(u64::to_le_bytes).concat().repeat(32)).collect()
}

/// A connection to the server of a folder's volume.
struct Client(UnixStream);

impl Client {
    fn new(folder: &Path) -> Self {
        let mut stream = UnixStream::connect(folder.join("nbd.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&handshake("disk", false)).unwrap();
        let mut heard = [0; 18 + (20 + 12) + 20];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(heard[18 + 20 + 2..][..8], SIZE.to_be_bytes(), "the size of the export");
        Self(stream)
    }

    /// The error of the reply to a request; 0: none.
    fn ask(&mut self, request: &[u8]) -> u32 {
        self.0.write_all(request).unwrap();
        let mut header = [0; 16];
        self.0.read_exact(&mut header).expect("a reply comes");
        Heard(&header).simple().0
    }

    fn read(&mut self, (offset, len): (u64, u64)) -> Vec<u8> {
        assert_eq!(self.ask(&request(0, READ, 0, offset, len as u32)), 0, "READ of {len} bytes at {offset}");
        let mut found = vec![0; len as usize];
        self.0.read_exact(&mut found).unwrap();
        found
    }
}

/// Opens the folder's volume. A process that was killed may have its files locked for a while.
fn open(folder: &Path) -> Volume {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match Volume::open(folder, "disk", &mut |_, _| {}) {
            Err(Error::InUse { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.unwrap(),
        }
    }
}

/// The server of a folder's volume, in a process to be killed; it is a test only in form.
#[test]
fn worker() {
    let Some((folder, [first])) = worker::told() else { return };
    let mut options = Options::new(Arc::new(VolumeExports::new([Arc::new(open(&folder))])));
    let socket = folder.join("nbd.sock");
    let _ = std::fs::remove_file(&socket);
    options.sockets.push(UnixSocket::new(socket));
    let _server = Server::start(options).unwrap();
    worker::carry_out(&folder, first, |_| std::thread::sleep(Duration::MAX), |_| {});
}

/// A process that serves the folder's volume.
fn start(folder: &Path) -> Worker {
    let mut server = Worker::start(folder, &[1]);
    server.wait_for_operation(1);
    server
}

/// Checks all ranges and what lies around them, and that nothing else has content where 32 bits would put it.
fn check(mut read: impl FnMut((u64, u64)) -> Vec<u8>, version: u64, trimmed: &[(u64, u64)], what: &str) {
    let is_written = |at: u64| WRITTEN.iter().any(|(offset, len)| (*offset..offset + len).contains(&at));
    let is_trimmed = |at: u64| trimmed.iter().any(|(offset, len)| (*offset..offset + len).contains(&at));
    for (offset, len) in WRITTEN {
        let sectors = len / SECTOR;
        for place in [offset, offset % BEYOND, offset % (1 << 32), offset + BEYOND / 2, offset + BEYOND] {
            let first = place.saturating_sub(3 * SECTOR);
            let last = (place + (sectors + 3) * SECTOR).min(SIZE);
            if first >= last {
                continue;
            }
            let found = read((first, last - first));
            for (at, found) in (first..last).step_by(SECTOR as usize).zip(found.chunks(SECTOR as usize)) {
                let wanted = match is_written(at) && !is_trimmed(at) {
                    true => content((at, SECTOR), version),
                    false => vec![0; SECTOR as usize],
                };
                assert!(found == wanted, "{what}: sector {}: {:?}", at / SECTOR, &found[..16]);
            }
        }
    }
}

#[test]
fn sectors_beyond_two_to_the_32_survive_kills() {
    for map in MapKind::ALL {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        // A start reads a header of each segment: of longer ones there are fewer.
        let config = Config { map, segment_bytes: 16 << 20, ..Config::new(SIZE) };
        Volume::create(folder, "disk", &config).unwrap();
        let server = start(folder);
        let mut client = Client::new(folder);
        for range in WRITTEN {
            assert_eq!(client.ask(&write(FUA, 0, range.0, &content(range, 1))), 0, "{map}: {range:?}");
        }
        check(|range| client.read(range), 1, &[], &format!("{map}, written"));
        for (kind, offset) in [(READ, SIZE), (WRITE_ZEROES, SIZE - SECTOR), (TRIM, u64::MAX - BLOCK + 1)] {
            let error = client.ask(&request(0, kind, 0, offset, BLOCK as u32));
            assert!(
                [EINVAL, ENOSPC].contains(&error),
                "{map}: {error} for {kind} at {offset}, beyond the end"
            );
        }
        server.kill();

        let server = start(folder);
        let mut client = Client::new(folder);
        check(|range| client.read(range), 1, &[], &format!("{map}, killed"));
        for range in WRITTEN {
            assert_eq!(client.ask(&write(0, 0, range.0, &content(range, 2))), 0, "{map}: {range:?}");
        }
        // Inside a range, and a whole one.
        let trimmed = [(BEYOND + (1 << 32) + 3 * BLOCK, 20 * BLOCK), (SIZE - BLOCK, BLOCK)];
        for (kind, (offset, len)) in [TRIM, WRITE_ZEROES].into_iter().zip(trimmed) {
            assert_eq!(client.ask(&request(0, kind, 0, offset, len as u32)), 0, "{map}: {kind} at {offset}");
        }
        assert_eq!(client.ask(&request(0, FLUSH, 0, 0, 0)), 0);
        server.kill();

        for end in ["killed again", "closed"] {
            let volume = open(folder);
            let mut io = Io::new();
            let read = |(offset, len): (u64, u64)| {
                let mut found = vec![0; len as usize];
                volume.read(&mut io, offset, &mut found).unwrap();
                found
            };
            check(read, 2, &trimmed, &format!("{map}, {end}"));
            assert_eq!(volume.check_map(&mut |_| {}), 0, "{map}, {end}");
            volume.close().unwrap();
        }
    }
}
