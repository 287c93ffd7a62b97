//! Reading and opening: three engines and two devices return the same bytes and errors, and a file is reserved, locked
//! and sized as requested.

mod common;

use common::engines;
use common::random::Random;
use common::skip::skipped;
use granary_log::device::{Access, Device, FileDevice, MemoryDevice, OpenDeviceError, Space};
use granary_log::limits::{READ_BYTES_MAX, READ_DEPTH, SEGMENT_BYTES_MAX};
use granary_log::{AlignedBuffer, CrashPolicy, Engine, Extent, Geometry, Io, OpenError, Options, ReadQueue};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

const SIZE: u64 = 2 << 20;

fn contents() -> AlignedBuffer {
    let mut bytes = AlignedBuffer::zeroed(SIZE as usize);
    let mut random = Random(1);
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()));
    bytes
}

/// The results of an engine, by extent.
fn read_all(engine: Engine, device: &dyn Device, extents: &[Extent]) -> Vec<Result<Vec<u8>, ErrorKind>> {
    let mut io = Io::with_engine(engine);
    let mut seen: Vec<Option<Result<Vec<u8>, ErrorKind>>> = vec![None; extents.len()];
    io.read_many(device, extents, |i, result| {
        let answer = result.map(<[u8]>::to_vec).map_err(|error| error.kind());
        assert!(seen[i].replace(answer).is_none(), "extent {i} has one answer");
    });
    // An `Io` serves more than one call, and an empty one.
    io.read_many(device, &[], |_, _| panic!("nothing was asked"));
    io.read_many(device, &extents[..1], |i, _| assert_eq!(i, 0));
    seen.into_iter().map(|answer| answer.expect("every extent has an answer")).collect()
}

/// The page cache may have data that a failed sync did not bring to the device.
#[test]
fn a_buffered_file_is_read_from_the_device_when_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("buffered");
    let cached_pages = || {
        let told = Command::new("fincore").args(["--noheadings", "--output", "PAGES"]).arg(&path).output();
        String::from_utf8(told.ok()?.stdout).unwrap().trim().parse::<u64>().ok()
    };
    let file = FileDevice::open_as(&path, SIZE, Access::Buffered, Space::Reserved).unwrap();
    file.write_at(0, &[&contents()[..64 << 10]]).unwrap();
    file.sync().unwrap();
    match cached_pages() {
        None | Some(0) => return skipped("fincore, or a file system that has files in the page cache"),
        Some(pages) => assert!(pages >= 16, "{pages}"),
    }
    file.drop_cached().unwrap();
    // On a tmpfs the pages cannot be dropped.
    if file.descriptor().is_some() {
        assert_eq!(cached_pages(), Some(0));
    }
}

