//! The decoders of blocks and summaries on any bytes, as in [`crate::fuzzing`].

use super::block::{self, BlockHeader};
use super::summary;
use granary_log::Geometry;
use granary_log::fuzzing::number;
use granary_log::limits::{BLOCK_SIZE_MIN, SEQUENCE_MAX, SUMMARY_ENTRY_MAX};

const INSTANCE: u64 = 0x0123_4567_89AB_CDEF;
const SIZE: usize = BLOCK_SIZE_MIN as usize;

/// One block of `data`, padded with zeros.
fn block_of(data: &[u8]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let len = data.len().min(SIZE);
    bytes[..len].copy_from_slice(&data[..len]);
    bytes
}

/// Block headers and checksums.
pub fn block(data: &[u8]) {
    let mut bytes = block_of(data);
    let block_number = number(data, 0) >> 20;
    if let Some(header) = block::check(&bytes, INSTANCE, block_number) {
        let before = bytes;
        block::seal(&mut bytes, INSTANCE, block_number, header);
        assert_eq!(bytes, before, "what checks is what would be written");
    }
    let header = BlockHeader { sequence: number(data, 8) & SEQUENCE_MAX, count: number(data, 16) as u16 };
    block::seal(&mut bytes, INSTANCE, block_number, header);
    assert_eq!(block::check(&bytes, INSTANCE, block_number), Some(header));
    assert_eq!(block::check(&bytes, INSTANCE, block_number ^ 1), None, "another block_number");
    let bit = number(data, 2) as usize % (SIZE * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
    assert_eq!(block::check(&bytes, INSTANCE, block_number), None, "bit {bit} is flipped");
}

/// Summaries, from their trailer on.
pub fn summary(data: &[u8]) {
    let geometry = Geometry::new(64 * SIZE as u64, 16 * SIZE as u64, SIZE as u64).expect("sizes divide");
    let (first, header) = (16, BlockHeader { sequence: number(data, 0) & SEQUENCE_MAX, count: 0 });
    // As it is, then with valid checksums, so that the code behind the check is reached.
    let mut segment = vec![0; 16 * SIZE];
    let len = data.len().min(segment.len());
    let end = segment.len();
    segment[end - len..].copy_from_slice(&data[..len]);
    read_summary(&segment, &geometry, first);
    if segment[end - 16..end - 8] != *b"GRANSUM1" {
        segment[end - 16..end - 8].copy_from_slice(b"GRANSUM1");
        segment[end - 8..].copy_from_slice(&(number(data, 8) & 0x0000_00FF_0000_001F).to_le_bytes());
    }
    seal_all(&mut segment, first, header);
    read_summary(&segment, &geometry, first);
    // What is written is read.
    let most = data.len() % 8;
    let counts: Vec<u16> = (0..most).map(|i| data[i] as u16 % 20).collect();
    let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
    let entries: Vec<u64> =
        (0..total).map(|i| number(data, i % (data.len() + 1)) & SUMMARY_ENTRY_MAX).collect();
    let mut with_look_alikes: Vec<u64> = entries.iter().copied().step_by(3).collect();
    let blocks = summary::blocks(&geometry, counts.len(), entries.len() + with_look_alikes.len());
    segment.fill(0);
    summary::write(&mut segment[(16 - blocks) * SIZE..], &geometry, &counts, &entries, &with_look_alikes);
    seal_all(&mut segment, first, header);
    let read = read_summary(&segment, &geometry, first).expect("what is written is read");
    with_look_alikes.sort_unstable();
    assert_eq!((read.sequence, read.counts), (header.sequence, counts));
    assert!(read.entries.iter().eq(entries));
    assert_eq!(read.with_look_alikes, with_look_alikes);
}

fn seal_all(segment: &mut [u8], first: u64, header: BlockHeader) {
    for (bytes, number) in segment.chunks_exact_mut(SIZE).zip(first..) {
        block::seal(bytes, INSTANCE, number, header);
    }
}

fn read_summary(segment: &[u8], geometry: &Geometry, first: u64) -> Option<summary::Summary> {
    let last = &segment[segment.len() - SIZE..];
    let trailer = summary::parse_trailer(last, geometry, INSTANCE, first)?;
    let bytes = &segment[segment.len() - trailer.blocks * SIZE..];
    let read = summary::parse(bytes, trailer, geometry, INSTANCE, first)?;
    assert_eq!(read.iter().count(), read.entries.len());
    assert!(read.iter().all(|(block_number, _)| (first..first + 16).contains(&block_number)));
    Some(read)
}
