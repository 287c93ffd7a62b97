//! Packing of short records and look-alikes.

use super::block;
use super::segment_builder::SegmentBuilder;
use super::sharing::SharingRule;
use granary_log::{Geometry, SegmentId};

#[test]
fn short_records_fill_free_space_and_never_pass_what_looks_like_them() {
    // Segments of 20 blocks of 512 bytes; summary entries of which the lowest 8 bits do not count.
    let geometry = Geometry::new(20 * 512 * 4, 20 * 512, 512).unwrap();
    let id = SegmentId { geometry, instance: 1, sequence: 1, first_block: 20 };
    let rule = SharingRule { ignored_bits: 8 };
    let (mut builder, mut blocks) = (SegmentBuilder::default(), vec![0; 20 * 512]);
    let mut append = |builder: &mut SegmentBuilder, entry: u64, len: usize| {
        builder.append(&id, rule, &mut blocks, entry << 8, &[&vec![entry as u8; len]]).unwrap() - 20
    };
    let mut all = |of: &[(u64, usize)]| {
        Vec::from_iter(of.iter().map(|(entry, len)| append(&mut builder, *entry, *len)))
    };
    assert_eq!(all(&[(1, 300), (2, 400), (3, 350)]), [0, 1, 2]);
    // A record goes to the last block if that has room, else to the smallest free space that has.
    assert_eq!(all(&[(4, 140), (5, 90), (6, 100), (7, 40)]), [2, 1, 0, 0]);
    // A record that looks like a later one, or like another of the block, begins a new block.
    assert_eq!(all(&[(8, 200), (5, 50), (1, 50)]), [3, 3, 3]);
    assert_eq!(all(&[(9, 400), (8, 60), (10, 60)]), [4, 4, 3]);
    assert_eq!(builder.counts, [3, 2, 2, 4, 2]);
    let entries = Vec::from_iter(builder.entries.iter().map(|entry| entry >> 8));
    assert_eq!(entries, [1, 6, 7, 2, 5, 3, 4, 8, 5, 1, 10, 9, 8]);
    let lens = [[300, 100, 40, 0], [400, 90, 0, 0], [350, 140, 0, 0], [200, 50, 50, 60], [400, 60, 0, 0]];
    let mut entries = entries.into_iter();
    for (block, lens) in lens.into_iter().enumerate() {
        let mut bytes = block::payload(&blocks[block * 512..(block + 1) * 512]);
        for len in lens.into_iter().filter(|len| *len > 0) {
            let entry = entries.next().unwrap() as u8;
            assert!(bytes[..len].iter().all(|byte| *byte == entry), "block {block}");
            bytes = &bytes[len..];
        }
        assert!(bytes.iter().all(|byte| *byte == 0), "the rest of block {block} is empty");
    }
    assert!(builder.is_settled(2) && !builder.is_settled(4));
}

#[test]
fn blocks_with_room_are_not_settled() {
    let geometry = Geometry::new(20 * 512 * 4, 20 * 512, 512).unwrap();
    let id = SegmentId { geometry, instance: 1, sequence: 1, first_block: 20 };
    let (mut builder, mut blocks) = (SegmentBuilder::default(), vec![0; 20 * 512]);
    for (entry, len) in [(1, 300), (2, 400), (3, 350)] {
        builder.append(&id, SharingRule::default(), &mut blocks, entry, &[&vec![0; len]]).unwrap();
    }
    assert!((0..3).all(|block| !builder.is_settled(block)));
}
