//! No checkpoint can be written, as on a full file system: reads succeed, writes fail, and with room again everything
//! goes on.

#[path = "../../log/tests/common/golden.rs"]
#[expect(dead_code, reason = "only the loss of power is used here")]
mod golden;
#[path = "common/wait.rs"]
mod wait;

use golden::lose_power;
use granary_volume::device::{Device, MemoryDevice, VolatileDevice};
use granary_volume::{Config, Io, Volume, WaitPolicy};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wait::wait_until;

const SIZE: u64 = 16 << 20;
const BLOCK: u64 = 4096;

fn open(folder: &Path) -> Volume {
    Volume::open(folder, "v", &mut |_, _| {}).unwrap()
}

fn write(volume: &Volume, lba: u64, byte: u8) -> std::io::Result<()> {
    volume.write(&mut Io::new(), lba * BLOCK, &[byte; BLOCK as usize])
}

fn has(volume: &Volume, lba: u64, byte: u8) {
    let mut found = [!byte; BLOCK as usize];
    volume.read(&mut Io::new(), lba * BLOCK, &mut found).unwrap();
    assert_eq!(found, [byte; BLOCK as usize], "block {lba}");
}

/// A volume whose block 5 has content, which is durable.
fn create(folder: &Path, closed: bool) {
    Volume::create(folder, "v", &Config::new(SIZE)).unwrap();
    let volume = open(folder);
    write(&volume, 5, 7).unwrap();
    volume.commit().unwrap();
    if closed { volume.close().unwrap() } else { volume.abandon() }
}

/// Prevents checkpoints until it is dropped.
struct Full<'a>(&'a Path);

impl<'a> Full<'a> {
    fn new(folder: &'a Path) -> Self {
        std::fs::create_dir(folder.join("v.map.new")).unwrap();
        Self(folder)
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        std::fs::remove_dir(self.0.join("v.map.new")).unwrap();
    }
}

#[test]
fn a_killed_volume_is_read_and_not_written_until_its_map_can_be_written_down() {
    for closes in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), false);
        let full = Full::new(folder.path());
        // Twice, for the first start must not change what the second one finds.
        for _ in 0..2 {
            let volume = open(folder.path());
            has(&volume, 5, 7);
            write(&volume, 5, 8).expect_err("the map cannot be written down");
            write(&volume, 6, 8).expect_err("the map cannot be written down");
            volume.trim(0, SIZE).expect_err("the map cannot be written down");
            volume.write_zeroes(&mut Io::new(), 0, SIZE).expect_err("the map cannot be written down");
            volume.commit().unwrap();
            has(&volume, 5, 7);
            has(&volume, 6, 0);
            if closes { volume.close().unwrap() } else { volume.abandon() }
        }
        let volume = open(folder.path());
        assert_eq!(volume.stats().checkpoints, 0);
        drop(full);
        // The checkpoint is retried within a second.
        wait_until("the map is written down", || write(&volume, 6, 8).is_ok());
        volume.commit().unwrap();
        assert!(volume.stats().checkpoints > 0);
        volume.abandon();
        let volume = open(folder.path());
        has(&volume, 5, 7);
        has(&volume, 6, 8);
        volume.close().unwrap();
    }
}

/// The cleaner retries the checkpoint, even if no client writes.
#[test]
fn the_map_is_written_down_as_soon_as_it_can() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), false);
    let full = Full::new(folder.path());
    let volume = open(folder.path());
    drop(full);
    wait_until("the map is written down", || volume.stats().checkpoints > 0);
    has(&volume, 5, 7);
    volume.close().unwrap();
}

/// An unchanged map is not written again.
#[test]
fn looking_at_a_closed_volume_writes_no_map() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), true);
    let map = || std::fs::metadata(folder.path().join("v.map")).unwrap().ino();
    let before = map();
    let look = || {
        let volume = open(folder.path());
        has(&volume, 5, 7);
        volume.close().unwrap();
        assert_eq!(map(), before);
    };
    (0..3).for_each(|_| look());
    // Nor is room for a checkpoint needed.
    let _full = Full::new(folder.path());
    look();
}

/// During a checkpoint nothing is cleaned: writes wait for its end, however long it takes.
#[test]
fn writes_wait_while_the_map_is_written_down() {
    // Only time outside checkpoints counts: the cleaner syncs a device in RAM, which takes none.
    const WAIT: Duration = Duration::from_secs(5);
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(SIZE);
    let device = Arc::new(MemoryDevice::new(config.geometry().unwrap().file_bytes()));
    let open = || Volume::open_on(folder.path(), "v", &config, Box::new(Arc::clone(&device))).unwrap();
    open().close().unwrap();
    let volume = open();
    let fresh = folder.path().join("v.map.new");
    // A writer of the FIFO waits for a reader.
    rustix::fs::mkfifoat(rustix::fs::CWD, &fresh, rustix::fs::Mode::RWXU).unwrap();
    let is_taken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("a write waits", || volume.stats().waits > 0);
            // Longer than a write waits for room.
            std::thread::sleep(2 * WAIT);
            is_taken.store(true, Ordering::Release);
            // A FIFO cannot be synced, so the checkpoint is written again.
            std::fs::read(&fresh).unwrap();
        });
        let (mut io, mut random) = (Io::new(), fastrand::Rng::with_seed(1));
        for _ in 0..3 * SIZE / BLOCK {
            let offset = random.u64(..SIZE / BLOCK) * BLOCK;
            let begun = Instant::now();
            let mut write =
                || volume.try_write(&mut io, offset, &[9; BLOCK as usize], WaitPolicy::fail_after(WAIT));
            while let Err(error) = write() {
                // Outside checkpoints a slow machine may take longer.
                let may_fail = is_taken.load(Ordering::Acquire) && begun.elapsed() < 12 * WAIT;
                assert!(may_fail, "{error}");
            }
        }
    });
    assert!(volume.stats().waits > 0, "{:?}", volume.stats());
    // The checkpoint is retried within a second.
    wait_until("the map is written down", || volume.stats().checkpoints > 0);
    volume.close().unwrap();
}

