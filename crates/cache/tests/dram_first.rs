//! A DRAM-first cache: which entries are written, and which survive a stop and a kill.

mod common;

use common::{get_version as get, options};
use granary_cache::admission::{Admission, Flashield};
use granary_cache::{Cache, Entry, Io, Options, Outcome, Stats, testing};
use std::path::Path;
use std::time::{Duration, Instant};

/// 64 segments of 64 KiB, and `memory_bytes` of RAM.
fn dram_first(folder: &Path, memory_bytes: u64, admission: Admission) -> Options {
    let mut options = options(folder, 64, 128, memory_bytes);
    options.flash.as_mut().expect("on flash").admission = admission;
    options
}

/// Puts a version of a key: 400 bytes.
fn put(cache: &Cache, key: u64, version: u64) {
    let mut value = [0x5A; 400];
    value[..8].copy_from_slice(&version.to_le_bytes());
    cache.put_many(&[Entry { key: cache.key(&key.to_le_bytes()), value: Some(&value), expires_at: 0 }]);
}

/// Waits for the evictor.
fn until(cache: &Cache, what: &str, mut is: impl FnMut(&Stats) -> bool) {
    let start = Instant::now();
    while !is(&cache.stats()) {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} does not come: {:?}", cache.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn found(cache: &Cache, keys: std::ops::Range<u64>) -> usize {
    keys.filter(|key| get(cache, *key) == Some(*key)).count()
}

#[test]
fn what_fits_in_ram_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let all = Admission::Probability(1.0);
    let cache = Cache::open(dram_first(folder.path(), 4 << 20, all)).unwrap();
    for version in 0..20 {
        (0..1000).for_each(|key| put(&cache, key, key + version));
        (0..100).for_each(|key| cache.delete_many(&[cache.key(&u64::to_le_bytes(key))]));
    }
    cache.flush().unwrap();
    assert_eq!(cache.stats().bytes_written, 0, "neither updates nor deletions write");
    assert_eq!(cache.stats().entries, 900);
    (100..1000).for_each(|key| assert_eq!(get(&cache, key), Some(key + 19)));
}

#[test]
fn a_stop_saves_what_is_in_ram_and_a_kill_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Cache::open(dram_first(folder.path(), 4 << 20, Admission::RejectFirst)).unwrap();
    let cache = open();
    (0..1000).for_each(|key| put(&cache, key, key));
    drop(cache);
    let cache = open();
    assert_eq!(found(&cache, 0..1000), 1000, "warm after a stop");
    (0..500).for_each(|key| put(&cache, key, key + 1));
    cache.delete_many(&[cache.key(&999u64.to_le_bytes())]);
    testing::abandon(cache);
    let cache = open();
    assert_eq!(found(&cache, 0..500), 0, "what was written over in RAM does not come back");
    assert_eq!(found(&cache, 500..999), 499, "what was on flash is there");
    assert_eq!(get(&cache, 999), None);
    testing::validate(&cache);
}

#[test]
fn what_nobody_read_does_not_go_to_flash_for_what_others_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    // Until the policy has learnt, a read in RAM is enough to be admitted.
    let flashield = Admission::Flashield(Flashield::default());
    let cache = Cache::open(dram_first(folder.path(), 2 << 20, flashield)).unwrap();
    let mut next = 0;
    while cache.stats().rejected < 5000 {
        (next..next + 500).for_each(|key| put(&cache, key, key));
        next += 500;
        // Keys that were never put, some of which look like existing ones.
        (0..2000).for_each(|key| assert_eq!(get(&cache, u64::MAX - key), None));
    }
    assert_eq!(cache.stats().admitted, 0);
    // An entry that was read is admitted when it has to leave.
    let read = next - 1;
    assert_eq!(get(&cache, read), Some(read));
    (next..next + 20_000).for_each(|key| put(&cache, key, key));
    until(&cache, "what was read", |stats| stats.admitted == 1);
}

#[test]
fn none_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Cache::open(dram_first(folder.path(), 1 << 20, Admission::None)).unwrap();
    let cache = open();
    (0..20_000).for_each(|key| put(&cache, key, key));
    until(&cache, "eviction", |stats| stats.rejected > 10_000);
    cache.put_many(&[Entry { key: cache.key(b"large"), value: Some(&[7; 10_000]), expires_at: 0 }]);
    cache.flush().unwrap();
    assert_eq!(cache.stats().bytes_written, 0);
    assert!(found(&cache, 19_000..20_000) > 900, "the newest are in RAM");
    drop(cache);
    assert_eq!(open().stats().entries, 0);
}