#[test]
fn engines_and_devices_show_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = contents();
    let file = FileDevice::open(&folder.path().join("direct"), SIZE).unwrap();
    let buffered =
        FileDevice::open_as(&folder.path().join("buffered"), SIZE, Access::Buffered, Space::Reserved)
            .unwrap();
    assert_eq!(buffered.access(), Access::Buffered);
    let memory = MemoryDevice::new(SIZE);
    let devices: [&dyn Device; 3] = [&file, &buffered, &memory];
    let mut random = Random(2);
    for device in devices {
        // In pieces, as the flusher writes.
        let (first, rest) = bytes.split_at(512 << 10);
        let (second, third) = rest.split_at(4096);
        device.write_at(0, &[first, second]).unwrap();
        device.write_at(first.len() as u64 + 4096, &[third]).unwrap();
        device.sync().unwrap();
        assert_eq!(device.size(), SIZE);
        // More than are in flight at once; then some too long for the ring's usual buffers.
        for (count, unit, most) in [(4 * READ_DEPTH, 4096, 8), (9, READ_BYTES_MAX, 6), (1, 4096, 1)] {
            let extents: Vec<Extent> = (0..count)
                .map(|_| {
                    let len = unit * (1 + random.below(most) as usize);
                    let offset = random.below((SIZE - len as u64) / 4096 + 1) * 4096;
                    Extent { offset, len }
                })
                .collect();
            for engine in engines() {
                for (answer, extent) in read_all(engine, device, &extents).into_iter().zip(&extents) {
                    let start = extent.offset as usize;
                    assert!(
                        answer.as_deref() == Ok(&bytes[start..start + extent.len]),
                        "{engine:?}: {extent:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn reads_that_were_begun_are_finished_or_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = contents();
    let file = FileDevice::open(&folder.path().join("file"), SIZE).unwrap();
    let memory = MemoryDevice::new(SIZE);
    let mut random = Random(5);
    let extents: Vec<Extent> = (0..4 * READ_DEPTH)
        .map(|_| {
            let len = 4096 * (1 + random.below(32) as usize);
            Extent { offset: random.below((SIZE - len as u64) / 4096 + 1) * 4096, len }
        })
        .collect();
    for device in [&file as &dyn Device, &memory] {
        device.write_at(0, &[&bytes]).unwrap();
        for engine in engines() {
            let mut io = Io::with_engine(engine);
            let is_ring = io.engine() == Engine::Ring && device.descriptor().is_some();
            for ahead in [0, 1, 20, 2 * READ_DEPTH] {
                // The results of these are discarded.
                let given_up = io.read_ahead(device, &extents[extents.len() - ahead..]).begun();
                let reads = io.read_ahead(device, &extents[..ahead]);
                assert_eq!([given_up > 0, reads.begun() > 0], [is_ring && ahead > 0; 2], "{engine:?}");
                assert!(given_up <= ahead.min(READ_DEPTH) && reads.begun() <= ahead.min(READ_DEPTH));
                let mut seen = vec![0; extents.len()];
                reads.read_many(&extents, |i, result| {
                    seen[i] += 1;
                    let Extent { offset, len } = extents[i];
                    assert!(result.unwrap() == &bytes[offset as usize..offset as usize + len]);
                });
                assert!(seen.iter().all(|seen| *seen == 1), "{engine:?}: each once");
            }
        }
    }
}

/// Waits until something may have completed.
fn wait_for(flights: &ReadQueue) {
    use rustix::event::{PollFd, PollFlags, poll};
    let event = flights.event().expect("there are descriptors");
    let timeout = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    let rung = poll(&mut [PollFd::from_borrowed_fd(event, PollFlags::IN)], Some(&timeout)).unwrap();
    assert!(rung > 0, "an event comes");
    // An edge-triggered watcher need not read it.
    rustix::io::read(event, &mut [0; 8]).unwrap();
}

#[test]
fn reads_that_nobody_waits_for_land_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = contents();
    let path = folder.path().join("file");
    let file = FileDevice::open(&path, SIZE).unwrap();
    let memory = MemoryDevice::new(SIZE);
    for device in [&file as &dyn Device, &memory] {
        device.write_at(0, &[&bytes]).unwrap();
    }
    // Beyond the end of the file.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(SIZE - 4096).unwrap();
    for (device, end) in [(&file as &dyn Device, SIZE - 4096), (&memory, SIZE)] {
        for engine in engines() {
            let mut flights = ReadQueue::new(engine, READ_BYTES_MAX);
            let mut random = Random(7);
            let mut asked: Vec<Extent> = Vec::new();
            let mut completed: Vec<bool> = Vec::new();
            let total = 6 * READ_DEPTH;
            while completed.iter().filter(|completed| **completed).count() < total {
                // Some at a time, more than there are buffers for in the end.
                while asked.len() < total && random.below(20) > 0 {
                    let len = 4096 * (1 + random.below(8) as usize);
                    let extent = Extent { offset: random.below((SIZE - len as u64) / 4096 + 1) * 4096, len };
                    flights.begin(extent, asked.len() as u64);
                    asked.push(extent);
                    completed.push(false);
                }
                let before = completed.iter().filter(|completed| **completed).count();
                flights.poll(device, |ticket, result| {
                    let i = ticket as usize;
                    assert!(
                        !std::mem::replace(&mut completed[i], true),
                        "{engine:?}: read {i} completes once"
                    );
                    let Extent { offset, len } = asked[i];
                    let start = offset as usize;
                    match result {
                        Ok(read) => assert!(read == &bytes[start..start + len], "{engine:?}: {:?}", asked[i]),
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                            assert!(offset + len as u64 > end, "{engine:?}: {:?}", asked[i]);
                        }
                    }
                });
                let now = completed.iter().filter(|completed| **completed).count();
                assert_eq!(flights.len(), asked.len() - now);
                if now == before && !flights.is_empty() && asked.len() == total {
                    if random.below(2) == 0 { flights.wait() } else { wait_for(&flights) }
                }
            }
            assert!(flights.is_empty());
        }
    }
}

#[test]
fn a_read_that_is_handed_over_makes_room_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = contents();
    let file = FileDevice::open(&folder.path().join("file"), SIZE).unwrap();
    let memory = MemoryDevice::new(SIZE);
    let mut random = Random(9);
    let total = 10 * READ_DEPTH;
    let extents: Vec<Extent> = (0..total)
        .map(|_| {
            let len = 4096 * (1 + random.below(8) as usize);
            Extent { offset: random.below((SIZE - len as u64) / 4096 + 1) * 4096, len }
        })
        .collect();
    for device in [&file as &dyn Device, &memory] {
        device.write_at(0, &[&bytes]).unwrap();
        for engine in engines() {
            // As many as are in flight at once, and more than there are buffers for.
            for depth in [1, 7, READ_DEPTH, 2 * READ_DEPTH] {
                let mut flights = ReadQueue::new(engine, READ_BYTES_MAX);
                let mut completed = vec![false; total];
                let mut begun = depth;
                extents[..depth].iter().zip(0..).for_each(|(extent, i)| flights.begin(*extent, i));
                while !flights.is_empty() {
                    flights.poll_next(device, |ticket, result| {
                        let i = ticket as usize;
                        assert!(
                            !std::mem::replace(&mut completed[i], true),
                            "{engine:?}: read {i} comes once"
                        );
                        let Extent { offset, len } = extents[i];
                        assert!(result.unwrap() == &bytes[offset as usize..offset as usize + len]);
                        let next = extents.get(begun).map(|extent| (*extent, begun as u64));
                        begun += usize::from(next.is_some());
                        next
                    });
                    assert!(flights.len() <= depth, "{engine:?}: one is begun for one that came");
                    if random.below(2) == 0 {
                        flights.wait();
                    }
                }
                assert!(completed.iter().all(|completed| *completed), "{engine:?}: {depth}");
            }
        }
    }
}

#[test]
fn reads_given_up_in_flight_harm_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for _ in 0..20 {
        for engine in engines() {
            // The file's lock must be free again: nothing holds its descriptor.
            let file = FileDevice::open(&path, SIZE).unwrap();
            let mut flights = ReadQueue::new(engine, READ_BYTES_MAX);
            for i in 0..100 {
                flights.begin(Extent { offset: i * 8192, len: 8192 }, i);
            }
            let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                flights.poll(&file, |_, _| std::panic::resume_unwind(Box::new(())));
                flights.poll(&file, |_, _| std::panic::resume_unwind(Box::new(())));
            }));
            drop(panics);
            drop(flights);
        }
    }
}

