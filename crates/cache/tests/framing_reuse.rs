//! Slots and sequence numbers that are reused: old blocks do not count as present ones, and are reclaimed in time.

mod framing;

use framing::{Store, options, record, summary_entry};
use granary_cache::framing::{Log, Placed, Records, Summary, append, block};
use granary_log::device::{Device, Fault, Faults, FaultyDevice, MemoryDevice};
use granary_log::{Consumer, Engine, Geometry, Io, OnWriteError};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// (number, sequence) of the blocks that are valid in their places.
fn valid_blocks(device: &dyn Device, geometry: &Geometry, instance: u64) -> BTreeSet<(u64, u64)> {
    let mut bytes = vec![0; geometry.file_bytes() as usize];
    device.read_at(0, &mut bytes).unwrap();
    let blocks = bytes.chunks_exact(geometry.block_size()).zip(0..);
    blocks.filter_map(|(bytes, n)| Some((n, block::check(bytes, instance, n)?.sequence))).collect()
}

/// Puts the first version of keys 0 to `keys`, and releases all segments at once: which write a fault strikes must not
/// depend on the flusher's speed.
fn fill(log: &Log, keys: u64) {
    let mut writer = log.writer();
    writer.defer_flush();
    // The next start begins with a deletion for each lost key. With as many deletions here first, the keys lie in the
    // same blocks again.
    for key in keys..2 * keys {
        append(&mut writer, summary_entry(key, true), &[&record(summary_entry(key, true), 0, 0)]).unwrap();
    }
    for key in 0..keys {
        let summary_entry = summary_entry(key, false);
        let placed = append(&mut writer, summary_entry, &[&record(summary_entry, 1, 100)]).unwrap();
        writer.journal(placed.sequence, &[summary_entry]);
    }
    writer.seal();
    drop(writer);
    let _ = log.flush();
}

/// A kill leaves segments half written, and their sequence numbers are reused. If new blocks get lost, the old ones
/// have the right place, number and checksum.
#[test]
fn half_written_blocks_do_not_pass_for_those_written_in_their_place() {
    // With summaries, and without; two segments are filled.
    for (blocks, keys) in [(16, 100), (4, 22)] {
        let geometry = Geometry::new(32 * blocks * 512, blocks * 512, 512).unwrap();
        let mut scrubbed = 0;
        for seed in 0..40 {
            let what = format!("segments of {blocks} blocks, seed {seed}");
            let folder = tempfile::tempdir().unwrap();
            let options = options(folder.path(), geometry);
            let faults =
                |chances: &[(Fault, u32)]| Faults { seed, chances: chances.into(), crash_after_writes: None };
            let memory = Arc::new(MemoryDevice::new(geometry.file_bytes()));
            let first = faults(&[(Fault::Torn, 30_000), (Fault::Lost, 40_000)]);
            let device = Arc::new(FaultyDevice::new(Arc::clone(&memory), geometry.block_size(), first));
            let open = || Store::open(Some(Box::new(Arc::clone(&device))), &options);
            let mut io = Io::with_engine(Engine::Plain);

            let store = open();
            let instance = store.log.instance();
            fill(&store.log, keys);
            assert_eq!(store.log.head(), 2);
            store.abandon();
            let left = valid_blocks(&memory, &geometry, instance);

            let chance = if seed % 2 == 0 { 65_536 } else { 30_000 };
            let lost = faults(&[(Fault::Lost, chance)]);
            // Half of the starts meet faults.
            device.set_faults(if seed % 4 < 2 { Faults::default() } else { lost.clone() });
            let store = open();
            scrubbed += left.difference(&valid_blocks(&memory, &geometry, instance)).count();
            device.set_faults(lost);
            for key in 0..keys {
                assert!(store.append(key, false, 2, 100), "{what}: there is room");
            }
            let _ = store.log.flush();
            let mut check = |store: &Store, when: &str| {
                for key in 0..keys {
                    let found = store.get(&mut io, key);
                    assert!(matches!(found, None | Some(2)), "{what}, {when}: key {key} is {found:?}");
                }
            };
            check(&store, "as it runs");
            if seed % 8 < 4 {
                // If the device fails, it counts as a kill.
                let _ = store.try_stop();
            } else {
                store.abandon()
            }

            device.set_faults(Faults::default());
            let store = open();
            check(&store, "started again");
            store.abandon();
        }
        assert!(scrubbed > 0, "segments of {blocks} blocks: nothing was left half written");
    }
}

/// A consumer that notes which segments it is told to forget.
struct Told<'a> {
    log: &'a Log,
    reclaimed: Mutex<BTreeSet<u64>>,
}

impl Consumer<Records> for Told<'_> {
    fn reclaim(&self, segment: &Summary) {
        let placed = Placed { sequence: segment.sequence, block: segment.first_block };
        assert!(
            !self.log.may_index(placed.sequence),
            "who asks after segment {} was reclaimed is told",
            segment.sequence
        );
        self.reclaimed.lock().unwrap().insert(segment.sequence);
    }
    fn reclaim_unread(&self, blocks: Range<u64>) {
        panic!("{blocks:?} can be read");
    }
    fn on_write_error(&self, segment: &Summary, _: &std::io::Error) -> OnWriteError {
        panic!("segment {} can be written", segment.sequence);
    }
}

/// [`Log::may_index`](granary_log::Log::may_index) holds until the consumer is told to forget the segment.
#[test]
fn a_place_is_kept_until_it_is_reclaimed() {
    for (segments, blocks) in [(1, 1), (1, 16), (2, 1), (5, 16), (64, 1), (80, 16)] {
        let what = format!("{segments} segments of {blocks} blocks");
        let geometry = Geometry::new(segments * blocks * 512, blocks * 512, 512).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let memory = Box::new(MemoryDevice::new(geometry.file_bytes()));
        let (log, _) = Log::open_on(framing::framing(), memory, &options(folder.path(), geometry)).unwrap();
        let told = Told { log: &log, reclaimed: Mutex::default() };
        // From here on `run_flusher` does pending work and returns.
        log.abandon();
        let append = |key| {
            let mut writer = log.writer();
            let placed =
                append(&mut writer, summary_entry(key, false), &[&record(summary_entry(key, false), 1, 100)]);
            writer.seal();
            drop(writer);
            log.run_flusher(&told);
            placed
        };
        let mut all = Vec::new();
        for key in 0..5 * segments {
            // A single segment is emptied when the next one is requested.
            all.push(append(key).or_else(|| append(key)).expect("there is room"));
            for placed in &all {
                let reclaimed = told.reclaimed.lock().unwrap().contains(&placed.sequence);
                assert_eq!(
                    log.may_index(placed.sequence),
                    !reclaimed,
                    "{what}, {} put: {placed:?}",
                    all.len()
                );
            }
        }
        let reclaimed = told.reclaimed.lock().unwrap().len() as u64;
        assert!((4 * segments..5 * segments).contains(&reclaimed), "{what}: {reclaimed} are reclaimed");
    }
}
