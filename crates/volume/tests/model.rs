//! Each map against a `BTreeMap`, with random operations.

mod common;

use common::{maps, place};
use fastrand::Rng;
use granary_volume::map::{Map, Place};
use std::collections::BTreeMap;

const OPERATIONS: u64 = 1_000_000;

struct Model {
    name: &'static str,
    map: Box<dyn Map>,
    model: BTreeMap<u64, Place>,
    random: Rng,
}

impl Model {
    /// A block: mostly of a few stretches, so that operations meet, sometimes anywhere.
    fn lba(&mut self) -> u64 {
        let blocks = self.map.blocks();
        let stretch = self.random.u64(..8) * (blocks / 8);
        match self.random.u8(..10) {
            0 => self.random.u64(..blocks),
            1 => blocks - 1 - self.random.u64(..blocks.min(50)),
            _ => (stretch + self.random.u64(..2000)).min(blocks - 1),
        }
    }

    fn step(&mut self) {
        let (name, lba) = (self.name, self.lba());
        let (map, model) = (&self.map, &mut self.model);
        match self.random.u8(..100) {
            0..40 => {
                let new = place(self.random.u32(..1 << 20));
                assert_eq!(map.set(lba, new), model.insert(lba, new), "{name}: set {lba}");
            }
            40..65 => assert_eq!(map.remove(lba), model.remove(&lba), "{name}: remove {lba}"),
            65..75 => {
                let is = model.get(&lba).copied();
                let from = is.filter(|_| self.random.bool()).unwrap_or(place(self.random.u32(..1 << 20)));
                let to = place(self.random.u32(..Place::BLOCK_MAX));
                assert_eq!(map.replace(lba, from, to), is == Some(from), "{name}: replace {lba}");
                if is == Some(from) {
                    model.insert(lba, to);
                }
            }
            75..90 => assert_eq!(map.get(lba), model.get(&lba).copied(), "{name}: get {lba}"),
            90..98 => {
                let expected = model.range(lba..).next().map(|(lba, place)| (*lba, *place));
                assert_eq!(map.next_mapped(lba), expected, "{name}: next_mapped {lba}");
            }
            98 => assert_eq!(map.len(), model.len() as u64, "{name}: len"),
            _ => {
                let mut copy = vec![Some(place(7)); self.random.usize(..3000)];
                map.copy_to(lba, &mut copy);
                for (lba, copied) in (lba..).zip(copy) {
                    assert_eq!(copied, model.get(&lba).copied(), "{name}: copy of {lba}");
                }
            }
        }
    }

    /// Empties a stretch, or the whole map, as a trim does.
    fn trim(&mut self, first: u64, end: u64) {
        let mut next = self.map.next_mapped(first);
        while let Some((lba, place)) = next.filter(|(lba, _)| *lba < end) {
            assert_eq!(self.map.remove(lba), Some(place));
            assert_eq!(self.model.remove(&lba), Some(place));
            next = self.map.next_mapped(lba);
        }
    }

    fn resize(&mut self, blocks: u64) {
        self.map.resize(blocks).unwrap();
        self.model.split_off(&blocks);
        assert_eq!(self.map.blocks(), blocks);
        self.compare();
    }

    fn compare(&self) {
        assert_eq!(self.map.len(), self.model.len() as u64, "{}: len", self.name);
        let mut from = 0;
        for (lba, place) in &self.model {
            assert_eq!(self.map.next_mapped(from), Some((*lba, *place)), "{}: from {from}", self.name);
            assert_eq!(self.map.get(*lba), Some(*place), "{}: get {lba}", self.name);
            from = lba + 1;
        }
        assert_eq!(self.map.next_mapped(from), None, "{}: the end", self.name);
    }
}

fn run(blocks: u64, resized: u64, operations: u64) {
    for (name, map) in maps(blocks) {
        let mut model = Model { name, map, model: BTreeMap::new(), random: Rng::with_seed(blocks) };
        for i in 0..operations {
            model.step();
            match i * 10 % operations {
                _ if i == 0 => {}
                0 if i * 10 / operations == 3 => model.trim(blocks / 4, blocks),
                0 if i * 10 / operations == 4 => model.trim(0, blocks),
                0 if i * 10 / operations == 6 => model.resize(resized),
                0 if i * 10 / operations == 8 => model.resize(blocks),
                0 => model.compare(),
                _ => {}
            }
        }
        model.compare();
        assert!(blocks < 1000 || !model.model.is_empty(), "{name}: nothing was tested");
    }
}

#[test]
fn maps_agree_with_a_model() {
    run(100_000, 70_001, OPERATIONS);
    run(50_000_000, 80_000_000, OPERATIONS);
}

#[test]
fn small_maps_agree_with_a_model() {
    for blocks in [1, 2, 31, 1023, 1024, 1025] {
        run(blocks, blocks.div_ceil(2), 20_000);
    }
}

#[test]
fn blocks_beyond_the_end_are_not_mapped() {
    for (name, mut map) in maps(1000) {
        for lba in [1000, 1024, 1 << 40, u64::MAX] {
            assert_eq!(map.get(lba), None, "{name}");
            assert_eq!(map.remove(lba), None, "{name}");
            assert!(!map.replace(lba, place(1), place(2)), "{name}");
            assert_eq!(map.next_mapped(lba), None, "{name}");
        }
        let set = std::panic::AssertUnwindSafe(|| map.set(1000, place(1)));
        assert!(std::panic::catch_unwind(set).is_err(), "{name}");
        assert_eq!((map.len(), map.next_mapped(0)), (0, None), "{name}");
        assert!(map.resize(1 << 41).is_err() && map.blocks() == 1000, "{name}");
        let mut empty = maps(0).into_iter().find(|(other, _)| *other == name).unwrap().1;
        assert_eq!((empty.get(0), empty.next_mapped(0), empty.len()), (None, None, 0), "{name}");
        empty.resize(2).unwrap();
        assert_eq!(empty.set(1, place(0)), None, "{name}");
        assert_eq!(empty.next_mapped(0), Some((1, place(0))), "{name}");
    }
}

#[test]
fn restored_is_what_was_copied() {
    for (name, map) in maps(10_000) {
        let mut random = Rng::with_seed(3);
        for _ in 0..3000 {
            map.set(random.u64(..10_000), place(random.u32(..Place::BLOCK_MAX)));
        }
        let (_, mut copy) = maps(10_000).into_iter().find(|(other, _)| *other == name).unwrap();
        copy.set(5, place(1));
        map.set(5, place(2));
        let mut places = vec![None; 3000];
        for first in (0..10_000).step_by(2500) {
            map.copy_to(first, &mut places);
            copy.restore(first, &places);
        }
        assert_eq!(copy.len(), map.len(), "{name}");
        assert!((0..10_000).all(|lba| copy.get(lba) == map.get(lba)), "{name}");
    }
}