#[test]
fn flash_gets_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let admission = Admission::Flashield(Flashield::default());
    let cache = Cache::open(dram_first(folder.path(), 1 << 20, admission)).unwrap();
    for key in 0..40_000 {
        put(&cache, key, key);
        if key % 10 == 0 {
            assert_eq!(get(&cache, key), Some(key));
        }
    }
    until(&cache, "eviction", |stats| stats.admitted + stats.rejected + stats.left_unseen > 20_000);
    let stats = cache.stats();
    assert!(stats.admitted * 5 < stats.rejected, "{stats:?}");
    assert_eq!(stats.left_unseen, 0, "{stats:?}");
    let (read, unread): (Vec<u64>, Vec<u64>) = (0..10_000).partition(|key| key % 10 == 0);
    let there = |keys: &[u64]| keys.iter().filter(|key| get(&cache, **key) == Some(**key)).count();
    assert!(there(&read) > 800, "{} of {} that were read", there(&read), read.len());
    assert!(there(&unread) < 500, "{} of {} that were not", there(&unread), unread.len());
    testing::validate(&cache);
}

/// Objects that are read on flash go back to RAM when their segment is reused, and to flash again; the
/// others go.
#[test]
fn what_is_hot_on_flash_outlives_the_ring() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(dram_first(folder.path(), 256 << 10, Admission::Probability(1.0))).unwrap();
    let put_slowly = |keys: std::ops::Range<u64>| {
        for key in keys {
            put(&cache, key, key);
            if key % 100 == 0 {
                // No faster than the device.
                cache.flush().unwrap();
            }
        }
    };
    put_slowly(0..1000);
    for round in 1..40 {
        put_slowly(round * 10_000..round * 10_000 + 2000);
        found(&cache, 0..100);
    }
    let stats = cache.stats();
    assert!(stats.bytes_written > 4 << 20, "the ring came round: {stats:?}");
    assert!(stats.taken_back > 100, "{stats:?}");
    assert!(found(&cache, 0..100) > 90, "{} of 100 hot ones", found(&cache, 0..100));
    assert!(found(&cache, 100..1000) < 100, "{} of 900 cold ones", found(&cache, 100..1000));
    testing::validate(&cache);
}

/// A kill loses no entry that was put again after its old segment was emptied and before that segment was overwritten.
#[test]
fn what_is_written_anew_while_its_old_segment_waits_outlives_a_kill() {
    const BYTES: usize = 20_000;
    // Three entries fill a segment. Four segments of 64 are emptied ahead, so a key is put again when its old segment
    // was just emptied.
    const KEYS: u64 = 62 * 3;
    let folder = tempfile::tempdir().unwrap();
    let options = || dram_first(folder.path(), 256 << 10, Admission::Probability(1.0));
    let put = |cache: &Cache, key: u64, version: u64| {
        let mut value = vec![0x5A; BYTES];
        value[..8].copy_from_slice(&version.to_le_bytes());
        let refused = cache.put_many(&[Entry {
            key: cache.key(&key.to_le_bytes()),
            value: Some(&value),
            expires_at: 0,
        }]);
        assert!(refused.is_empty());
    };
    let mut cache = Cache::open(options()).unwrap();
    for last in [3 * KEYS, 3 * KEYS + 1, 4 * KEYS + 50] {
        for version in 0..last {
            put(&cache, version % KEYS, version);
            if version % 3 == 2 {
                // No faster than the device. What is large goes there at once.
                cache.flush().unwrap();
            }
        }
        cache.flush().unwrap();
        testing::abandon(cache);
        cache = Cache::open(options()).unwrap();
        let newest = (last - 40 * 3..last).filter(|version| get(&cache, version % KEYS) == Some(*version));
        assert_eq!(newest.count(), 40 * 3, "after {last} puts");
        for version in last - KEYS..last {
            assert!([None, Some(version)].contains(&get(&cache, version % KEYS)), "of {last} puts");
        }
        testing::validate(&cache);
    }
}

/// An entry that left with its segment stays away, even if a kill took the segments for which that one was emptied, and
/// a clean stop followed.
#[test]
fn what_was_emptied_stays_so_through_a_kill_and_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Cache::open(dram_first(folder.path(), 256 << 10, Admission::Probability(1.0))).unwrap();
    let mut cache = open();
    let mut next = 0;
    let mut put_some = |cache: &Cache, count: u64| {
        for key in next..next + count {
            put(cache, key, key);
            if key % 100 == 0 {
                // No faster than the device.
                cache.flush().unwrap();
            }
        }
        next += count;
        next
    };
    put_some(&cache, 15_000);
    assert!(cache.stats().bytes_written > 4 << 20, "the ring came round: {:?}", cache.stats());
    for round in 0..20 {
        // Each time the open segment is filled to another degree.
        let end = put_some(&cache, 300 + 37 * round);
        testing::abandon(cache);
        cache = open();
        let left: Vec<u64> = (end - 12_000..end).filter(|key| get(&cache, *key).is_none()).collect();
        cache.close().unwrap();
        cache = open();
        let back = left.iter().filter(|key| get(&cache, **key).is_some()).count();
        assert_eq!(back, 0, "of {} in round {round}", left.len());
        testing::validate(&cache);
    }
}

