//! Chooses reads to begin once the first keys of a large batch are planned, while the other keys are being planned.

use crate::flash::Flash;
use crate::limits::WANTED_DIVISOR;
use crate::lookup::{BegunReads, Probe};
use granary_log::Io;
use granary_log::limits::{READ_DEPTH, READ_FRAMES_MAX};

/// The end of the device at which a thread begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceEnd {
    Low,
    High,
}

/// The number of the longest reads that one thread can have in flight.
const WINDOWS_MAX: u64 = (READ_DEPTH / READ_FRAMES_MAX) as u64;

/// The reads that a thread begins early, and the scratch space to choose them in.
#[derive(Default)]
pub(crate) struct Ahead {
    pub begun: BegunReads,
    /// The blocks of probes.
    blocks: Vec<u64>,
    /// Whether each block of some windows is wanted.
    wanted: Vec<bool>,
}

impl Ahead {
    /// The block in the middle of the probes'.
    pub(super) fn middle_of(&mut self, probes: &[Probe]) -> u64 {
        let blocks = &mut self.blocks;
        blocks.clear();
        blocks.extend(probes.iter().map(|probe| probe.block));
        let middle = blocks.len() / 2;
        if blocks.is_empty() { 0 } else { *blocks.select_nth_unstable(middle).1 }
    }

    /// Chooses windows of the device, each of one longest read, from one end up to block `middle`, in which the batch's
    /// first keys already need so many blocks that the other keys will need the rest.
    pub(super) fn choose(&mut self, flash: &Flash, probes: &[Probe], end: DeviceEnd, middle: u64) {
        let geometry = flash.log.geometry();
        let block_size = geometry.block_size();
        let blocks = (Io::extent_bytes_max(block_size) / block_size) as u64;
        let Self { begun, wanted, .. } = self;
        begun.clear(block_size);
        let windows = probes.iter().map(|probe| probe.block / blocks);
        let (Some(lowest), Some(highest)) = (windows.clone().min(), windows.max()) else { return };
        let windows = match end {
            DeviceEnd::Low => lowest..(lowest + WINDOWS_MAX).min(middle / blocks),
            DeviceEnd::High => {
                (highest + 1).saturating_sub(WINDOWS_MAX).max(middle / blocks + 1)..highest + 1
            }
        };
        if windows.is_empty() {
            return;
        }
        let range = windows.start * blocks..(windows.end * blocks).min(geometry.blocks());
        wanted.clear();
        wanted.resize((range.end - range.start) as usize, false);
        for probe in probes.iter().filter(|probe| range.contains(&probe.block)) {
            wanted[(probe.block - range.start) as usize] = true;
        }
        for (window, wanted) in windows.zip(wanted.chunks_exact(blocks as usize)) {
            if wanted.iter().filter(|wanted| **wanted).count() >= wanted.len().div_ceil(WANTED_DIVISOR) {
                begun.add(flash, window * blocks..(window + 1) * blocks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::KeyDigest;
    use crate::{Cache, Entry};
    use crate::{FlashOptions, Options};

    /// Blocks in a window.
    const BLOCKS: u64 = 32;

    fn probes(blocks: impl Iterator<Item = u64>) -> Vec<Probe> {
        blocks.map(|block| Probe { block, key: 0, digest: KeyDigest::of(b""), is_found: false }).collect()
    }

    /// Chooses twice: what was chosen before does not matter.
    fn chosen(flash: &Flash, probes: &[Probe], end: DeviceEnd, middle: u64) -> BegunReads {
        let mut ahead = Ahead::default();
        ahead.choose(flash, probes, end, middle);
        ahead.choose(flash, probes, end, middle);
        ahead.begun
    }

    /// The windows that are read.
    fn windows(ahead: &BegunReads) -> Vec<u64> {
        ahead.extents.iter().map(|extent| extent.offset / (BLOCKS * 4096)).collect()
    }

    #[test]
    fn windows_at_an_end_that_are_half_wanted_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut flash = FlashOptions::new(folder.path().join("c"), 2000 * 4096);
        (flash.block_size, flash.write_buffer_size) = (4096, 40 * 4096);
        let cache = Cache::open(Options { flash: Some(flash), ..Options::default() }).unwrap();
        let flash = cache.partitions[0].shared.flash.as_ref().unwrap();
        let choose = |probes: &[Probe], end, middle| windows(&chosen(flash, probes, end, middle));
        let half = |window: u64| (window * BLOCKS..(window + 1) * BLOCKS).step_by(2);
        let dense = probes((10..60).flat_map(half));
        assert_eq!(choose(&dense, DeviceEnd::Low, u64::MAX), Vec::from_iter(10..26));
        assert_eq!(choose(&dense, DeviceEnd::High, 0), Vec::from_iter(44..60));
        // Not beyond the middle, whose window belongs to both threads.
        assert_eq!(choose(&dense, DeviceEnd::Low, 12 * BLOCKS + 5), [10, 11]);
        assert_eq!(choose(&dense, DeviceEnd::High, 57 * BLOCKS + 5), [58, 59]);
        let mixed = probes(half(1).chain(half(2).skip(1)).chain(half(3)));
        assert_eq!(choose(&mixed, DeviceEnd::Low, u64::MAX), [1, 3]);
        // The last window is incomplete.
        assert_eq!(choose(&probes(half(61).chain(half(62).take(8))), DeviceEnd::High, 0), [61]);
        assert_eq!(choose(&[], DeviceEnd::Low, 0), Vec::<u64>::new());
    }

    #[test]
    fn a_block_is_read_as_the_segment_that_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut flash = FlashOptions::new(folder.path().join("c"), 64 * BLOCKS * 4096);
        (flash.block_size, flash.write_buffer_size) = (4096, 16 * 4096);
        let cache = Cache::open(Options { flash: Some(flash), ..Options::default() }).unwrap();
        let put = |entries: u64| {
            for key in 0..entries {
                let key = key.to_le_bytes();
                cache.put_many(&[Entry { key: cache.key(&key), value: Some(&[7; 3000]), expires_at: 0 }]);
            }
            cache.flush().unwrap();
        };
        put(3 * BLOCKS);
        let flash = cache.partitions[0].shared.flash.as_ref().unwrap();
        let geometry = flash.log.geometry();
        let wanted = probes(0..2 * BLOCKS);
        let mut ahead = chosen(flash, &wanted, DeviceEnd::Low, u64::MAX);
        assert_eq!((windows(&ahead), ahead.blocks()), (vec![0, 1], 2 * BLOCKS as usize));
        let brings =
            |ahead: &BegunReads, block| ahead.covers(geometry.offset(block), flash.log.sequence_of(block));
        assert!((0..2 * BLOCKS).all(|block| brings(&ahead, block)) && !brings(&ahead, 2 * BLOCKS));
        ahead.truncate(1);
        assert!((0..BLOCKS).all(|block| brings(&ahead, block)) && !brings(&ahead, BLOCKS));
        // The ring comes round to the first of its two segments.
        while flash.log.head() < geometry.segments() {
            put(1);
        }
        assert!(!brings(&ahead, 0) && brings(&ahead, BLOCKS - 1));
    }
}
