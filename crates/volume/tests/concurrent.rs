//! Each map under threads: overwrites are one step, no place is lost or doubled, scans miss nothing.

mod common;

use common::{maps, place};
use fastrand::Rng;
use granary_volume::map::{Map, Place};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const BLOCKS: u64 = 1 << 20;
const TIME: Duration = Duration::from_millis(1000);

/// Tests with several threads take turns: threads that wait for a core would not run at the same time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks that are mapped throughout, some side by side, some far apart.
fn permanent() -> Vec<u64> {
    (0..16).chain((0..16).map(|i| i * 60_013 + 500)).collect()
}

/// Maps and unmaps other blocks, so that tables grow and shrink, until told to stop.
fn churn(map: &dyn Map, stop: &AtomicBool, seed: u64) {
    let kept: BTreeSet<u64> = permanent().into_iter().collect();
    let mut random = Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let first = random.u64(..BLOCKS / 2);
        let blocks: Vec<u64> =
            (first..first + 3000).map(|lba| lba * 7 % BLOCKS).filter(|lba| !kept.contains(lba)).collect();
        for lba in &blocks {
            map.set(*lba, place(*lba as u32));
        }
        for lba in &blocks {
            map.remove(*lba);
        }
    }
}

/// A reader sees a block's old or new place, never none and never an older one than before.
#[test]
fn a_block_is_never_absent_while_it_is_overwritten() {
    let _alone = alone();
    for (name, map) in maps(BLOCKS) {
        let (map, permanent) = (&*map, permanent());
        for lba in &permanent {
            map.set(*lba, place(0));
        }
        let written: Vec<AtomicU64> = permanent.iter().map(|_| AtomicU64::new(0)).collect();
        let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let end = Instant::now() + TIME;
                for version in 1.. {
                    for (lba, written) in permanent.iter().zip(&written) {
                        // Alternately as a write and as cleaning does.
                        if version % 2 == 0 {
                            assert_eq!(map.set(*lba, place(version)), Some(place(version - 1)), "{name}");
                        } else {
                            assert!(map.replace(*lba, place(version - 1), place(version)), "{name}");
                            assert!(!map.replace(*lba, place(version - 1), place(version)), "{name}");
                        }
                        written.store(version.into(), Ordering::Release);
                    }
                    let now = Instant::now();
                    // On a slow machine it goes on until the readers have read enough.
                    let is_enough = reads.load(Ordering::Relaxed) > 100 || now > end + 60 * TIME;
                    if now > end && is_enough {
                        break;
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
            scope.spawn(|| churn(map, &stop, 1));
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = vec![0; permanent.len()];
                    while !stop.load(Ordering::Relaxed) {
                        for ((lba, written), seen) in permanent.iter().zip(&written).zip(&mut seen) {
                            let least = written.load(Ordering::Acquire).max(*seen);
                            let found = map.get(*lba).unwrap_or_else(|| panic!("{name}: {lba} is absent"));
                            *seen = found.block().into();
                            assert!(*seen >= least, "{name}: {lba} has {seen} after {least}");
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(reads.load(Ordering::Relaxed) > 100, "{name}: too few reads to tell");
    }
}

/// The places that one thread put into a map, and those that it took out.
#[derive(Default)]
struct Account {
    entered: Vec<Place>,
    left: Vec<Place>,
}

impl Account {
    fn step(&mut self, map: &dyn Map, lba: u64, new: Place, random: &mut Rng) {
        match random.u8(..4) {
            0 => self.left.extend(map.remove(lba)),
            1 => {
                let from = map.get(lba);
                if from.is_some_and(|from| map.replace(lba, from, new)) {
                    self.entered.push(new);
                    self.left.extend(from);
                }
            }
            _ => {
                self.entered.push(new);
                self.left.extend(map.set(lba, new));
            }
        }
    }
}

/// Each place put in is returned once, by a set, a remove or a replace, or is there at the end.
#[test]
fn places_are_neither_lost_nor_doubled() {
    let _alone = alone();
    const THREADS: u32 = 4;
    const EACH: u32 = 200_000;
    for (name, map) in maps(BLOCKS) {
        let map = &*map;
        let blocks: Vec<u64> = permanent().into_iter().step_by(5).collect();
        let stop = AtomicBool::new(false);
        let work = |thread: u32| {
            let mut random = Rng::with_seed(thread.into());
            let mut account = Account::default();
            for i in 0..EACH {
                let lba = blocks[random.usize(..blocks.len())];
                account.step(map, lba, place(thread * EACH + i), &mut random);
            }
            account
        };
        let accounts: Vec<Account> = thread::scope(|scope| {
            scope.spawn(|| churn(map, &stop, 2));
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn({
                        let work = &work;
                        move || work(thread)
                    })
                })
                .collect();
            let accounts = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            stop.store(true, Ordering::Relaxed);
            accounts
        });
        let mut entered: Vec<Place> = accounts.iter().flat_map(|account| account.entered.clone()).collect();
        let mut left: Vec<Place> = accounts.iter().flat_map(|account| account.left.clone()).collect();
        left.extend(blocks.iter().filter_map(|lba| map.get(*lba)));
        entered.sort_unstable();
        left.sort_unstable();
        assert!(entered.len() > 100_000 && entered == left, "{name}");
    }
}

/// A scan finds every block that is mapped throughout, in order, whatever comes and goes.
#[test]
fn scans_miss_nothing() {
    let _alone = alone();
    for (name, map) in maps(BLOCKS) {
        let (map, mut permanent) = (&*map, permanent());
        permanent.sort_unstable();
        for lba in &permanent {
            map.set(*lba, place(0));
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| churn(map, &stop, 3));
            scope.spawn(|| churn(map, &stop, 4));
            let end = Instant::now() + TIME;
            while Instant::now() < end {
                let (mut from, mut missing) = (0, permanent.iter().copied().peekable());
                while let Some((lba, _)) = map.next_mapped(from) {
                    assert!(lba >= from && lba < BLOCKS, "{name}: {lba} after {from}");
                    assert!(missing.peek().is_none_or(|next| lba <= *next), "{name}: {:?}", missing.peek());
                    missing.next_if_eq(&lba);
                    from = lba + 1;
                }
                assert_eq!(missing.next(), None, "{name}");
            }
            stop.store(true, Ordering::Relaxed);
        });
        // Two threads that map and unmap the same blocks leave the counts right.
        let mut left = 0;
        let mut next = map.next_mapped(0);
        while let Some((lba, _)) = next {
            left += 1;
            next = map.next_mapped(lba + 1);
        }
        assert_eq!(map.len(), left, "{name}");
        let mut next = map.next_mapped(0);
        while let Some((lba, place)) = next {
            assert_eq!(map.remove(lba), Some(place), "{name}");
            next = map.next_mapped(lba);
        }
        assert_eq!((map.len(), map.next_mapped(0)), (0, None), "{name}");
    }
}