/// Saving RAM at a stop reclaims segments, whose hot entries come back to RAM while it is being saved.
#[test]
fn a_stop_saves_what_is_hot_in_the_segments_it_reclaims() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Cache::open(dram_first(folder.path(), 2 << 20, Admission::Probability(1.0))).unwrap();
    let cache = open();
    for key in 0..20_000 {
        put(&cache, key, key);
        if key % 100 == 0 {
            // No faster than the device.
            cache.flush().unwrap();
        }
    }
    // The oldest entries still on flash, read twice: the first of them fill the segments that are reclaimed next.
    let there: Vec<u64> = (0..20_000).filter(|key| get(&cache, *key) == Some(*key)).take(1500).collect();
    let hot: Vec<u64> = there.into_iter().filter(|key| get(&cache, *key) == Some(*key)).collect();
    assert!(hot.len() > 1400, "{}", hot.len());
    cache.close().unwrap();
    let cache = open();
    let warm = hot.iter().filter(|key| get(&cache, **key) == Some(**key)).count();
    assert!(warm * 100 > hot.len() * 97, "{warm} of {}", hot.len());
    testing::validate(&cache);
}

/// A small ring of large segments: a stop writes the entries in RAM, and gives up no more segments for them than it
/// fills.
#[test]
fn a_stop_costs_a_small_ring_no_more_than_it_writes() {
    const MEMORY: u64 = 512 << 10;
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let mut options = options(folder.path(), 8, 1024, MEMORY);
        options.flash.as_mut().expect("on flash").admission = Admission::Probability(1.0);
        Cache::open(options).unwrap()
    };
    let mut cache = open();
    for key in 0..20_000u64 {
        let (bytes, mut value) = (key.to_le_bytes(), [0x5A; 400]);
        value[..8].copy_from_slice(&bytes);
        let entry = Entry { key: cache.key(&bytes), value: Some(&value), expires_at: 0 };
        cache.put_many_waiting(&[entry], Duration::from_secs(60), |_, why| panic!("{why}"));
        if key % 10 == 0 {
            get(&cache, key * 2_654_435_761 % (key + 1));
        }
    }
    // The slot ahead of the writer is emptied by then.
    let mut before = 0;
    while before != cache.stats().entries {
        before = cache.stats().entries;
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(before > 6000, "{before}");
    for _ in 0..3 {
        cache.close().unwrap();
        cache = open();
        let after = cache.stats().entries;
        println!("{before} entries, {after} after a stop");
        // At most RAM's entries, and those of the slot that a start keeps empty: the one to be written next.
        assert!(before - after <= (MEMORY + (512 << 10)) / 420, "{before} entries, {after} after a stop");
        before = after;
        testing::validate(&cache);
    }
}

#[test]
fn a_cleared_cache_uses_no_segments() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(dram_first(folder.path(), 256 << 10, Admission::Probability(1.0))).unwrap();
    for key in 0..5000 {
        put(&cache, key, key);
        if key % 100 == 0 {
            cache.flush().unwrap();
        }
    }
    assert!(cache.stats().flash_segments_used > 10, "{:?}", cache.stats());
    cache.clear().unwrap();
    assert_eq!(cache.stats().flash_segments_used, 0);
    cache.close().unwrap();
    let cache = Cache::open(dram_first(folder.path(), 256 << 10, Admission::Probability(1.0))).unwrap();
    assert_eq!(cache.stats().flash_segments_used, 0);
}

#[test]
fn objects_too_large_for_ram_go_to_flash_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(dram_first(folder.path(), 1 << 20, Admission::RejectFirst)).unwrap();
    let value = vec![7; 20_000];
    let key = cache.key(b"large");
    cache.put_many(&[Entry { key, value: Some(&value), expires_at: 0 }]);
    let mut seen = None;
    cache.get_many(&mut Io::new(), &[key], 1, |_, outcome| {
        seen = Some(matches!(outcome, Outcome::Hit { value: found, .. } if found == value));
    });
    assert_eq!(seen, Some(true));
    cache.flush().unwrap();
    assert!(cache.stats().bytes_written > 20_000);
}

/// The budget is for large objects, too; one that exceeds it removes the older version all the same.
#[test]
fn a_budget_is_for_all_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = dram_first(folder.path(), 1 << 20, Admission::Probability(1.0));
    options.flash.as_mut().expect("on flash").bytes_per_day = Some(1);
    let cache = Cache::open(options).unwrap();
    for n in 0..40_000u64 {
        put(&cache, n, n);
        if n % 100 == 0 {
            let entry = |value| Entry { key: cache.key(b"large"), value: Some(value), expires_at: 0 };
            cache.put_many(&[entry(&[7; 20_000])]);
        }
    }
    until(&cache, "eviction", |stats| stats.rejected > 30_000);
    cache.flush().unwrap();
    assert!(cache.stats().bytes_written < 100_000, "{:?}", cache.stats());
}
