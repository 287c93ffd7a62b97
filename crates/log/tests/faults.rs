//! Faults of reads by the ring and by the pool: each read hands over the right bytes, or an error. Faults of syncs.

mod common;
#[path = "common/gated.rs"]
mod gated;

use common::random::Random;
use common::skip::skipped;
use common::{Unframed, engines, options};
use gated::GatedDevice;
use granary_log::device::{Device, Fault, Faults, FaultyDevice, FileDevice, MemoryDevice, VolatileDevice};
use granary_log::limits::{READ_BYTES_MAX, READ_DEPTH};
use granary_log::{AlignedBuffer, Consumer, Engine, Extent, Geometry, Io, Log, OnWriteError, ReadQueue};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 2 << 20;
const BLOCK: usize = 4096;

/// A file of random bytes, and the bytes. `None`: it lies in RAM, where nothing reads by its descriptor.
fn file(folder: &Path) -> Option<(FileDevice, AlignedBuffer)> {
    let mut bytes = AlignedBuffer::zeroed(SIZE as usize);
    let mut random = Random(1);
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()));
    let file = FileDevice::open(&folder.join("file"), SIZE).unwrap();
    file.write_at(0, &[&bytes]).unwrap();
    if file.descriptor().is_none() {
        skipped("temporary files lie in RAM: neither the ring nor the pool reads them");
        return None;
    }
    Some((file, bytes))
}

fn extents(count: usize) -> Vec<Extent> {
    let mut random = Random(3);
    let mut extent = || {
        let len = BLOCK * (1 + random.below(8) as usize);
        Extent { offset: random.below((SIZE - len as u64) / BLOCK as u64 + 1) * BLOCK as u64, len }
    };
    (0..count).map(|_| extent()).collect()
}

/// The ways in which reads are made.
#[derive(Clone, Copy, Debug)]
enum Way {
    Together,
    Ahead,
    InFlight,
}

/// Reads all extents. Each is handed over once.
fn read(
    way: Way,
    engine: Engine,
    device: &dyn Device,
    extents: &[Extent],
    mut take: impl FnMut(usize, io::Result<&[u8]>),
) {
    let mut seen = vec![0; extents.len()];
    let mut take = |i: usize, result: io::Result<&[u8]>| {
        seen[i] += 1;
        take(i, result);
    };
    match way {
        Way::Together => Io::with_engine(engine).read_many(device, extents, take),
        Way::Ahead => {
            let mut io = Io::with_engine(engine);
            // The results of these are discarded.
            drop(io.read_ahead(device, &extents[..20]));
            io.read_ahead(device, &extents[..20]).read_many(extents, take);
        }
        Way::InFlight => {
            let mut flights = ReadQueue::new(engine, READ_BYTES_MAX);
            (0..).zip(extents).for_each(|(ticket, extent)| flights.begin(*extent, ticket));
            let deadline = Instant::now() + Duration::from_secs(60);
            while !flights.is_empty() {
                flights.poll(device, |ticket, result| take(ticket as usize, result));
                assert!(Instant::now() < deadline, "{engine:?}: {} reads never complete", flights.len());
                std::thread::yield_now();
            }
        }
    }
    assert!(seen.iter().all(|seen| *seen == 1), "{way:?}, {engine:?}: {seen:?}");
}

fn for_each_way(test: impl Fn(Way, Engine, &str)) {
    for way in [Way::Together, Way::Ahead, Way::InFlight] {
        for engine in engines() {
            test(way, engine, &format!("{way:?}, {engine:?}"));
        }
    }
}

/// A file that is read one block at a time; every third read has to be repeated.
struct Slow {
    file: FileDevice,
    completed: AtomicUsize,
}