#[test]
fn a_read_beyond_the_end_is_an_error_and_costs_its_neighbours_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let bytes = contents();
    for access in [Access::Direct, Access::Buffered] {
        let file = FileDevice::open_as(&path, SIZE, access, Space::Reserved).unwrap();
        file.write_at(0, &[&bytes]).unwrap();
        // The file is truncated meanwhile, in the middle of an extent.
        let end = SIZE - 12_288;
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(end).unwrap();
        let memory = MemoryDevice::new(end);
        memory.write_at(0, &[&bytes[..end as usize]]).unwrap();
        let extents = [
            Extent { offset: 0, len: 8192 },
            Extent { offset: end - 4096, len: 8192 },
            Extent { offset: end, len: 4096 },
            Extent { offset: end + 8192, len: 4096 },
            Extent { offset: end - 8192, len: 8192 },
        ];
        for device in [&file as &dyn Device, &memory] {
            for engine in engines() {
                let answers = read_all(engine, device, &extents);
                for i in [1, 2, 3] {
                    assert_eq!(
                        answers[i],
                        Err(ErrorKind::UnexpectedEof),
                        "{engine:?} {access:?}: extent {i}"
                    );
                }
                for i in [0, 4] {
                    let start = extents[i].offset as usize;
                    assert!(
                        answers[i].as_deref() == Ok(&bytes[start..start + 8192]),
                        "{engine:?}: extent {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_callback_that_panics_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = contents();
    let file = FileDevice::open(&folder.path().join("file"), SIZE).unwrap();
    file.write_at(0, &[&bytes]).unwrap();
    let extents: Vec<Extent> = (0..200).map(|i| Extent { offset: i * 8192, len: 8192 }).collect();
    for engine in engines() {
        let mut io = Io::with_engine(engine);
        for stop in [0, 70, 199] {
            let mut calls = 0;
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                io.read_many(&file, &extents, |_, _| {
                    calls += 1;
                    // `resume_unwind` prints no message for an intended panic.
                    if calls > stop {
                        std::panic::resume_unwind(Box::new(()));
                    }
                });
            }));
            assert!(caught.is_err());
            let mut seen = 0;
            io.read_many(&file, &extents, |i, result| {
                seen += 1;
                assert!(result.unwrap() == &bytes[i * 8192..(i + 1) * 8192], "{engine:?}: extent {i}");
            });
            assert_eq!(seen, extents.len());
        }
    }
}

#[test]
fn a_file_has_the_size_asked_for_and_its_space_is_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    // Grown, kept, and cut from a larger one.
    for size in [SIZE, SIZE, 4 * SIZE, SIZE / 2] {
        let device = FileDevice::open(&path, size).unwrap();
        assert_eq!(device.size(), size);
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), size);
        assert!(metadata.blocks() * 512 >= size, "{} bytes are reserved", metadata.blocks() * 512);
    }
}