/// A block that two threads map at once is found by the scan of the one that is done first.
#[test]
fn scans_find_what_was_just_mapped() {
    let _alone = alone();
    for (name, map) in maps(BLOCKS) {
        let map = &*map;
        let end = Instant::now() + TIME;
        while Instant::now() < end {
            // The threads meet at each region of counters.
            let turns = [AtomicU64::new(0), AtomicU64::new(0)];
            let map_and_scan = |own: usize| {
                for (turn, lba) in (0..BLOCKS).step_by(1024).enumerate() {
                    turns[own].store(turn as u64, Ordering::Release);
                    let mut spins = 0;
                    while turns[1 - own].load(Ordering::Acquire) < turn as u64 {
                        spins += 1;
                        if spins % 1000 == 0 { thread::yield_now() } else { std::hint::spin_loop() }
                    }
                    map.set(lba, place(1));
                    assert_eq!(map.next_mapped(lba), Some((lba, place(1))), "{name}");
                }
                turns[own].store(BLOCKS, Ordering::Release);
            };
            thread::scope(|scope| {
                scope.spawn(|| map_and_scan(0));
                scope.spawn(|| map_and_scan(1));
            });
            assert_eq!(map.len(), BLOCKS / 1024, "{name}");
            for lba in (0..BLOCKS).step_by(1024) {
                map.remove(lba);
            }
        }
    }
}