impl Device for Slow {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.file.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    fn complete_read(
        &self,
        _: Engine,
        _: u64,
        bytes: &mut [u8],
        answer: io::Result<usize>,
    ) -> io::Result<usize> {
        let read = answer?;
        let errno = match self.completed.fetch_add(1, Ordering::Relaxed) % 6 {
            0 => Some(rustix::io::Errno::INTR),
            3 => Some(rustix::io::Errno::AGAIN),
            _ => None,
        };
        let there = if errno.is_some() { 0 } else { read.min(BLOCK) };
        bytes[there..].fill(0xFF);
        errno.map_or(Ok(there), |errno| Err(errno.into()))
    }
}

#[test]
fn a_read_that_comes_in_parts_is_handed_over_whole() {
    let folder = tempfile::tempdir().unwrap();
    let Some((file, bytes)) = file(folder.path()) else { return };
    let slow = Slow { file, completed: AtomicUsize::new(0) };
    let extents = extents(4 * READ_DEPTH);
    let blocks: usize = extents.iter().map(|extent| extent.len / BLOCK).sum();
    for_each_way(|way, engine, what| {
        slow.completed.store(0, Ordering::Relaxed);
        read(way, engine, &slow, &extents, |i, result| {
            let Extent { offset, len } = extents[i];
            assert!(result.unwrap() == &bytes[offset as usize..offset as usize + len], "{what}: read {i}");
        });
        let completed = slow.completed.load(Ordering::Relaxed);
        assert!(
            completed > blocks || engine == Engine::Plain,
            "{what}: {completed} parts of {blocks} blocks"
        );
    });
}

/// A callback panics while other reads are incomplete.
#[test]
fn a_callback_that_panics_leaves_no_part_behind() {
    let folder = tempfile::tempdir().unwrap();
    let Some((file, bytes)) = file(folder.path()) else { return };
    let slow = Slow { file, completed: AtomicUsize::new(0) };
    let extents = extents(2 * READ_DEPTH);
    for engine in engines() {
        let mut io = Io::with_engine(engine);
        for panics_at in 0..40 {
            let mut count = 0;
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                io.read_many(&slow, &extents, |_, _| {
                    count += 1;
                    if count > panics_at {
                        std::panic::resume_unwind(Box::new(()));
                    }
                });
            }));
            assert!(read.is_err());
            let some = &extents[panics_at..panics_at + 3];
            io.read_many(&slow, some, |i, result| {
                let Extent { offset, len } = some[i];
                assert!(result.unwrap() == &bytes[offset as usize..offset as usize + len], "{engine:?}");
            });
        }
    }
}

#[test]
fn a_fault_is_an_error_or_in_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let Some((file, bytes)) = file(folder.path()) else { return };
    let device = FaultyDevice::new(file, BLOCK, Faults::default());
    let extents = extents(4 * READ_DEPTH);
    for fault in [Fault::Eio, Fault::Short, Fault::FlippedBit, Fault::Delay] {
        for_each_way(|way, engine, what| {
            let what = format!("{what}, {fault:?}");
            // The engine in use, which is another one where the ring is refused.
            let engine = Io::with_engine(engine).engine();
            device.set_faults(Faults { seed: 9, chances: vec![(fault, 16_000)], crash_after_writes: None });
            let before = device.struck_reads(engine);
            let (mut right, mut flipped, mut refused, mut ended) = (0, 0, 0, 0);
            read(way, engine, &device, &extents, |i, result| {
                let Extent { offset, len } = extents[i];
                let expected = &bytes[offset as usize..offset as usize + len];
                match result {
                    Ok(read) => {
                        let bits = read.iter().zip(expected).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
                        assert!(bits <= 1, "{what}: read {i}: {bits} bits are wrong");
                        if bits == 0 { right += 1 } else { flipped += 1 }
                    }
                    Err(error) if error.raw_os_error() == Some(5) => refused += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{what}");
                        ended += 1;
                    }
                }
            });
            let struck = device.struck_reads(engine) - before;
            let there = [flipped > 0, refused > 0, ended > 0];
            // Plain reads are complete, or errors of the device itself.
            let can = fault != Fault::Short || engine != Engine::Plain;
            let expected = [Fault::FlippedBit, Fault::Eio, Fault::Short].map(|kind| kind == fault && can);
            assert_eq!((there, struck > 0), (expected, can), "{what}");
            assert!(right > extents.len() / 3, "{what}: {right} are right");
        });
    }
}

