//! FLUSH and FUA: whenever the power goes, everything that was answered as durable is there.

mod common;

use common::bytes::*;
use common::gated::GatedDevice;
use common::golden::lose_power;
use common::random::Random;
use common::serving::Serving;
use granary_nbd::{Exports, VolumeExports};
use granary_volume::device::{Device, VolatileDevice};
use granary_volume::{Config, Io, Volume};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 1024;
/// The blocks that clients write to.
const USED: u64 = 24;

fn config() -> Config {
    let size = BLOCKS * BLOCK;
    Config { block_size: BLOCK, segment_bytes: 16 * BLOCK, ..Config::new(size) }
}

fn device() -> Arc<VolatileDevice> {
    let device = VolatileDevice::new(config().geometry().unwrap().file_bytes(), BLOCK as usize);
    Arc::new(device)
}

/// A volume that is served.
struct Served {
    serving: Serving,
    volume: Arc<Volume>,
}

impl Served {
    fn new(folder: &Path, device: impl Device + 'static) -> Self {
        let volume = Volume::open_on(folder, "disk", &config(), Box::new(device)).unwrap();
        let volume = Arc::new(volume);
        let serving = Serving::new(VolumeExports::new([Arc::clone(&volume)]).open("").unwrap());
        Self { serving, volume }
    }

