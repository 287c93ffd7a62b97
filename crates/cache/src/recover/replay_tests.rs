//! Records sorted and replayed shard by shard, against a list that is changed record by record.

use super::by_shard::SegmentGroup;
use super::replay::Dealt;
use crate::framing::Summary;
use crate::key::{KeyHash, RecordKind};
use crate::limits::{HASH_BITS, SAME_HASH_MAX, SHARDS};
use granary_log::Geometry;
use std::collections::BTreeMap;

const SEGMENTS: u64 = 16;
const BLOCKS: u64 = 16;

/// Bits of a hash below the shard's that the index knows.
const KNOWN_BITS: u32 = 12;

/// A random hash of a few, in four shards, some of which look alike to the index.
fn hash(random: &mut fastrand::Rng) -> KeyHash {
    let below_known = HASH_BITS - SHARDS.ilog2() - KNOWN_BITS;
    let (shard, known, below) = (random.u64(0..4) * 21, random.u64(0..12) * 341, random.u64(0..12));
    KeyHash::from_bits((shard << KNOWN_BITS | known) << below_known | below)
}

fn summary(random: &mut fastrand::Rng, geometry: &Geometry, sequence: u64) -> Summary {
    let counts: Vec<u16> = (0..random.u64(0..BLOCKS)).map(|_| random.u16(0..20)).collect();
    let records = counts.iter().map(|count| usize::from(*count)).sum();
    let kind = |n| if n == 0 { RecordKind::Deletion } else { RecordKind::Entry };
    let entries: Vec<u64> = (0..records).map(|_| hash(random).summary_entry(kind(random.u8(0..8)))).collect();
    let mut with_look_alikes: Vec<u64> = entries.iter().copied().filter(|_| random.u8(0..3) == 0).collect();
    with_look_alikes.sort_unstable();
    let first_block = geometry.first_block(sequence);
    Summary {
        sequence,
        first_block,
        counts,
        entries: entries.into_iter().collect(),
        with_look_alikes,
        records,
    }
}

/// (the index's entries in order, replaced entries of other keys, whether an entry had to leave).
type Expected = (Vec<(KeyHash, u64)>, u64, bool);

/// Changes the list as a record does.
fn change(expected: &mut Expected, (hash, kind): (KeyHash, RecordKind), block: u64, stays_beside: bool) {
    let (entries, displaced, is_any_evicted) = expected;
    let known = |hash: KeyHash| (hash.shard(), hash.below_shard(KNOWN_BITS));
    let before = entries.iter().filter(|(other, _)| known(*other) == known(hash));
    let strangers = before.filter(|(other, _)| *other != hash).count();
    let is_entry = kind == RecordKind::Entry;
    entries.retain(|(other, _)| match is_entry && stays_beside {
        true => *other != hash,
        false => known(*other) != known(hash),
    });
    if !is_entry {
        return;
    }
    if stays_beside && strangers == SAME_HASH_MAX {
        let oldest = entries.iter().position(|(other, _)| known(*other) == known(hash));
        entries.remove(oldest.expect("there are several"));
        *is_any_evicted = true;
    }
    if !stays_beside {
        *displaced += strangers as u64;
    }
    entries.push((hash, block));
}

#[test]
fn sorted_records_leave_what_records_leave_one_after_the_other() {
    let geometry = Geometry::new(SEGMENTS * BLOCKS * 512, BLOCKS * 512, 512).unwrap();
    let mut evictions = 0;
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        // The ring has come round; some segments are missing.
        let sequences = (100..100 + SEGMENTS).filter(|_| random.u8(0..8) > 0).collect::<Vec<_>>();
        let mut segments: Vec<Summary> =
            sequences.iter().map(|sequence| summary(&mut random, &geometry, *sequence)).collect();
        let mut lost = BTreeMap::new();
        for _ in 0..random.u8(0..4) {
            let entries: Vec<u64> =
                (0..random.u8(1..9)).map(|_| hash(&mut random).summary_entry(RecordKind::Entry)).collect();
            lost.insert(random.u64(98..102 + SEGMENTS), entries);
        }
        let is_dram_first = seed % 3 == 0;

        let mut expected = Expected::default();
        let mut voids = lost.iter().peekable();
        for segment in &segments {
            while let Some((_, entries)) = voids.next_if(|(sequence, _)| **sequence < segment.sequence) {
                entries.iter().for_each(|entry| {
                    change(&mut expected, (KeyHash::from_bits(entry >> 1), RecordKind::Deletion), 0, false);
                });
            }
            for (block, entry) in segment.iter() {
                let stays_beside = is_dram_first || segment.has_look_alikes(entry);
                change(&mut expected, crate::key::parse_summary_entry(entry), block, stays_beside);
            }
        }
        for entry in voids.flat_map(|(_, entries)| entries) {
            change(&mut expected, (KeyHash::from_bits(entry >> 1), RecordKind::Deletion), 0, false);
        }

        let blocks_max = [3, 20, 1000][seed as usize % 3];
        let groups = SegmentGroup::group(geometry, &mut segments, &lost, random.usize(1..3000));
        let sorted: Vec<_> = groups.into_iter().flat_map(|group| group.sort_in_parts(blocks_max)).collect();
        assert!(segments.iter().all(|segment| segment.entries.len() == 0));
        let (mut found, mut displaced, mut is_any_evicted) = (Vec::new(), 0, false);
        for shard in 0..SHARDS {
            let left = Dealt::of_shard(&sorted, shard).replay(KNOWN_BITS, is_dram_first);
            found
                .extend(left.entries.iter().map(|entry| (shard, entry.hash(KNOWN_BITS), entry.block_number)));
            displaced += left.displaced;
            is_any_evicted |= left.is_any_evicted;
        }
        let mut wanted: Vec<(usize, u64, u64)> = expected
            .0
            .iter()
            .map(|(hash, block)| (hash.shard(), hash.below_shard(KNOWN_BITS), *block))
            .collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!((found, displaced, is_any_evicted), (wanted, expected.1, expected.2), "seed {seed}");
        evictions += u64::from(is_any_evicted);
    }
    assert!(evictions > 5, "{evictions}");
}