#[test]
fn nobody_else_reads_a_file_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = common::open(&common::options(folder.path(), Geometry::new(SIZE, 64 << 10, 4096).unwrap()));
    drop(log.unwrap());
    let mut seen = 0;
    for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{}", file.path().display());
        seen += 1;
    }
    assert_eq!(seen, 4, "the data, its state, two journals");
}

#[test]
fn a_second_open_is_refused_until_the_first_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let first = FileDevice::open(&path, SIZE).unwrap();
    let refused = FileDevice::open(&path, 2 * SIZE);
    assert!(matches!(refused, Err(OpenDeviceError::InUse { .. })));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), SIZE, "and changed nothing");
    drop(first);
    assert!(FileDevice::open(&path, SIZE).is_ok());

    let geometry = Geometry::new(SIZE, 64 << 10, 4096).unwrap();
    let options = common::options(folder.path(), geometry);
    let log = common::open(&options).unwrap();
    assert!(matches!(common::open(&options), Err(OpenError::InUse { .. })), "the same log");
    let mut other_state = options.clone();
    other_state.state_path = folder.path().join("other");
    assert!(matches!(common::open(&other_state), Err(OpenError::InUse { .. })), "the same data");
    drop(log);
    assert!(common::open(&options).is_ok());
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no folder/file");
    let Err(OpenDeviceError::Io { doing, path: named, source }) = FileDevice::open(&path, SIZE) else {
        panic!("there is no such folder")
    };
    assert_eq!((doing, named, source.kind()), ("open", path, ErrorKind::NotFound));
    let geometry = Geometry::new(SIZE, 64 << 10, 4096).unwrap();
    let mut options = common::options(folder.path(), geometry);
    options.state_path = folder.path().join("no folder/d");
    assert!(matches!(common::open(&options), Err(OpenError::State { .. })));
    assert!(!options.path.exists(), "the state comes first");
    let too_big = FileDevice::open(&folder.path().join("big"), i64::MAX as u64);
    assert!(matches!(too_big, Err(OpenDeviceError::Io { .. })));
}

