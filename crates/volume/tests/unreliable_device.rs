//! Volumes on a device with failing reads.

#[path = "common/wait.rs"]
mod wait;

use granary_log::device::{Device, VolatileDevice};
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Config, Io, Volume, WaitPolicy};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wait::wait_until;

const BLOCK: u64 = 512;

fn config(blocks: u64, per_segment: u64) -> Config {
    let segment_bytes = per_segment * BLOCK;
    Config { block_size: BLOCK, segment_bytes, ..Config::new(blocks * BLOCK) }
}

fn device(config: &Config) -> Arc<VolatileDevice> {
    Arc::new(VolatileDevice::new(config.geometry().unwrap().file_bytes(), BLOCK as usize))
}

/// Whether a read (offset, length) is refused.
type Refuses = Box<dyn Fn(u64, u64) -> bool + Send + Sync>;

/// A device that refuses some reads.
struct Refusing {
    inner: Arc<VolatileDevice>,
    refuses: Refuses,
}

impl Device for Refusing {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        if (self.refuses)(offset, bytes.len() as u64) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.inner.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.inner.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// Opens the volume of a folder on a device that refuses some reads.
fn open(
    folder: &Path,
    config: &Config,
    inner: &Arc<VolatileDevice>,
    refuses: impl Fn(u64, u64) -> bool + Send + Sync + 'static,
) -> Result<Volume, granary_volume::Error> {
    let device = Refusing { inner: Arc::clone(inner), refuses: Box::new(refuses) };
    Volume::open_on(folder, "v", config, Box::new(device))
}

/// Like `refuses`; counts the reads that are refused.
fn counted(
    count: Arc<AtomicU64>,
    refuses: impl Fn(u64, u64) -> bool + Send + Sync + 'static,
) -> impl Fn(u64, u64) -> bool + Send + Sync + 'static {
    move |offset, len| {
        let is_refused = refuses(offset, len);
        count.fetch_add(u64::from(is_refused), Ordering::AcqRel);
        is_refused
    }
}

/// Waits until the cleaner has read in vain since there were `before` refused reads, and has had time to try each
/// segment.
fn await_vain_cleaning(refused: &AtomicU64, before: u64) {
    wait_until("the cleaner reads in vain", || refused.load(Ordering::Acquire) >= before + 10);
    std::thread::sleep(Duration::from_millis(500));
}

/// Summaries cannot be read for a while, though headers and content can: reads meanwhile fail or are right, and are
/// right as soon as the device works again.
#[test]
fn a_summary_that_could_not_be_read_once_is_read_again() {
    let config = config(800, 16);
    let (folder, inner, refuses) =
        (tempfile::tempdir().unwrap(), device(&config), Arc::new(AtomicBool::new(false)));
    let open_refusing = || {
        let is_refusing = Arc::clone(&refuses);
        // Reads that end with a segment's last block, which is a summary's.
        let refused = move |offset: u64, len: u64| {
            offset % (16 * BLOCK) + len == 16 * BLOCK && is_refusing.load(Ordering::Acquire)
        };
        open(folder.path(), &config, &inner, refused).unwrap()
    };
    let (volume, mut io) = (open_refusing(), Io::new());
    for lba in 0..200 {
        volume.write(&mut io, lba * BLOCK, &[lba as u8 + 1; BLOCK as usize]).unwrap();
    }
    volume.close().unwrap();
    // No checksum is in RAM now.
    let volume = open_refusing();
    let mut read = |lba: u64| {
        let mut found = [0; BLOCK as usize];
        let read = volume.read(&mut io, lba * BLOCK, &mut found);
        read.map(|()| assert_eq!(found, [lba as u8 + 1; BLOCK as usize], "block {lba}"))
    };
    refuses.store(true, Ordering::Release);
    let failed = (0..200).filter(|lba| read(*lba).is_err()).count();
    refuses.store(false, Ordering::Release);
    assert!(failed > 100, "{failed} reads failed");
    (0..200).for_each(|lba| read(lba).unwrap());
    volume.close().unwrap();
}