/// Two logs share a device whose sync fails for one of them: it may have lost data of the other.
#[test]
fn a_failed_sync_is_never_followed_by_one_that_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Geometry::new(SIZE, 16 << 10, BLOCK as u64).unwrap());
    let device = Arc::new(FaultyDevice::new(MemoryDevice::new(SIZE), BLOCK, Faults::default()));
    let boxed: Box<dyn Device> = Box::new(Arc::clone(&device));
    let logs = Log::open_partitions_on(Unframed, boxed, &options, 2).unwrap();
    let sync = |log: usize| logs[log].0.commit();
    sync(0).unwrap();
    sync(1).unwrap();
    device.set_faults(Faults { seed: 1, chances: vec![(Fault::Eio, 65_536)], crash_after_writes: None });
    assert_eq!(sync(0).unwrap_err().raw_os_error(), Some(5));
    device.set_faults(Faults::default());
    assert!(sync(0).is_err() && sync(1).is_err());
    assert_eq!(device.syncs_failed(), 1);
}

/// A log whose segments hold nothing alive.
struct Nobody;

impl Consumer<Unframed> for Nobody {
    fn reclaim(&self, _: &(u64, u64)) {}
    fn reclaim_unread(&self, _: Range<u64>) {}
    fn on_write_error(&self, _: &(u64, u64), error: &io::Error) -> OnWriteError {
        panic!("{error}")
    }
}

/// Appends a block of these bytes; returns its place.
fn append(log: &Log<Unframed>, byte: u8) -> u64 {
    let appended = log.writer().fill(|id, used, blocks| {
        let at = (*used < id.geometry.blocks_per_segment() as usize).then_some(*used)?;
        blocks[at * BLOCK..(at + 1) * BLOCK].fill(byte);
        *used += 1;
        Some(id.geometry.offset(id.first_block + at as u64))
    });
    appended.expect("there is room")
}

/// A block that is appended while another commit syncs is not covered by that sync.
#[test]
fn a_commit_that_comes_during_a_sync_has_a_sync_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Geometry::new(SIZE, 16 << 10, BLOCK as u64).unwrap());
    let device = GatedDevice::over(VolatileDevice::new(SIZE, BLOCK));
    let (log, _) = Log::open_on(Unframed, Box::new(device.clone()), &options).unwrap();
    /// Ends the flusher when it is dropped, by a failure too.
    struct Ending<'a>(&'a Log<Unframed>);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            self.0.abandon();
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| log.run_flusher(&Nobody));
        let _ending = Ending(&log);
        let mut places = vec![append(&log, 1)];
        let before = device.syncs();
        let held = device.hold_syncs();
        let first = scope.spawn(|| log.commit());
        held.wait_for_sync();
        places.push(append(&log, 2));
        let asked = log.commits_asked();
        let second = scope.spawn(|| log.commit());
        let deadline = Instant::now() + Duration::from_secs(60);
        while log.commits_asked() == asked {
            assert!(Instant::now() < deadline, "the second one asks");
            std::thread::yield_now();
        }
        drop(held);
        let committed = [first, second].map(|commit| commit.join().unwrap());
        let left = device.inner().after_power_cut(|_| false);
        committed.into_iter().for_each(Result::unwrap);
        assert_eq!(device.syncs(), before + 2);
        for (byte, place) in (1..).zip(places) {
            let mut found = [0; BLOCK];
            left.read_at(place, &mut found).unwrap();
            assert_eq!(found, [byte; BLOCK]);
        }
    });
}
