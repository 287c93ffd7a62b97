//! Losses of power at bad moments.

#[path = "../../../log/tests/common/golden.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod golden;

use crate::admission::Admission;
use crate::flash::Flash;
use crate::{Cache, Engine, Entry, FlashOptions, Io, Options, Outcome, PowerLoss};
use granary_log::device::VolatileDevice;
use std::path::Path;
use std::sync::Arc;

const SEGMENTS: u64 = 64;
const BLOCKS: u64 = 16;

fn options(folder: &Path, admission: Admission) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), SEGMENTS * BLOCKS * 512);
    (flash.block_size, flash.write_buffer_size) = (512, BLOCKS * 512);
    (flash.power_loss, flash.admission) = (PowerLoss::ServeOlder, admission);
    Options { flash: Some(flash), memory_bytes: 256 << 10, ..Options::default() }
}

fn device() -> Arc<VolatileDevice> {
    Arc::new(VolatileDevice::new(SEGMENTS * BLOCKS * 512, 512))
}

fn open(device: &Arc<VolatileDevice>, options: &Options) -> Cache {
    Cache::open_on(Box::new(Arc::clone(device)), options.clone()).unwrap()
}

fn put(cache: &Cache, key: u64, value: &[u8]) {
    cache.put_many(&[Entry { key: cache.key(&key.to_le_bytes()), value: Some(value), expires_at: 0 }]);
}

fn get(cache: &Cache, key: u64) -> Option<Vec<u8>> {
    let mut found = None;
    cache.get_many(&mut Io::with_engine(Engine::Plain), &[cache.key(&key.to_le_bytes())], 1, |_, outcome| {
        if let Outcome::Hit { value, .. } = outcome {
            found = Some(value.to_vec());
        }
    });
    found
}

fn flash(cache: &Cache) -> &Flash {
    cache.partitions[0].shared.flash.as_ref().unwrap()
}

/// The deletions of lost entries fill several segments, of which a loss of power leaves only the first.
#[test]
fn what_was_lost_stays_lost_when_its_deletions_are_lost_in_part() {
    const KEYS: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Admission::All);
    let state = folder.path().join("c.state");
    let mut device = device();
    let cache = open(&device, &options);
    (0..KEYS).for_each(|key| {
        put(&cache, key, b"old");
        if key % 100 == 0 {
            cache.flush().unwrap();
        }
    });
    assert!((0..KEYS).filter(|key| get(&cache, *key).is_some()).count() > KEYS as usize * 9 / 10);
    cache.close().unwrap();
    let cache = open(&device, &options);
    (0..KEYS).for_each(|key| cache.delete_many(&[cache.key(&key.to_le_bytes())]));
    cache.sync_changes().unwrap();
    cache.abandon();
    device = Arc::new(device.after_power_cut(|_| false));
    golden::lose_power(&state);
    let cache = open(&device, &options);
    assert_eq!((0..KEYS).filter(|key| get(&cache, *key).is_some()).count(), 0);
    let is_synced = flash(&cache).log.is_journal_synced();
    cache.flush().unwrap();
    cache.abandon();
    if !is_synced {
        // What the previous start synced: the first append.
        let path = folder.path().join("c.journal.0");
        let mut journal = std::fs::read(&path).unwrap();
        let summary_entries = u32::from_le_bytes(journal[4..8].try_into().unwrap());
        assert!(u64::from(summary_entries) >= KEYS);
        journal.truncate(32 + 8 * summary_entries as usize);
        std::fs::write(&path, journal).unwrap();
        std::fs::write(folder.path().join("c.journal.1"), []).unwrap();
    }
    device = Arc::new(device.after_power_cut(|unit| unit < BLOCKS as usize));
    golden::lose_power(&state);
    let cache = open(&device, &options);
    assert_eq!((0..KEYS).filter(|key| get(&cache, *key).is_some()).count(), 0);
    cache.abandon();
}

/// DRAM first: the index lost an entry, and its segment was overwritten, but that was not synced.
#[test]
fn what_the_index_lost_sight_of_is_deleted_until_a_sync_after_it_was_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Admission::Probability(1.0));
    let state = folder.path().join("c.state");
    let device = device();
    let cache = open(&device, &options);
    let value = vec![7; 300];
    let shared = Arc::clone(&cache.partitions[0].shared);
    let mut other = 1_000u64;
    let mut write_one = |cache: &Cache| {
        let entries = [(); 12].map(|()| {
            other += 1;
            other
        });
        let head = flash(cache).log.head();
        let writer = shared.flash.as_ref().unwrap();
        // As the evictor does; each entry fills a segment.
        for key in entries {
            let bytes = key.to_le_bytes();
            let hash = shared.hasher.hash(&bytes);
            let stored = crate::codec::StoredValue { codec: crate::codec::Codec::None, bytes: &value };
            let header = crate::record::HeaderBytes::entry(&bytes, Some(stored), 0);
            let parts = [header.as_slice(), &bytes[..], &value[..]];
            writer.append_entry(&mut writer.log.writer(), hash, &parts, Some(stored)).unwrap();
        }
        cache.flush().unwrap();
        assert_eq!(flash(cache).log.head(), head + 1);
    };
    // Segment 16, which the last of the first sync.
    while flash(&cache).log.head() < 15 {
        write_one(&cache);
    }
    {
        let flash = flash(&cache);
        let bytes = 1u64.to_le_bytes();
        let hash = shared.hasher.hash(&bytes);
        let stored = crate::codec::StoredValue { codec: crate::codec::Codec::None, bytes: b"old" };
        let header = crate::record::HeaderBytes::entry(&bytes, Some(stored), 0);
        let parts = [header.as_slice(), &bytes[..], b"old"];
        flash.append_entry(&mut flash.log.writer(), hash, &parts, Some(stored)).unwrap();
    }
    cache.flush().unwrap();
    // The index does not know it.
    shared.note_unindexed();
    let written = flash(&cache).log.head();
    assert_eq!(written, 16);
    while flash(&cache).log.head() < written + SEGMENTS {
        write_one(&cache);
    }
    put(&cache, 1, b"new");
    cache.sync_changes().unwrap();
    drop(shared);
    cache.abandon();
    let device = Arc::new(device.after_power_cut(|_| false));
    golden::lose_power(&state);
    let cache = open(&device, &options);
    assert_ne!(get(&cache, 1).as_deref(), Some(&b"old"[..]));
    cache.abandon();
}