/// The device refuses a single read: whole blocks are read once more, one as well as several.
#[test]
fn a_whole_block_that_could_not_be_read_once_is_read_again() {
    let config = config(800, 16);
    let (folder, inner, refuses_next) =
        (tempfile::tempdir().unwrap(), device(&config), Arc::new(AtomicBool::new(false)));
    let open_refusing = || {
        let refuses_next = Arc::clone(&refuses_next);
        let refused = move |_, _| refuses_next.swap(false, Ordering::AcqRel);
        open(folder.path(), &config, &inner, refused).unwrap()
    };
    let (volume, mut io) = (open_refusing(), Io::new());
    volume.write(&mut io, 0, &[7; 8 * BLOCK as usize]).unwrap();
    volume.close().unwrap();
    let volume = open_refusing();
    for blocks in [1, 2, 5] {
        let mut found = vec![0; blocks * BLOCK as usize];
        // The checksums are in RAM now: the next read of the device is one of content.
        volume.read(&mut io, BLOCK, &mut found).unwrap();
        found.fill(0);
        refuses_next.store(true, Ordering::Release);
        volume.read(&mut io, BLOCK, &mut found).unwrap();
        assert!(!refuses_next.load(Ordering::Acquire), "a read was refused");
        assert!(found.iter().all(|byte| *byte == 7), "{blocks} blocks");
    }
    assert_eq!(volume.stats().damaged, 0);
    volume.close().unwrap();
}

/// A part of every segment is unreadable for a while, and writes wait for room: as soon as the device works again,
/// cleaning has the room to go on.
#[test]
fn cleaning_that_was_held_up_goes_on() {
    const BLOCKS: u64 = 800;
    let config = config(BLOCKS, 16);
    let (folder, inner, refuses) =
        (tempfile::tempdir().unwrap(), device(&config), Arc::new(AtomicBool::new(false)));
    let is_refusing = Arc::clone(&refuses);
    let refused = move |offset: u64, len: u64| {
        let third = offset / (16 * BLOCK) * 16 * BLOCK + 3 * BLOCK;
        (offset..offset + len).contains(&third) && is_refusing.load(Ordering::Acquire)
    };
    let count = Arc::<AtomicU64>::default();
    let volume = open(folder.path(), &config, &inner, counted(Arc::clone(&count), refused)).unwrap();
    let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
    let content = |write: u64| [write.to_le_bytes(); BLOCK as usize / 8].concat();
    let mut written = vec![0; BLOCKS as usize];
    for write in 1..4 * BLOCKS {
        let lba = if write <= BLOCKS { write - 1 } else { random.u64(..BLOCKS) };
        volume.write(&mut io, lba * BLOCK, &content(write)).unwrap();
        written[lba as usize] = write;
    }
    let before = count.load(Ordering::Acquire);
    refuses.store(true, Ordering::Release);
    let waits = volume.stats().waits;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("a write waits", || volume.stats().waits > waits);
            await_vain_cleaning(&count, before);
            refuses.store(false, Ordering::Release);
        });
        for write in 4 * BLOCKS..8 * BLOCKS {
            let lba = random.u64(..BLOCKS);
            volume.write(&mut io, lba * BLOCK, &content(write)).unwrap();
            written[lba as usize] = write;
        }
    });
    let mut found = vec![0; BLOCK as usize];
    for (lba, write) in (0..).zip(written) {
        volume.read(&mut io, lba * BLOCK, &mut found).unwrap();
        assert!(found == content(write), "block {lba}");
    }
    volume.close().unwrap();
}

/// Writes waited in vain, and room came when none waited: later writes wait as long as the first did.
#[test]
fn writes_wait_again_after_others_waited_in_vain() {
    const BLOCKS: u64 = 800;
    let config = config(BLOCKS, 16);
    let (folder, refuses) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(false)));
    let is_refusing = Arc::clone(&refuses);
    let refused = move |_: u64, _: u64| is_refusing.load(Ordering::Acquire);
    let count = Arc::<AtomicU64>::default();
    let refused = counted(Arc::clone(&count), refused);
    let volume = open(folder.path(), &config, &device(&config), refused).unwrap();
    let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
    let mut write = |lba: u64, wait| {
        volume.try_write(&mut io, lba * BLOCK, &[1; BLOCK as usize], WaitPolicy::fail_after(wait))
    };
    let mut overwrite = |wait| write(random.u64(..BLOCKS), wait);
    for _ in 0..4 * BLOCKS {
        overwrite(Duration::from_secs(60)).unwrap();
    }
    refuses.store(true, Ordering::Release);
    let (tries, error) =
        (1..).find_map(|tries| Some((tries, overwrite(Duration::from_millis(200)).err()?))).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let stats = volume.stats();
    assert_eq!((stats.writes, stats.bytes_written), (4 * BLOCKS + tries - 1, stats.writes * BLOCK));
    refuses.store(false, Ordering::Release);
    wait_until("segments are free", || volume.stats().segments_free > RESERVED_SEGMENTS + 1);
    let before = count.load(Ordering::Acquire);
    refuses.store(true, Ordering::Release);
    let waits = volume.stats().waits;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("a write waits", || volume.stats().waits > waits);
            await_vain_cleaning(&count, before);
            refuses.store(false, Ordering::Release);
        });
        for _ in 0..BLOCKS {
            overwrite(Duration::from_secs(60)).unwrap();
        }
    });
    volume.close().unwrap();
}

