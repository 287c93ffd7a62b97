//! A volume whose device takes nothing for a while: writes wait for room, and nothing else waits for them. Waiting
//! commands of a client that has gone are given up.

mod common;

use common::bytes::*;
use common::gated::GatedDevice;
use common::random::Random;
use common::serving::Serving;
use granary_nbd::limits::COMMANDS_IN_FLIGHT_MAX;
use granary_nbd::protocol::Errno;
use granary_nbd::{Exports, VolumeExports};
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Config, Io, Volume};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 32 << 20;
const PIECE: u64 = 64 << 10;
const READ_COOKIE: u64 = 1 << 40;
const TRIM_COOKIE: u64 = 2 << 40;
const FLUSH_COOKIE: u64 = 3 << 40;

struct Full {
    serving: Serving,
    device: GatedDevice,
    volume: Arc<Volume>,
    _folder: tempfile::TempDir,
}

impl Full {
    /// A volume whose device is shut.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new(SIZE);
        let device = GatedDevice::new(config.geometry().unwrap().file_bytes());
        let volume = Volume::open_on(folder.path(), "disk", &config, Box::new(device.clone())).unwrap();
        let volume = Arc::new(volume);
        let serving = Serving::new(VolumeExports::new([Arc::clone(&volume)]).open("").unwrap());
        device.set_open(false);
        Self { serving, device, volume, _folder: folder }
    }

    fn client(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.serving.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&handshake("disk", false)).unwrap();
        let mut heard = vec![0; GREETING.len() + (20 + 12) + 20];
        stream.read_exact(&mut heard).unwrap();
        stream
    }

    /// Writes until some writes wait; returns the number of writes.
    fn fill(&self, stream: &mut UnixStream) -> u64 {
        // More than the log has room for, and fewer than may be in flight.
        let count = (SIZE + (12 << 20)) / PIECE;
        for i in 0..count {
            stream.write_all(&write(0, i, i * PIECE % SIZE, &[i as u8; PIECE as usize])).unwrap();
        }
        let until = Instant::now() + Duration::from_secs(60);
        while self.volume.stats().waits == 0 {
            assert!(Instant::now() < until, "{:?}", self.volume.stats());
            std::thread::sleep(Duration::from_millis(5));
        }
        count
    }
}

impl Drop for Full {
    /// Otherwise a failing test would wait for its volume.
    fn drop(&mut self) {
        self.device.set_open(true);
    }
}

/// The cookie of the next reply, whose data is skipped.
fn answer(stream: &mut UnixStream) -> u64 {
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("a reply comes");
    let (error, cookie) = Heard(&header).simple();
    assert_eq!(error, 0, "{cookie}");
    if cookie == READ_COOKIE {
        stream.read_exact(&mut [0; 512]).unwrap();
    }
    cookie
}

#[test]
fn reads_and_trims_go_on_while_writes_wait_for_room() {
    let full = Full::new();
    let mut stream = full.client();
    let writes = full.fill(&mut stream);
    let behind = [
        request(0, TRIM, TRIM_COOKIE, 0, 1 << 20),
        request(0, FLUSH, FLUSH_COOKIE, 0, 0),
        request(0, READ, READ_COOKIE, 5 * PIECE, 512),
    ];
    stream.write_all(&behind.concat()).unwrap();
    let mut answered = HashSet::new();
    while !(answered.contains(&READ_COOKIE) && answered.contains(&TRIM_COOKIE)) {
        assert!(answered.insert(answer(&mut stream)), "each is answered once");
    }
    let before = answered.len();
    assert!(before as u64 - 2 < writes, "writes wait");
    assert!(!answered.contains(&FLUSH_COOKIE));
    // All requests are completed before it ends.
    stream.write_all(&request(0, DISC, 0, 0, 0)).unwrap();
    full.device.set_open(true);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let mut rest = Heard(&rest);
    while !rest.0.is_empty() {
        let (error, cookie) = rest.simple();
        assert_eq!(error, 0, "{cookie}");
        assert!(answered.insert(cookie), "each is answered once");
    }
    assert_eq!(answered.len() as u64, writes + 3);
}