/// A close that cannot write the checkpoint fails, and loses no writes.
#[test]
fn a_close_that_writes_no_map_is_an_error_if_anything_was_written() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), true);
    let volume = open(folder.path());
    write(&volume, 6, 8).unwrap();
    let full = Full::new(folder.path());
    volume.close().expect_err("the map cannot be written down");
    let volume = open(folder.path());
    has(&volume, 5, 7);
    has(&volume, 6, 8);
    drop(full);
    volume.close().unwrap();
    let volume = open(folder.path());
    has(&volume, 5, 7);
    has(&volume, 6, 8);
    volume.close().unwrap();
}

/// Nor does it lose what was written without a flush, whatever becomes of the machine then.
#[test]
fn a_close_that_writes_no_map_makes_durable_what_was_written() {
    let (folder, config) = (tempfile::tempdir().unwrap(), Config::new(SIZE));
    let device = Arc::new(VolatileDevice::new(config.geometry().unwrap().file_bytes(), BLOCK as usize));
    let open = |device: &Arc<VolatileDevice>| {
        Volume::open_on(folder.path(), "v", &config, Box::new(Arc::clone(device))).unwrap()
    };
    let volume = open(&device);
    write(&volume, 5, 7).unwrap();
    volume.close().unwrap();
    let volume = open(&device);
    (6..300).for_each(|lba| write(&volume, lba, 8).unwrap());
    let full = Full::new(folder.path());
    let error = volume.close().expect_err("the map cannot be written down").to_string();
    assert!(error.contains("the map cannot be written down") && error.contains("is durable"), "{error}");
    let device = Arc::new(device.after_power_cut(|_| false));
    lose_power(&folder.path().join("v.state"));
    let volume = open(&device);
    has(&volume, 5, 7);
    (6..300).for_each(|lba| has(&volume, lba, 8));
    drop(full);
    volume.close().unwrap();
}

/// A device in RAM. Once it is damaged, only the first and the last block of each segment can be read.
struct Damaged {
    inner: MemoryDevice,
    segment_bytes: u64,
    is_damaged: AtomicBool,
}

impl Device for Damaged {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let blocks = self.segment_bytes / BLOCK;
        let mut positions =
            (offset / BLOCK..(offset + bytes.len() as u64).div_ceil(BLOCK)).map(|block| block % blocks);
        let is_content = |position: u64| position > 0 && position < blocks - 1;
        match self.is_damaged.load(Ordering::Acquire) && positions.any(is_content) {
            true => Err(io::Error::from_raw_os_error(5)),
            false => self.inner.read_at(offset, bytes),
        }
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        self.inner.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Damaged segments are reused once they have no live blocks, which trims achieve: these must find room.
#[test]
fn trims_make_room_where_nothing_can_be_cleaned() {
    let (long, short) = (WaitPolicy::DEFAULT, WaitPolicy::fail_after(Duration::from_secs(1)));
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(SIZE);
    let geometry = config.geometry().unwrap();
    let device = Arc::new(Damaged {
        inner: MemoryDevice::new(geometry.file_bytes()),
        segment_bytes: geometry.segment_bytes(),
        is_damaged: AtomicBool::new(false),
    });
    let volume = Volume::open_on(folder.path(), "v", &config, Box::new(Arc::clone(&device))).unwrap();
    let mut io = Io::new();
    let mut write = |lba: u64, policy| volume.try_write(&mut io, lba * BLOCK, &[7; BLOCK as usize], policy);
    (0..SIZE / BLOCK).for_each(|lba| write(lba, long).unwrap());
    volume.commit().unwrap();
    device.is_damaged.store(true, Ordering::Release);
    let mut random = fastrand::Rng::with_seed(1);
    let refused =
        (0..100_000).find_map(|_| write(random.u64(0..SIZE / BLOCK), short).err()).expect("it is full");
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    volume.try_trim(0, SIZE / 4, long).unwrap();
    volume.try_trim(SIZE / 4, SIZE * 3 / 4, long).unwrap();
    (0..SIZE / BLOCK).for_each(|lba| write(lba, long).unwrap());
    volume.close().unwrap();
}