/// Segments without dead blocks are not moved, even if only they can be read and room is needed: moving gains nothing,
/// and would be repeated for ever.
#[test]
fn segments_without_dead_blocks_are_not_moved() {
    const BLOCKS: u64 = 800;
    let config = config(BLOCKS, 16);
    let (folder, refuses) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
    let is_refusing = Arc::clone(&refuses);
    // The first 400 blocks are in the first 400 / 13 segments of the log, each with a header, a footer and a summary.
    let refused =
        move |offset: u64, _: u64| offset > 400 / 13 * 16 * BLOCK && is_refusing.load(Ordering::Acquire);
    let count = Arc::<AtomicU64>::default();
    let refused = counted(Arc::clone(&count), refused);
    let volume = open(folder.path(), &config, &device(&config), refused).unwrap();
    let before = count.load(Ordering::Acquire);
    let mut io = Io::new();
    let mut write = |lba: u64| volume.write(&mut io, lba * BLOCK, &[1; BLOCK as usize]).unwrap();
    (0..BLOCKS).for_each(&mut write);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("a write waits", || volume.stats().waits > 0);
            await_vain_cleaning(&count, before);
            let stats = volume.stats();
            refuses.store(false, Ordering::Release);
            assert_eq!(stats.blocks_moved, 0, "{stats:?}");
        });
        let mut random = fastrand::Rng::with_seed(1);
        (0..1000).for_each(|_| write(random.u64(400..BLOCKS)));
    });
    volume.close().unwrap();
}

/// Some of a full volume's segments cannot be emptied, so that the target of free segments cannot be reached: cleaning
/// ends all the same, and does not write in vain.
#[test]
fn cleaning_ends_where_it_gains_nothing() {
    const BLOCKS: u64 = 800;
    let config = config(BLOCKS, 16);
    let (folder, refuses) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(false)));
    let is_refusing = Arc::clone(&refuses);
    // A block of content of each of the first segments.
    let refused = move |offset: u64, len: u64| {
        let third = offset / (16 * BLOCK) * 16 * BLOCK + 3 * BLOCK;
        let is_bad = third < 11 * 16 * BLOCK && (offset..offset + len).contains(&third);
        is_bad && is_refusing.load(Ordering::Acquire)
    };
    let volume = open(folder.path(), &config, &device(&config), refused).unwrap();
    let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
    let mut write = |lba: u64, wait| volume.try_write(&mut io, lba * BLOCK, &[1; BLOCK as usize], wait);
    (0..BLOCKS).for_each(|lba| write(lba, WaitPolicy::DEFAULT).unwrap());
    volume.commit().unwrap();
    refuses.store(true, Ordering::Release);
    // Each of those segments keeps its third block: 13 blocks of content lie from position 1 on.
    let mut overwrite = |_| match random.u64(..BLOCKS) {
        lba if lba % 13 == 2 && lba < 13 * 12 => Ok(()),
        lba => write(lba, WaitPolicy::non_blocking_after(Duration::from_secs(1))),
    };
    // Where a file system takes long to write the map down, writes are refused before much is cleaned.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut goes_on = |number: u64| {
        let is_written = overwrite(number).is_ok();
        is_written || volume.stats().segments_cleaned <= 10 && Instant::now() < deadline
    };
    let written = (0..20 * BLOCKS).take_while(|number| goes_on(*number)).count();
    let stats = volume.stats();
    assert!(stats.segments_cleaned > 10, "{written} writes, {stats:?}");
    wait_until("cleaning has ended", || {
        let before = volume.stats().blocks_moved;
        std::thread::sleep(Duration::from_millis(500));
        volume.stats().blocks_moved == before
    });
    volume.close().unwrap();
}