#[test]
fn others_are_served_while_writes_wait_for_room() {
    let full = Full::new();
    let mut writer = full.client();
    let writes = full.fill(&mut writer);
    let mut other = full.client();
    other.write_all(&write(0, 1, 0, &[1; 4096])).unwrap();
    other.write_all(&request(0, READ, READ_COOKIE, 9 * PIECE, 512)).unwrap();
    assert_eq!(answer(&mut other), READ_COOKIE);
    assert!(full.volume.stats().waits <= 2, "two connections wait: {:?}", full.volume.stats());
    // The client that goes away leaves nothing behind, and the other one is answered.
    drop(writer);
    full.device.set_open(true);
    assert_eq!(answer(&mut other), 1);
    let until = Instant::now() + Duration::from_secs(60);
    while full.serving.server.figures().connections > 1 {
        assert!(Instant::now() < until, "{writes} writes end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A client that was cut off comes back on another connection and repeats its unanswered writes: waiting writes of the
/// first connection must not be made after these.
#[test]
fn what_waits_of_a_client_that_has_gone_is_given_up() {
    let full = Full::new();
    let mut gone = full.client();
    let writes = full.fill(&mut gone);
    let last = (writes - 1) * PIECE % SIZE;
    drop(gone);
    let until = Instant::now() + Duration::from_secs(60);
    while full.serving.server.figures().connections > 0 {
        assert!(Instant::now() < until, "its connection ends though there is no room");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut back = full.client();
    back.write_all(&write(0, 1, last, &[0xEE; PIECE as usize])).unwrap();
    full.device.set_open(true);
    assert_eq!(answer(&mut back), 1);
    back.write_all(&request(0, FLUSH, FLUSH_COOKIE, 0, 0)).unwrap();
    assert_eq!(answer(&mut back), FLUSH_COOKIE);
    let mut found = vec![0; PIECE as usize];
    full.volume.read(&mut Io::new(), last, &mut found).unwrap();
    assert_eq!(found, [0xEE; PIECE as usize]);
}

/// A client that has closed only its side gets errors for the commands given up.
#[test]
fn who_sends_no_more_is_told_what_was_given_up() {
    let full = Full::new();
    let mut stream = full.client();
    let writes = full.fill(&mut stream);
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let mut rest = Heard(&rest);
    let mut errors = Vec::new();
    while !rest.0.is_empty() {
        errors.push(rest.simple().0);
    }
    assert_eq!(errors.len() as u64, writes);
    let given_up = errors.iter().filter(|error| **error == Errno::Shutdown.number()).count();
    let made = errors.iter().filter(|error| **error == 0).count();
    assert!(given_up > 0 && given_up + made == errors.len(), "{given_up} given up, {made} made");
}

/// More commands than may be in flight, then a goodbye, which is not read before there is room.
#[test]
fn what_comes_before_a_goodbye_is_done() {
    let full = Full::new();
    let mut stream = full.client();
    let most = COMMANDS_IN_FLIGHT_MAX as u64;
    let writes = most + 30;
    for i in 0..writes {
        let until = Instant::now() + Duration::from_secs(60);
        while i == most && full.volume.stats().writes < most {
            assert!(Instant::now() < until, "{:?}", full.volume.stats());
            std::thread::sleep(Duration::from_millis(5));
        }
        stream.write_all(&write(FUA, i, i * 4096, &[i as u8; 4096])).unwrap();
    }
    stream.write_all(&request(0, DISC, 0, 0, 0)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // The server has seen that the client sends no more.
    std::thread::sleep(Duration::from_millis(50));
    full.device.set_open(true);
    let answered: HashSet<u64> = (0..writes).map(|_| answer(&mut stream)).collect();
    assert_eq!(answered.len() as u64, writes);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

/// FAST_ZERO is for clients that would rather write zeroes themselves than wait: commands that would wait are refused,
/// and so are parts of blocks.
#[test]
fn fast_zeroes_do_not_wait() {
    let full = Full::new();
    let (mut io, mut found) = (Io::new(), [0; 4096]);
    let mut stream = full.client();
    let mut zero = |offset: u64, len: u32| {
        stream.write_all(&request(FAST_ZERO | NO_HOLE, WRITE_ZEROES, 1, offset, len)).unwrap();
        let mut header = [0; 16];
        stream.read_exact(&mut header).expect("a reply comes");
        Heard(&header).simple()
    };
    full.volume.write(&mut io, 0, &[7; 4 * 4096]).unwrap();
    for (offset, len) in [(0, 512), (4095, 2), (4097, 4095), (8191, 4097)] {
        let (expected, is_whole) = if len > 4096 { (0, true) } else { (ENOTSUP, false) };
        assert_eq!(zero(offset, len), (expected, 1), "{offset}, {len}");
        full.volume.read(&mut io, 8192, &mut found).unwrap();
        assert_eq!(found[0], if is_whole { 0 } else { 7 }, "what is refused changes nothing");
    }
    assert_eq!(zero(1 << 20, 512), (0, 1), "nothing is there");
    assert_eq!(zero(0, 1 << 20), (0, 1));
    full.volume.write(&mut io, 0, &[7; 4096]).unwrap();
    full.fill(&mut full.client());
    let (began, trimmed) = (Instant::now(), full.volume.stats().blocks_trimmed);
    assert_eq!(zero(0, 1 << 20), (ENOTSUP, 1), "there is no room");
    // A change waits a minute for room.
    assert!(began.elapsed() < Duration::from_secs(50));
    assert_eq!(full.volume.stats().blocks_trimmed, trimmed, "what is refused changes nothing");
}

/// A trim waits behind a waiting write for a device that has fallen behind. When the device goes on, the write still
/// has no room, for nothing can be cleaned; the trim makes some, and comes first.
#[test]
fn a_trim_that_waited_comes_before_a_write_that_waits_for_room() {
    const BLOCK: u64 = 4096;
    let config = Config::new(96 << 20);
    let (folder, segment) = (tempfile::tempdir().unwrap(), config.segment_bytes);
    let device = GatedDevice::new(config.geometry().unwrap().file_bytes());
    let volume = Volume::open_on(folder.path(), "disk", &config, Box::new(device.clone())).unwrap();
    let volume = Arc::new(volume);
    let full = Full {
        serving: Serving::new(VolumeExports::new([Arc::clone(&volume)]).open("").unwrap()),
        device,
        volume,
        _folder: folder,
    };
    // Until as many segments are free as may wait for the device, plus those reserved for cleaning.
    let behind = (64 << 20) / segment;
    let (mut io, mut lba) = (Io::new(), 0);
    while full.volume.stats().segments_free > behind + RESERVED_SEGMENTS - 1 {
        full.volume.write(&mut io, lba * BLOCK, &[1; BLOCK as usize]).unwrap();
        lba += 1;
    }
    full.volume.commit().unwrap();
    full.device.set_readable(false);
    full.device.set_open(false);
    let mut stream = full.client();
    let mut writes = 0;
    while full.volume.stats().waits == 0 {
        // Some of the earlier writes stays live in each segment.
        let offset = match lba * BLOCK + writes * PIECE {
            new if new + PIECE <= config.size => new,
            old => old * 8 % (config.size - PIECE) / BLOCK * BLOCK,
        };
        stream.write_all(&write(0, writes, offset, &[2; PIECE as usize])).unwrap();
        writes += 1;
        if writes % 64 == 0 {
            let until = Instant::now() + Duration::from_millis(200);
            while full.volume.stats().waits == 0
                && Instant::now() < until
                && full.volume.stats().writes < lba + writes
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let stats = full.volume.stats();
    assert_eq!(stats.segments_free, RESERVED_SEGMENTS, "{stats:?}");
    stream.write_all(&request(0, TRIM, TRIM_COOKIE, 0, 32 << 20)).unwrap();
    // The trim is left to the thread that waits with the write.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(full.volume.stats().blocks_trimmed, 0, "the device is behind");
    full.device.set_open(true);
    let answered: HashSet<u64> = (0..=writes).map(|_| answer(&mut stream)).collect();
    assert_eq!(answered.len() as u64, writes + 1);
    full.device.set_readable(true);
}

/// The device stops at any moment of the cleaning of a full volume. The client has 64 writes in flight, then 100 more.
#[test]
fn reads_go_on_whenever_the_device_stops() {
    let mut random = Random(9);
    for _ in 0..8 {
        let full = Full::new();
        full.device.set_open(true);
        let mut stream = full.client();
        let answered = Arc::new(AtomicU64::new(0));
        let (mut heard, counted) = (stream.try_clone().unwrap(), Arc::clone(&answered));
        let hears = std::thread::spawn(move || {
            while answer(&mut heard) != READ_COOKIE {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let before = SIZE / PIECE + 200 + random.below(800);
        for i in 0..before + 100 {
            while i < before && i > 64 + answered.load(Ordering::Relaxed) {
                assert!(!hears.is_finished(), "a reply comes");
                std::thread::yield_now();
            }
            if i == before {
                full.device.set_open(false);
            }
            let offset =
                if i < SIZE / PIECE { i * PIECE } else { random.below((SIZE - PIECE) / 4096) * 4096 };
            stream.write_all(&write(0, i, offset, &[i as u8; PIECE as usize])).unwrap();
        }
        stream.write_all(&request(0, READ, READ_COOKIE, 5 * PIECE, 512)).unwrap();
        hears.join().expect("the READ is answered while the device takes nothing");
        full.device.set_open(true);
        assert!(full.volume.stats().segments_cleaned > 0, "{:?}", full.volume.stats());
    }
}