    fn client(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.serving.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&handshake("disk", false)).unwrap();
        stream.read_exact(&mut [0; 18 + (20 + 12) + 20]).unwrap();
        stream
    }

    /// Ends the volume as a kill would.
    fn abandon(self) {
        self.serving.server.stop();
        let mut volume = self.volume;
        loop {
            match Arc::try_unwrap(volume) {
                Ok(volume) => return volume.abandon(),
                Err(shared) => volume = shared,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Checks that the next reply is a success.
fn is_done(stream: &mut UnixStream) {
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("a reply comes");
    assert_eq!(Heard(&header).simple().0, 0);
}

/// A version of a block.
#[derive(Clone, Copy)]
struct Version {
    content: u8,
    /// The number of operations of the device before it was answered as durable.
    durable_from: usize,
}

/// The versions of each block, the newest last.
struct History(Vec<Vec<Version>>);

impl History {
    fn new() -> Self {
        Self(vec![vec![Version { content: 0, durable_from: 0 }]; USED as usize])
    }

    /// Checks the content after a loss of power, when the device had done `crash` operations.
    fn check(&self, volume: &Volume, crash: usize, what: &str) {
        let mut found = [0; BLOCK as usize];
        for (lba, versions) in (0..).zip(&self.0) {
            volume
                .read(&mut Io::new(), lba * BLOCK, &mut found)
                .unwrap_or_else(|error| panic!("{what}: block {lba}: {error}"));
            assert!(found.iter().all(|byte| *byte == found[0]), "{what}: block {lba} is torn");
            let oldest = versions.iter().rposition(|version| version.durable_from <= crash).unwrap();
            let allowed: Vec<u8> = versions[oldest..].iter().map(|version| version.content).collect();
            assert!(allowed.contains(&found[0]), "{what}: block {lba} is {}, not of {allowed:?}", found[0]);
        }
    }
}

/// The files beside the device, for a start that changes them.
fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for file in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        // A temporary map file may be gone by now.
        if file.path().extension().is_none_or(|name| name != "new") {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
    }
    copy
}

/// Cuts the power at each operation of the device, and opens the volume that is left.
fn cut_everywhere(folder: &Path, device: &VolatileDevice, history: &History, random: &mut Random) -> u64 {
    let mut cuts = 0;
    for crash in 0..=device.recent() {
        // None, all or some of the unsynced units are kept.
        for subset in [0, u64::MAX, random.next(), random.next() & random.next()] {
            let what = format!("cut at {crash}, {subset:x}");
            let left = device.after_power_cut_at(crash, |unit| subset >> (unit % 64) & 1 == 1);
            let copy = copy_of(folder);
            lose_power(&copy.path().join("disk.state"));
            let volume = Volume::open_on(copy.path(), "disk", &config(), Box::new(left));
            let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
            history.check(&volume, crash, &what);
            volume.abandon();
            cuts += 1;
        }
    }
    cuts
}

/// Three clients change their own blocks, with and without FUA, and flush, which covers the answered writes of all.
#[test]
fn what_is_answered_as_durable_survives_a_power_cut() {
    let (mut random, mut cuts) = (Random(1), 0);
    for _ in 0..8 {
        let (folder, device) = (tempfile::tempdir().unwrap(), device());
        let served = Served::new(folder.path(), Arc::clone(&device));
        device.record();
        let mut streams = [0; 3].map(|_| served.client());
        let mut history = History::new();
        for round in 1..=8 {
            // Concurrently, each in its third of the blocks. A flush covers writes answered before it was sent.
            let mut asked = Vec::new();
            for (client, stream) in (0..).zip(&mut streams) {
                let first = client * (USED / 3) + random.below(USED / 3 - 2);
                let (offset, len) = (first * BLOCK, (1 + random.below(3)) * BLOCK);
                let fua = if random.below(2) == 0 { FUA } else { 0 };
                let content = (round * 3 + client) as u8;
                let data = vec![content; len as usize];
                let (request, content) = match random.below(8) {
                    0..4 => (write(fua, 0, offset, &data), Some(content)),
                    4 => (request(fua, TRIM, 0, offset, len as u32), Some(0)),
                    5 => (request(fua, WRITE_ZEROES, 0, offset, len as u32), Some(0)),
                    _ => (request(0, FLUSH, 0, 0, 0), None),
                };
                stream.write_all(&request).unwrap();
                asked.push((first..first + len / BLOCK, content, fua != 0));
            }
            let before: Vec<usize> = history.0.iter().map(Vec::len).collect();
            for ((blocks, content, is_forced), stream) in asked.into_iter().zip(&mut streams) {
                is_done(stream);
                let answered = device.recent();
                let durable_from = if is_forced { answered } else { usize::MAX };
                for lba in blocks {
                    history.0[lba as usize].extend(content.map(|content| Version { content, durable_from }));
                }
                if content.is_none() {
                    for (versions, before) in history.0.iter_mut().zip(&before) {
                        let flushed = versions[..*before].iter_mut();
                        flushed.for_each(|version| version.durable_from = version.durable_from.min(answered));
                    }
                }
            }
        }
        assert_eq!(
            served.volume.stats().checkpoints,
            0,
            "the files beside the device are those of each moment"
        );
        served.abandon();
        cuts += cut_everywhere(folder.path(), &device, &history, &mut random);
    }
    println!("{cuts} power cuts");
}

/// A write or flush during a sync waits for the next sync.
#[test]
fn no_flush_is_answered_by_a_sync_that_began_before_its_write() {
    for forced in [false, true] {
        let (folder, device) = (tempfile::tempdir().unwrap(), device());
        let gated = GatedDevice::over(Arc::clone(&device));
        let served = Served::new(folder.path(), gated.clone());
        device.record();
        let mut streams = [0; 2].map(|_| served.client());
        let [first, second] = &mut streams;
        let held = gated.hold_syncs();
        first.write_all(&write(FUA, 0, 0, &[1; BLOCK as usize])).unwrap();
        held.wait_for_sync();
        if forced {
            second.write_all(&write(FUA, 0, BLOCK, &[2; BLOCK as usize])).unwrap();
        } else {
            second.write_all(&write(0, 0, BLOCK, &[2; BLOCK as usize])).unwrap();
            is_done(second);
            second.write_all(&request(0, FLUSH, 0, 0, 0)).unwrap();
        }
        // A connection's commands begin in their order: that was requested when this one is answered.
        second.write_all(&request(0, READ, 0, 2 * BLOCK, BLOCK as u32)).unwrap();
        is_done(second);
        second.read_exact(&mut [0; BLOCK as usize]).unwrap();
        drop(held);
        is_done(first);
        is_done(second);
        let left = device.after_power_cut(|_| false);
        served.abandon();
        lose_power(&folder.path().join("disk.state"));
        let volume = Volume::open_on(folder.path(), "disk", &config(), Box::new(left)).unwrap();
        let mut found = [0; 2 * BLOCK as usize];
        volume.read(&mut Io::new(), 0, &mut found).unwrap();
        assert_eq!((found[0], found[BLOCK as usize]), (1, 2), "forced: {forced}");
    }
}

/// Writes that had to wait for room, each of them with FUA.
#[test]
fn what_waited_for_room_is_durable_when_it_is_answered() {
    let (folder, device) = (tempfile::tempdir().unwrap(), device());
    let gated = GatedDevice::over(Arc::clone(&device));
    let served = Served::new(folder.path(), gated.clone());
    let mut stream = served.client();
    gated.set_open(false);
    let (mut writes, data) = (0, [1; 64 * BLOCK as usize]);
    while served.volume.stats().waits == 0 {
        stream.write_all(&write(0, 0, writes * data.len() as u64 % (BLOCKS * BLOCK), &data)).unwrap();
        writes += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    let forced = 20;
    for lba in 0..forced {
        stream.write_all(&write(FUA, 0, lba * BLOCK, &[2; BLOCK as usize])).unwrap();
    }
    gated.set_open(true);
    (0..writes).for_each(|_| is_done(&mut stream));
    let cuts: Vec<_> = (0..forced)
        .map(|_| {
            is_done(&mut stream);
            cut_now(folder.path(), &device)
        })
        .collect();
    served.abandon();
    for (durable, (folder, left)) in (1..).zip(cuts) {
        lose_power(&folder.path().join("disk.state"));
        let volume = Volume::open_on(folder.path(), "disk", &config(), Box::new(left)).unwrap();
        let mut found = vec![0; (durable * BLOCK) as usize];
        volume.read(&mut Io::new(), 0, &mut found).unwrap();
        let kept = found.chunks_exact(BLOCK as usize).filter(|block| block[0] == 2).count();
        assert_eq!(kept as u64, durable);
        volume.abandon();
    }
}

/// After a sync that failed nothing is answered as durable, until the volume is opened again.
#[test]
fn after_a_sync_that_failed_flush_and_fua_fail() {
    let (folder, device) = (tempfile::tempdir().unwrap(), device());
    let answer = |stream: &mut UnixStream, asked: Vec<u8>| {
        stream.write_all(&asked).unwrap();
        let mut header = [0; 16];
        stream.read_exact(&mut header).expect("a reply comes");
        Heard(&header).simple().0
    };
    for failing in [request(0, FLUSH, 0, 0, 0), write(FUA, 0, 0, &[2; BLOCK as usize])] {
        let served = Served::new(folder.path(), Arc::clone(&device));
        let mut stream = served.client();
        assert_eq!(answer(&mut stream, write(0, 0, 0, &[1; BLOCK as usize])), 0);
        assert_eq!(answer(&mut stream, request(0, FLUSH, 0, 0, 0)), 0);
        assert_eq!(answer(&mut stream, write(0, 0, BLOCK, &[3; BLOCK as usize])), 0);
        device.fail_next_sync(0);
        assert_eq!(answer(&mut stream, failing), EIO);
        for mut stream in [stream, served.client()] {
            assert_eq!(answer(&mut stream, request(0, FLUSH, 0, 0, 0)), EIO);
            assert_eq!(answer(&mut stream, write(0, 0, BLOCK, &[3; BLOCK as usize])), 0, "others are taken");
            assert_eq!(answer(&mut stream, write(FUA, 0, 0, &[2; BLOCK as usize])), EIO);
            let forced = request(FUA, WRITE_ZEROES, 0, 0, BLOCK as u32);
            assert_eq!(answer(&mut stream, forced), EIO);
        }
        served.abandon();
    }
}

/// The state that a loss of power now leaves of a volume in use: the files beside the device, and its synced content.
fn cut_now(folder: &Path, device: &VolatileDevice) -> (tempfile::TempDir, VolatileDevice) {
    let map = || std::fs::read(folder.join("disk.map")).ok();
    loop {
        let before = map();
        let (copy, left) = (copy_of(folder), device.after_power_cut(|_| false));
        // Otherwise the map may be older or newer than the device.
        if map() == before {
            return (copy, left);
        }
    }
}
