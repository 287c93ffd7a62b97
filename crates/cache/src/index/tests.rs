//! The table against a plain list, at several shapes.

use super::shape::{Capacity, Growth};
use super::table::Table;
use std::collections::HashMap;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn found(table: &mut Table, hash: u64) -> Vec<u64> {
    let mut blocks = Vec::new();
    table.find(hash, true, |block, _| blocks.push(block));
    blocks
}

#[test]
fn agrees_with_a_map_while_it_grows_and_shrinks() {
    for (seed, blocks, hash_bits) in [(1, 1 << 18, 24), (2, 1 << 28, 30), (3, 1000, 16), (4, 1 << 34, 20)] {
        let mut random = Random(seed);
        let mut table = Table::new(Capacity { blocks, entries: u64::MAX, hash_bits, growth: Growth::Quick });
        let mut map: HashMap<u64, u64> = HashMap::new();
        for step in 0..40_000u64 {
            let hash = random.next() % (1 << hash_bits) % 20_000 * ((1 << hash_bits) / 20_000).max(1);
            match random.next() % 8 {
                0 => assert_eq!(table.remove_where(hash, |_| true) > 0, map.remove(&hash).is_some()),
                1 if map.contains_key(&hash) => {
                    let to = random.next() % blocks;
                    assert!(table.relocate(hash, map[&hash], to));
                    map.insert(hash, to);
                }
                _ => {
                    let block = random.next() % blocks;
                    let inserted = table.insert(hash, block, |_| true, |_| 0);
                    assert_eq!(inserted.replaced > 0, map.insert(hash, block).is_some(), "step {step}");
                    assert_eq!(inserted.evicted, None);
                }
            }
            if step % 4_000 == 0 {
                table.validate();
                assert_eq!(table.len(), map.len());
            }
        }
        let mut entries: Vec<(u64, u64)> = map.iter().map(|(hash, block)| (*hash, *block)).collect();
        assert_eq!(table.replace_all(&mut entries, |entry| *entry, |_| 0), 0);
        table.validate();
        for (hash, block) in &map {
            assert_eq!(
                found(&mut table, *hash),
                [*block],
                "the hash is kept whole, so nothing else looks like it"
            );
        }
        let fill = table.len() as f64 / table.slots() as f64;
        assert!(fill > 0.9, "fill {fill}");
    }
}

#[test]
fn keys_with_one_hash_live_side_by_side_if_known_to_differ() {
    let mut table =
        Table::new(Capacity { blocks: 1000, entries: u64::MAX, hash_bits: 16, growth: Growth::Quick });
    table.insert(77, 1, |_| false, |_| 0);
    table.insert(77, 2, |_| false, |_| 0);
    let mut blocks = found(&mut table, 77);
    blocks.sort_unstable();
    assert_eq!(blocks, [1, 2]);
    table.insert(77, 3, |block| block == 1, |_| 0);
    assert_eq!(table.contains(77, 3), Some(false));
    let mut blocks = found(&mut table, 77);
    blocks.sort_unstable();
    assert_eq!(blocks, [2, 3]);
    assert_eq!(table.contains(77, 3), Some(true), "marked as found");
    table.validate();
}

#[test]
fn keys_with_one_hash_do_not_make_the_index_grow_without_end() {
    let mut table =
        Table::new(Capacity { blocks: 1000, entries: u64::MAX, hash_bits: 16, growth: Growth::Quick });
    for block in 0..500 {
        table.insert(77, block, |_| false, |other| 1_000 - other);
    }
    let mut blocks = found(&mut table, 77);
    blocks.sort_unstable();
    assert_eq!(blocks, Vec::from_iter(492..500), "the youngest stay");
    assert!(table.slots() < 100);
    table.validate();
}

#[test]
fn a_bound_on_entries_lets_the_oldest_go() {
    let mut table =
        Table::new(Capacity { blocks: 1 << 20, entries: 500, hash_bits: 24, growth: Growth::Quick });
    let mut random = Random(5);
    for block in 0..5_000 {
        table.insert(random.next() % (1 << 24), block, |_| true, |other| 1_000_000 - other);
        assert!(table.len() <= 500);
    }
    table.validate();
    let mut young = 0;
    table.remove_blocks(&(0..4_000));
    young += table.len();
    assert!(young > 400, "of 500 entries only {young} are of the last 1 000 put");
}

#[test]
fn of_more_entries_than_a_table_may_have_the_oldest_are_left_out() {
    let mut table =
        Table::new(Capacity { blocks: 1 << 20, entries: 500, hash_bits: 24, growth: Growth::Quick });
    table.insert(1, 7, |_| true, |_| 0);
    let mut random = Random(6);
    let entries: Vec<(u64, u64)> = (0..800).map(|block| (random.next() % (1 << 24), block)).collect();
    assert_eq!(table.replace_all(&mut entries.clone(), |entry| *entry, |block| 800 - block), 300);
    table.validate();
    assert_eq!(table.len(), 500);
    for (hash, block) in entries {
        assert_eq!(table.contains(hash, block).is_some(), block >= 300, "block {block}");
    }
}