/// For each block that is unreadable at a start: synced content is there, or the start or the read is refused.
#[test]
fn a_block_that_cannot_be_read_does_not_bring_old_content_back() {
    // Enough segments that no checkpoint is written meanwhile.
    let config = config(800, 16);
    let folder = tempfile::tempdir().unwrap();
    let good = device(&config);
    let volume = open(folder.path(), &config, &good, |_, _| false).unwrap();
    let mut io = Io::new();
    for version in 1..=7 {
        volume.write(&mut io, 0, &[version; 4 * BLOCK as usize]).unwrap();
        if version % 2 == 1 {
            volume.commit().unwrap();
        }
    }
    volume.abandon();
    let (mut wrong, mut failed) = (Vec::new(), Vec::new());
    let mut opened = 0;
    for offset in (0..8 * config.segment_bytes).step_by(BLOCK as usize) {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let inner = Arc::new(good.after_power_cut(|_| true));
        let refused = move |at, len| (at..at + len).contains(&offset);
        let Ok(volume) = open(copy.path(), &config, &inner, refused) else { continue };
        opened += 1;
        for lba in 0..4 {
            let mut found = [0; BLOCK as usize];
            match volume.read(&mut io, lba * BLOCK, &mut found) {
                Ok(()) if found == [7; BLOCK as usize] => {}
                Ok(()) => wrong.push((offset / BLOCK, lba, found[0])),
                Err(_) => failed.push((offset / BLOCK, lba)),
            }
        }
        volume.abandon();
    }
    assert!(opened > 0, "a bad block where nothing lies is none of the volume's business");
    assert!(wrong.is_empty(), "bad block of the log, logical block, content: {wrong:?}");
    // A bad block of content costs only its logical block.
    let mut costs: Vec<u64> = failed.iter().map(|(_, lba)| *lba).collect();
    costs.sort_unstable();
    assert_eq!(costs, [0, 1, 2, 3], "bad block of the log, logical block that cannot be read: {failed:?}");
}

/// A segment that a kill left without a summary, and that a checkpoint covers since, has a bad block: only that block's
/// own content is lost, and where it has none, the segment is cleaned and reused as others are.
#[test]
fn a_bad_block_of_a_segment_without_a_summary_costs_itself_alone() {
    const BLOCKS: u64 = 800;
    let config = config(BLOCKS, 16);
    let folder = tempfile::tempdir().unwrap();
    let good = device(&config);
    let mut io = Io::new();
    let volume = open(folder.path(), &config, &good, |_, _| false).unwrap();
    volume.write(&mut io, 0, &[7; 4 * BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    volume.write(&mut io, 4 * BLOCK, &[7; 4 * BLOCK as usize]).unwrap();
    volume.commit().unwrap();
    volume.abandon();
    let volume = open(folder.path(), &config, &good, |_, _| false).unwrap();
    volume.write(&mut io, 9 * BLOCK, &[9; BLOCK as usize]).unwrap();
    volume.close().unwrap();
    // Header, content, footer, content, footer, and 5 blocks that were never written.
    for position in 1..16 {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let (bad, inner) = (position * BLOCK, Arc::new(good.after_power_cut(|_| true)));
        let is_bad = Arc::new(AtomicBool::new(false));
        let refuses = Arc::clone(&is_bad);
        let refused = move |at, len| refuses.load(Ordering::Acquire) && (at..at + len).contains(&bad);
        let volume = open(copy.path(), &config, &inner, refused).unwrap();
        // A bad block where a summary would be refuses a start.
        is_bad.store(true, Ordering::Release);
        let mut read = |lba: u64| {
            let mut found = [0; BLOCK as usize];
            let read = volume.read(&mut io, lba * BLOCK, &mut found);
            read.map(|()| assert_eq!(found, [7; BLOCK as usize], "bad block {position}")).is_ok()
        };
        let lost: Vec<u64> = (0..8).filter(|lba| !read(*lba)).collect();
        let expected = match position {
            1..5 => vec![position - 1],
            // A footer's content cannot be checked.
            5 => vec![0, 1, 2, 3],
            6..10 => vec![position - 2],
            10 => vec![4, 5, 6, 7],
            _ => vec![],
        };
        assert_eq!(lost, expected, "bad block {position}");
        if lost.is_empty() {
            let header = || {
                let mut header = [0; BLOCK as usize];
                inner.read_at(0, &mut header).unwrap();
                header
            };
            let before = header();
            let mut random = fastrand::Rng::with_seed(position);
            (8..BLOCKS).for_each(|lba| volume.write(&mut io, lba * BLOCK, &[1; BLOCK as usize]).unwrap());
            for _ in 0..4 * BLOCKS {
                volume.write(&mut io, random.u64(8..BLOCKS) * BLOCK, &[1; BLOCK as usize]).unwrap();
            }
            assert_ne!(header(), before, "the segment was cleaned, and its slot reused");
            // Where the slot is reused, the bad block may hold one of these blocks.
            is_bad.store(false, Ordering::Release);
            let mut found = [0; 8 * BLOCK as usize];
            volume.read(&mut io, 0, &mut found).unwrap();
            assert_eq!(found, [7; 8 * BLOCK as usize]);
        }
        volume.abandon();
    }
}