#[test]
fn sizes_that_do_not_fit_together_are_refused() {
    let refused = |file, segment, block| Geometry::new(file, segment, block).is_err();
    assert!(refused(SIZE, 4096, 0) && refused(SIZE, 4096, 256) && refused(SIZE, 4096, 768 + 1));
    assert!(refused(SIZE, 2 << 20, (1 << 20) + 512), "a block is too long");
    assert!(refused(SIZE, 0, 512) && refused(SIZE, 4096 + 512, 4096));
    assert!(refused(2 * SEGMENT_BYTES_MAX * 2, 2 * SEGMENT_BYTES_MAX, 4096), "a segment is too long");
    assert!(refused(0, 4096, 4096) && refused(4096 * 3 / 2, 4096, 512));
    assert!(refused(u64::MAX, u64::MAX, u64::MAX));
    let smallest = Geometry::new(512, 512, 512).unwrap();
    assert_eq!((smallest.segments(), smallest.blocks()), (1, 1));
}

#[test]
fn a_block_device_is_used_as_far_as_asked_and_no_smaller_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    std::fs::write(&backing, vec![0; SIZE as usize]).unwrap();
    let Some(device) = LoopDevice::over(&backing, &[]) else { return };
    let device = device.path();
    let check = || {
        let too_small = FileDevice::open(device, SIZE + 4096);
        let Err(OpenDeviceError::TooSmall { has, wants, .. }) = too_small else { panic!("it is too small") };
        assert_eq!((has, wants), (SIZE, SIZE + 4096));
        let part = FileDevice::open(device, SIZE / 2).unwrap();
        assert_eq!(part.size(), SIZE / 2);
        part.write_at(4096, &[&contents()[..8192]]).unwrap();
        let mut bytes = AlignedBuffer::zeroed(8192);
        part.read_at(4096, &mut bytes).unwrap();
        assert!(bytes[..] == contents()[..8192]);
        assert!(matches!(FileDevice::open(device, SIZE), Err(OpenDeviceError::InUse { .. })));
    };
    check();
}

/// A block device over a file.
struct LoopDevice(String);

impl LoopDevice {
    /// `None`: none can be set up here.
    fn over(backing: &Path, options: &[&str]) -> Option<Self> {
        let mut losetup = Command::new("losetup");
        let set_up = losetup.args(["--find", "--show"]).args(options).arg(backing).output();
        let Some(output) = set_up.ok().filter(|output| output.status.success()) else {
            skipped("no loop device can be set up");
            return None;
        };
        Some(Self(String::from_utf8(output.stdout).unwrap().trim().to_owned()))
    }

    fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// A log that keeps its content through losses of power believes the device: where it has to use the page cache, it
/// forgets at a start what that has. (The cache has what the device does not after a sync that failed; here, what the
/// device had before.)
#[test]
fn a_log_that_keeps_its_content_believes_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    let change = |byte| std::fs::write(&backing, vec![byte; SIZE as usize]).unwrap();
    change(0);
    // Blocks of 512 bytes are too short for O_DIRECT then.
    let Some(device) = LoopDevice::over(&backing, &["--sector-size", "4096"]) else { return };
    let mut options = common::options(folder.path(), Geometry::new(SIZE, 64 << 10, 512).unwrap());
    options.path = device.path().to_owned();
    common::open(&options).unwrap().stop().unwrap();
    let cached = std::fs::File::open(device.path()).unwrap();
    let read = || {
        let mut bytes = [0; 512];
        cached.read_exact_at(&mut bytes, SIZE / 2).unwrap();
        bytes[0]
    };
    assert_eq!(read(), 0);
    change(7);
    let log = common::open(&Options { crash_policy: CrashPolicy::Keep(None), ..options }).unwrap();
    assert_eq!(read(), 7);
    log.stop().unwrap();
}
