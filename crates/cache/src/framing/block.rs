//! The 16-byte header of every block, with its checksum.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | XXH3-64 of bytes 8.. of the block, seeded by the instance and the block's number |
//! | 8..14 | sequence number of the segment |
//! | 14..16 | records that begin in this block |
//!
//! The seed makes a block that was written elsewhere, or by another instance of the file, fail its check; the sequence
//! number reveals an older block at the right offset (a lost write).

use crate::limits::BLOCK_HEADER_SIZE;
use granary_log::Geometry;
use std::sync::atomic::{Ordering, fence};
use twox_hash::XxHash3_64;

/// The header of a checked block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Sequence number of the segment that the block was written in.
    pub sequence: u64,
    /// Records that begin in the block; 0 in a summary.
    pub count: u16,
}

fn seed(instance: u64, block: u64) -> u64 {
    instance ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Writes the header of `bytes` (one whole block) for block number `block`.
pub fn seal(bytes: &mut [u8], instance: u64, block: u64, header: BlockHeader) {
    bytes[8..14].copy_from_slice(&header.sequence.to_le_bytes()[..6]);
    bytes[14..16].copy_from_slice(&header.count.to_le_bytes());
    let sum = XxHash3_64::oneshot_with_seed(seed(instance, block), &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Notes the sequence number in a block that is being filled, and not sealed yet, for a next process to find.
pub fn note_sequence(bytes: &mut [u8], sequence: u64) {
    bytes[8..14].copy_from_slice(&sequence.to_le_bytes()[..6]);
}

/// Notes in such a block how many records begin in it, once the last of them is complete.
pub fn note_count(bytes: &mut [u8], count: u16) {
    // If the count is visible, so is everything written before it.
    fence(Ordering::Release);
    bytes[14..16].copy_from_slice(&count.to_le_bytes());
}

/// The header of a block that may not be sealed.
pub fn noted(bytes: &[u8]) -> BlockHeader {
    let mut sequence = [0; 8];
    sequence[..6].copy_from_slice(&bytes[8..14]);
    BlockHeader { sequence: u64::from_le_bytes(sequence), count: u16::from_le_bytes([bytes[14], bytes[15]]) }
}

/// Checks that `bytes` (one whole block) is block `block` of `instance`; `None`: it is not.
pub fn check(bytes: &[u8], instance: u64, block: u64) -> Option<BlockHeader> {
    let stored = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    if stored != XxHash3_64::oneshot_with_seed(seed(instance, block), &bytes[8..]) {
        return None;
    }
    Some(noted(bytes))
}

/// Bytes of a block that records may fill.
pub fn payload_size(geometry: &Geometry) -> usize {
    geometry.block_size() - BLOCK_HEADER_SIZE
}

/// The number of blocks that a record of `len` bytes spans.
pub fn blocks_spanned(geometry: &Geometry, len: usize) -> usize {
    len.div_ceil(payload_size(geometry))
}

/// The most bytes of a segment that a record of `len` bytes takes: the rest of its last block may be too small for the
/// next one.
pub fn bytes_taken(geometry: &Geometry, len: usize) -> usize {
    if len > payload_size(geometry) / 2 { blocks_spanned(geometry, len) * geometry.block_size() } else { len }
}

/// The part of a block after its header.
pub fn payload(bytes: &[u8]) -> &[u8] {
    &bytes[BLOCK_HEADER_SIZE..]
}

/// Copies the payloads of neighbouring blocks, one after the other, and returns how many leading ones are valid: of
/// `instance` and `sequence`, numbered from `block_number` on.
pub fn copy_payloads(
    geometry: &Geometry,
    bytes: &[u8],
    (instance, block_number, sequence): (u64, u64, u64),
    to: &mut [u8],
) -> usize {
    let blocks = bytes.chunks_exact(geometry.block_size()).zip(to.chunks_mut(payload_size(geometry)));
    let copied = (block_number..).zip(blocks).filter(|(block_number, (bytes, to))| {
        let is_right =
            check(bytes, instance, *block_number).is_some_and(|header| header.sequence == sequence);
        is_right && to.len() == payload(bytes).len()
    });
    copied.map(|(_, (bytes, to))| to.copy_from_slice(payload(bytes))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_itself_only_in_its_place_and_instance() {
        let header = BlockHeader { sequence: 0x1234_5678_9ABC, count: 7 };
        let mut bytes = vec![5u8; 4096];
        seal(&mut bytes, 1, 2, header);
        assert_eq!(check(&bytes, 1, 2), Some(header));
        assert_eq!(check(&bytes, 1, 3), None, "misdirected");
        assert_eq!(check(&bytes, 2, 2), None, "another instance");
        for bit in (0..4096 * 8).step_by(97) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&bytes, 1, 2), None, "bit {bit} flipped");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(check(&vec![0u8; 4096], 0, 0), None, "zeros are no block");
    }
}
