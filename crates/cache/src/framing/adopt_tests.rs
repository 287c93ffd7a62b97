//! Segments that a process was filling when it was killed.

use super::block::{self, BlockHeader};
use super::segment_builder::SegmentBuilder;
use super::sharing::SharingRule;
use super::{Records, summary};
use granary_log::{Framing, Geometry, SealedBlocks, SegmentId};

const SALT: u64 = 3;
const SIZE: usize = 512;
const BLOCKS: usize = 32;

fn id(blocks: u64) -> SegmentId {
    let geometry = Geometry::new(4 * blocks * SIZE as u64, blocks * SIZE as u64, SIZE as u64).unwrap();
    SegmentId { geometry, instance: 9, sequence: 6, first_block: 2 * blocks }
}

fn records() -> Records {
    Records {
        entries_to_recover: std::sync::Arc::new(u64::MAX.into()),
        summary_entries_of: crate::record::summary_entries_of,
        sharing_rule: SharingRule { ignored_bits: 9 },
        is_dram_first: false,
    }
}

/// Appends entries of numbered keys until the segment is full; calls `then` after each.
fn fill(id: &SegmentId, blocks: &mut [u8], then: impl FnMut(&SegmentBuilder, &mut [u8])) -> SegmentBuilder {
    fill_with(&[20, 90, 300, 1400, 5], id, blocks, then)
}

/// Appends entries whose values have these lengths, in turn, until the segment is full; calls `then` after each.
fn fill_with(
    lens: &[usize],
    id: &SegmentId,
    blocks: &mut [u8],
    mut then: impl FnMut(&SegmentBuilder, &mut [u8]),
) -> SegmentBuilder {
    use crate::codec::{Codec, StoredValue};
    use crate::key::{KeyHasher, RecordKind};
    use crate::record::HeaderBytes;
    let mut builder = records().begin(id);
    for number in 0u64.. {
        let key = number.to_le_bytes();
        let value = vec![number as u8; lens[number as usize % lens.len()]];
        let stored = StoredValue { codec: Codec::None, bytes: &value };
        let header = HeaderBytes::entry(&key, Some(stored), 0);
        let entry = KeyHasher::with_seed(SALT).hash(&key).summary_entry(RecordKind::Entry);
        let parts = [header.as_slice(), &key[..], &value[..]];
        if builder.append(id, records().sharing_rule, blocks, entry, &parts).is_none() {
            break;
        }
        then(&builder, blocks);
    }
    builder
}

fn taken_over(id: &SegmentId, blocks: &[u8]) -> Option<(Vec<u16>, Vec<u64>)> {
    let mut blocks = blocks.to_vec();
    let mut builder = records().take_over(id, SALT, &mut blocks)?;
    let found = (builder.counts.clone(), builder.entries.clone());
    let sealed = records().seal(id, &mut builder, &mut blocks);
    assert!(
        sealed.data.end <= blocks.len() / SIZE
            && sealed.data.end <= sealed.summary.start.max(sealed.data.end)
    );
    Some(found)
}

#[test]
fn after_each_record_all_are_taken_over() {
    for blocks in [BLOCKS as u64, 8] {
        let id = id(blocks);
        let mut memory = vec![0; blocks as usize * SIZE];
        let mut tried = 0;
        fill(&id, &mut memory, |builder, blocks| {
            let expected = Some((builder.counts.clone(), builder.entries.clone()));
            assert_eq!(taken_over(&id, blocks), expected);
            // The next record was being copied: it does not count.
            let (used, mut torn) = (builder.counts.len(), blocks.to_vec());
            if used < torn.len() / SIZE {
                block::note_sequence(&mut torn[used * SIZE..], id.sequence);
                torn[used * SIZE + 16..used * SIZE + 200].fill(0xA5);
                assert_eq!(taken_over(&id, &torn).map(|(_, entries)| entries), Some(builder.entries.clone()));
            }
            tried += 1;
        });
        assert!(tried >= 5, "{tried} records");
    }
}

#[test]
fn a_segment_that_was_being_sealed_is_taken_over() {
    let id = id(BLOCKS as u64);
    let mut memory = vec![0; BLOCKS * SIZE];
    let mut builder = fill(&id, &mut memory, |_, _| {});
    let entries = builder.entries.clone();
    let mut whole = memory.clone();
    let SealedBlocks { data, summary } = records().seal(&id, &mut builder, &mut whole);
    assert!(data.end <= summary.start && !summary.is_empty());
    let mut steps: Vec<usize> = data.clone().collect();
    steps.extend(summary.clone().rev());
    let counts = &builder.counts;
    for step in steps {
        if step == summary.end - 1 {
            summary::write(&mut memory[summary.start * SIZE..], &id.geometry, counts, &entries, &[]);
        }
        let count = counts.get(step).copied().unwrap_or(0);
        let header = BlockHeader { sequence: id.sequence, count };
        block::seal(&mut memory[step * SIZE..][..SIZE], id.instance, id.first_block + step as u64, header);
        assert_eq!(
            taken_over(&id, &memory).map(|(_, entries)| entries),
            Some(entries.clone()),
            "block {step}"
        );
    }
    assert!(memory == whole, "these are the steps of sealing");
}

/// The block's header has its sequence number before the checksum is written.
#[test]
fn the_only_block_of_a_summary_may_be_half_sealed() {
    let id = id(BLOCKS as u64);
    let mut memory = vec![0; BLOCKS * SIZE];
    let mut builder = fill_with(&[400], &id, &mut memory, |_, _| {});
    assert_eq!(builder.counts.len(), BLOCKS - 1, "all but one hold data");
    let entries = builder.entries.clone();
    let mut whole = memory.clone();
    let SealedBlocks { summary, .. } = records().seal(&id, &mut builder, &mut whole);
    assert_eq!(summary, BLOCKS - 1..BLOCKS);
    memory[summary.start * SIZE + 8..].copy_from_slice(&whole[summary.start * SIZE + 8..]);
    assert_eq!(taken_over(&id, &memory).map(|(_, entries)| entries), Some(entries));
}

#[test]
fn what_is_not_of_the_segment_is_not_taken_over() {
    let id = id(BLOCKS as u64);
    let mut memory = vec![0; BLOCKS * SIZE];
    fill(&id, &mut memory, |_, _| {});
    let other = SegmentId { sequence: 7, ..id };
    assert_eq!(
        taken_over(&other, &memory),
        Some((vec![], vec![])),
        "another segment's blocks count for nothing"
    );
    // More records than there are.
    block::note_count(&mut memory[..SIZE], 4000);
    assert_eq!(taken_over(&id, &memory), None);
}
