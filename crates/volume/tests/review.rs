//! What a volume does where the device does not give back what it was given.

use granary_log::device::{Device, VolatileDevice};
use granary_volume::{Config, Io, Volume};
use std::io;
use std::path::Path;
use std::sync::Arc;

const BLOCK: u64 = 512;

fn config(blocks: u64, per_segment: u64) -> Config {
    let segment_bytes = per_segment * BLOCK;
    Config { block_size: BLOCK, segment_bytes, ..Config::new(blocks * BLOCK) }
}

fn device(config: &Config) -> Arc<VolatileDevice> {
    Arc::new(VolatileDevice::new(config.geometry().unwrap().file_bytes(), BLOCK as usize))
}

/// A device of which one block cannot be read.
struct BadBlock {
    inner: Arc<VolatileDevice>,
    offset: u64,
}

impl Device for BadBlock {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        if (offset..offset + bytes.len() as u64).contains(&self.offset) {
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

/// Whichever block cannot be read at a start: what was synced is there, or the start or the read is refused.
#[test]
fn a_block_that_cannot_be_read_does_not_bring_old_content_back() {
    // So many segments that no checkpoint is written meanwhile.
    let config = config(800, 16);
    let folder = tempfile::tempdir().unwrap();
    let good = device(&config);
    let open = |folder: &Path, device: Box<dyn Device>| Volume::open_on(folder, "v", &config, device);
    let volume = open(folder.path(), Box::new(Arc::clone(&good))).unwrap();
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
        let Ok(volume) = open(copy.path(), Box::new(BadBlock { inner, offset })) else { continue };
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
    assert!(wrong.is_empty(), "bad block of the log, logical block, content: {wrong:?}"); // A bad block that is content costs its logical block and no more.
    let mut costs: Vec<u64> = failed.iter().map(|(_, lba)| *lba).collect();
    costs.sort_unstable();
    assert_eq!(costs, [0, 1, 2, 3], "bad block of the log, logical block that cannot be read: {failed:?}");
}
