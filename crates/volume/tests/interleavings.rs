//! The flat and the hash map under interleavings chosen by a model checker, each access to an atomic a place to
//! switch:
//! `cargo test -p granary-volume --features shuttle --test interleavings`

#[path = "common/place.rs"]
mod place;

use granary_volume::map::{FlatMap, HashMap, Map};
use place::place;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Arc;
use shuttle::thread;
use shuttle::{Config, Runner};

const BLOCKS: u64 = 64;
const ITERATIONS: usize = 20_000;

/// The seed of the interleavings; SHUTTLE_RANDOM_SEED for others.
const SEED: u64 = 1;

type Shared = Arc<dyn Map>;

/// Checks `test` with maps of both kinds. The hash map has one table, of four slots at first: the fourth key makes it
/// grow.
fn check(test: impl Fn(Shared) + Send + Sync + Copy + 'static) {
    let hash = move || test(Arc::new(HashMap::with_shape(BLOCKS, 0, 2, 1).unwrap()));
    let flat = move || test(Arc::new(FlatMap::new(BLOCKS).unwrap()));
    let random = || RandomScheduler::new_from_seed(SEED, ITERATIONS);
    let pct = || PctScheduler::new_from_seed(SEED, 3, ITERATIONS / 2);
    Runner::new(random(), Config::default()).run(hash);
    Runner::new(pct(), Config::default()).run(hash);
    Runner::new(random(), Config::default()).run(flat);
    Runner::new(pct(), Config::default()).run(flat);
}

/// Maps and unmaps other blocks: a table grows, fills with tombstones, and shrinks.
fn churn(map: &dyn Map, first: u64) {
    (first..first + 5).for_each(|lba| assert_eq!(map.set(lba, place(9)), None));
    (first..first + 5).for_each(|lba| assert_eq!(map.remove(lba), Some(place(9))));
}

#[test]
fn an_overwrite_is_one_step() {
    check(|map| {
        map.set(7, place(0));
        let churning = thread::spawn({
            let map = Arc::clone(&map);
            move || churn(&*map, 20)
        });
        let writing = thread::spawn({
            let map = Arc::clone(&map);
            move || (1..4).for_each(|i| assert_eq!(map.set(7, place(i)), Some(place(i - 1))))
        });
        let mut seen = 0;
        for _ in 0..4 {
            let now = map.get(7).expect("never absent").block();
            assert!(now >= seen, "{now} after {seen}");
            seen = now;
        }
        writing.join().unwrap();
        assert_eq!(map.get(7), Some(place(3)));
        churning.join().unwrap();
        assert_eq!((map.len(), map.next_mapped(0)), (1, Some((7, place(3)))));
    });
}

/// Cleaning moves a block while it is overwritten: the write wins in any order.
#[test]
fn a_move_never_takes_back_a_write() {
    check(|map| {
        map.set(7, place(0));
        let moving = thread::spawn({
            let map = Arc::clone(&map);
            move || map.replace(7, place(0), place(1))
        });
        let churning = thread::spawn({
            let map = Arc::clone(&map);
            move || churn(&*map, 20)
        });
        let old = map.set(7, place(2));
        assert_eq!(map.get(7), Some(place(2)));
        let moved = moving.join().unwrap();
        assert_eq!(old, Some(place(u32::from(moved))));
        assert_eq!(map.get(7), Some(place(2)));
        churning.join().unwrap();
    });
}

/// Two threads that map the same new blocks: each block is in one slot, and counted once.
#[test]
fn two_writers_of_one_block_use_one_slot() {
    check(|map| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let olds = (0..5).map(|lba| map.set(lba, place(writer)));
                    olds.filter(Option::is_none).count()
                })
            })
            .collect();
        let first: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        assert_eq!((first, map.len()), (5, 5));
        (0..5).for_each(|lba| assert!(map.remove(lba).is_some()));
        (0..5).for_each(|lba| assert_eq!(map.get(lba), None, "{lba} was in two slots"));
        assert_eq!((map.len(), map.next_mapped(0)), (0, None));
    });
}

/// A set and a remove of one block: either order, and nothing else.
#[test]
fn a_set_and_a_remove_come_one_after_the_other() {
    check(|map| {
        map.set(7, place(0));
        let removing = thread::spawn({
            let map = Arc::clone(&map);
            move || map.remove(7)
        });
        let churning = thread::spawn({
            let map = Arc::clone(&map);
            move || churn(&*map, 20)
        });
        let old = map.set(7, place(1));
        let removed = removing.join().unwrap();
        let now = map.get(7);
        churning.join().unwrap();
        match removed.map(|place| place.block()) {
            Some(0) => assert_eq!((old, now), (None, Some(place(1)))),
            Some(1) => assert_eq!((old, now), (Some(place(0)), None)),
            other => panic!("removed {other:?}"),
        }
        assert_eq!(map.len(), u64::from(now.is_some()));
    });
}

/// A scan sees the block that is mapped throughout.
#[test]
fn a_scan_misses_nothing() {
    check(|map| {
        map.set(10, place(0));
        let others: Vec<_> = [9, 11]
            .map(|lba| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    map.set(lba, place(1));
                    map.remove(lba);
                })
            })
            .into();
        let found = map.next_mapped(0).expect("10 is mapped");
        assert!(found == (9, place(1)) || found == (10, place(0)), "{found:?}");
        assert_eq!(map.next_mapped(10), Some((10, place(0))));
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// A block that two threads map at once is found by the scan of the one that is done first.
#[test]
fn a_scan_finds_what_was_just_mapped() {
    check(|map| {
        let map_and_scan = |map: &dyn Map| {
            map.set(7, place(1));
            assert_eq!(map.next_mapped(0), Some((7, place(1))));
        };
        let other = thread::spawn({
            let map = Arc::clone(&map);
            move || map_and_scan(&*map)
        });
        map_and_scan(&*map);
        other.join().unwrap();
        assert_eq!(map.len(), 1);
    });
}
