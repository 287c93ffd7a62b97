//! The cache of checksums: against a model, within its budget, under threads.

use fastrand::Rng;
use granary_volume::checksums::Checksums;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const BLOCKS: u32 = 100;

/// The checksums of a segment.
fn footer(slot: u32, sequence: u64) -> Box<[u32]> {
    (0..BLOCKS).map(|index| checksum(slot, sequence, index)).collect()
}

fn checksum(slot: u32, sequence: u64, index: u32) -> u32 {
    slot << 20 ^ (sequence as u32) << 8 ^ index
}

#[test]
fn what_was_inserted_is_found_until_the_slot_is_used_again() {
    let cache = Checksums::new(1 << 20);
    assert_eq!(cache.get(3, 7, 0), None);
    cache.insert(3, 7, footer(3, 7));
    assert_eq!(cache.get(3, 7, 99), Some(checksum(3, 7, 99)));
    assert_eq!((cache.get(3, 7, 100), cache.get(3, 6, 0), cache.get(3, 8, 0)), (None, None, None));
    // The slot's next segment; then a late reader comes with the footer of the former one.
    cache.insert(3, 8, footer(3, 8));
    cache.insert(3, 7, footer(3, 7));
    assert_eq!((cache.get(3, 7, 0), cache.get(3, 8, 5)), (None, Some(checksum(3, 8, 5))));
    cache.invalidate(3);
    assert_eq!(cache.get(3, 8, 5), None);
    cache.invalidate(4);
    cache.validate();
}

#[test]
fn what_is_missing_is_loaded_once() {
    let cache = Checksums::new(1 << 20);
    let load = |index| cache.get_or_load(1, 2, index, || Ok::<_, ()>(footer(1, 2)));
    assert_eq!((load(5), load(100)), (Ok(Some(checksum(1, 2, 5))), Ok(None)));
    let fail = |sequence| cache.get_or_load(1, sequence, 0, || Err("unreadable"));
    assert_eq!((fail(2), fail(3)), (Ok(Some(checksum(1, 2, 0))), Err("unreadable")));
    assert_eq!(cache.get(1, 2, 0), Some(checksum(1, 2, 0)));
    // A load may use the cache: no lock is held over it.
    let nested = cache.get_or_load(9, 1, 0, || {
        cache.get_or_load(9, 1, 0, || Ok::<_, ()>(footer(9, 1))).map(|_| footer(9, 1))
    });
    assert_eq!(nested, Ok(Some(checksum(9, 1, 0))));
    // Without room for it, the answer is the same.
    for budget in [0, 100] {
        let tiny = Checksums::new(budget);
        assert_eq!(tiny.get_or_load(1, 2, 5, || Ok::<_, ()>(footer(1, 2))), Ok(Some(checksum(1, 2, 5))));
        assert_eq!((tiny.get(1, 2, 5), tiny.bytes_allocated()), (None, 0));
    }
}

/// After any operations, answers are right and the budget holds.
#[test]
fn the_cache_agrees_with_a_model() {
    for budget in [1000, 20_000, 3 << 20] {
        let (cache, mut random) = (Checksums::new(budget), Rng::with_seed(budget));
        let mut newest: HashMap<u32, u64> = HashMap::new();
        let slots = (budget / 500) as u32;
        let mut hits = 0;
        for i in 0..200_000 {
            let slot = random.u32(..slots).min(random.u32(..slots));
            let sequence = newest.get(&slot).copied().unwrap_or(0);
            match random.u8(..10) {
                0..4 => cache.insert(slot, sequence, footer(slot, sequence)),
                4 => {
                    newest.insert(slot, sequence + 1);
                    if random.bool() {
                        cache.invalidate(slot);
                    }
                }
                5 if sequence > 0 => cache.insert(slot, sequence - 1, footer(slot, sequence - 1)),
                6 => {
                    let length = random.usize(..3000);
                    cache.insert(slot, sequence + 1, vec![7; length].into());
                    cache.invalidate(slot);
                }
                _ => {
                    let found = cache.get(slot, sequence, i % BLOCKS);
                    assert!(found.is_none_or(|found| found == checksum(slot, sequence, i % BLOCKS)));
                    hits += u32::from(found.is_some());
                }
            }
            if i % 1000 == 0 {
                cache.validate();
                assert!(cache.bytes_allocated() <= budget);
            }
        }
        assert!(hits > 3000, "{hits} hits");
        if budget > 1 << 20 {
            assert!(cache.bytes_allocated() > budget / 2, "{} bytes used", cache.bytes_allocated());
        }
    }
}

/// A segment that is read repeatedly is not evicted by others.
#[test]
fn what_is_in_use_is_not_evicted() {
    let cache = Checksums::new(100_000);
    (0..20).for_each(|slot| cache.insert(slot, 1, footer(slot, 1)));
    for slot in 20..2000 {
        (0..20).for_each(|slot| assert!(cache.get(slot, 1, 0).is_some(), "{slot}"));
        cache.insert(slot, 1, footer(slot, 1));
    }
}

/// Readers load while slots are reused: no reader sees the checksum of another segment.
#[test]
fn threads_see_the_segment_that_they_asked_for() {
    let cache = Checksums::new(60_000);
    let sequences: Vec<AtomicU64> = (0..200).map(|_| AtomicU64::new(1)).collect();
    let work = |seed: u64| {
        let mut random = Rng::with_seed(seed);
        for _ in 0..100_000 {
            let slot = random.u32(..200);
            let current = &sequences[slot as usize];
            if seed == 0 && random.u8(..4) == 0 {
                let next = current.fetch_add(1, Ordering::SeqCst) + 1;
                cache.invalidate(slot);
                cache.insert(slot, next, footer(slot, next));
            }
            let (sequence, index) = (current.load(Ordering::SeqCst), random.u32(..BLOCKS));
            let found = cache.get_or_load(slot, sequence, index, || Ok::<_, ()>(footer(slot, sequence)));
            assert_eq!(found, Ok(Some(checksum(slot, sequence, index))));
        }
    };
    thread::scope(|scope| {
        (0..4).for_each(|seed| {
            drop(scope.spawn({
                let work = &work;
                move || work(seed)
            }))
        })
    });
    cache.validate();
}
