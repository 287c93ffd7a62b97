//! The division of a file into segments, and of segments into blocks.

use crate::limits::{
    BLOCK_SIZE_MAX, BLOCK_SIZE_MIN, PARTITIONS_MAX, SEGMENT_BYTES_MAX, WRITE_QUEUE_BYTES_MAX,
};

/// Sizes that do not fit together; the text says which option to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GeometryError(String);

/// The shape of a log: `segments` segments of `blocks_per_segment` blocks of `block_size` bytes.
///
/// Segments are used as a ring. The segment with sequence number `s` (from 1) lies in slot
/// `s % segments`, so that the sequence number of what a slot holds follows from the newest one
/// and takes no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    block_size: u32,
    blocks_per_segment: u32,
    segments: u64,
    /// The offset of the log's first block on the device, in bytes.
    first_byte: u64,
    /// The number of logs on the device.
    partitions: u64,
}

impl Geometry {
    /// Checks that `BLOCK_SIZE` divides `WRITE_BUFFER_SIZE` and that one divides `FILE_SIZE`. Bytes.
    pub fn new(file_size: u64, write_buffer_size: u64, block_size: u64) -> Result<Self, GeometryError> {
        let refuse = |text: String| Err(GeometryError(text));
        if !(BLOCK_SIZE_MIN..=BLOCK_SIZE_MAX).contains(&block_size)
            || !block_size.is_multiple_of(BLOCK_SIZE_MIN)
        {
            return refuse(format!(
                "block_size {block_size} must be a multiple of {BLOCK_SIZE_MIN} between {BLOCK_SIZE_MIN} and {BLOCK_SIZE_MAX}"
            ));
        }
        if write_buffer_size == 0 || !write_buffer_size.is_multiple_of(block_size) {
            return refuse(format!(
                "write_buffer_size {write_buffer_size} must be a multiple of block_size {block_size}"
            ));
        }
        if write_buffer_size > SEGMENT_BYTES_MAX {
            return refuse(format!(
                "write_buffer_size {write_buffer_size} must be at most {SEGMENT_BYTES_MAX}: two such buffers are in RAM"
            ));
        }
        if file_size == 0 || !file_size.is_multiple_of(write_buffer_size) {
            return refuse(format!(
                "file_size {file_size} must be a multiple of write_buffer_size {write_buffer_size}"
            ));
        }
        Ok(Self {
            block_size: block_size as u32,
            blocks_per_segment: (write_buffer_size / block_size) as u32,
            segments: file_size / write_buffer_size,
            first_byte: 0,
            partitions: 1,
        })
    }

    /// The shapes of `partitions` logs of equal size, one behind the other, in the place of this one.
    ///
    /// # Errors
    /// The segments cannot be divided into that many parts.
    pub fn divide(self, partitions: u64) -> Result<Vec<Self>, GeometryError> {
        if !(1..=PARTITIONS_MAX).contains(&partitions) || !self.segments.is_multiple_of(partitions) {
            return Err(GeometryError(format!(
                "partitions {partitions}: file_size {} has {} write buffers, which cannot be divided into as many \
                 parts of one size; there may be 1 to {PARTITIONS_MAX}",
                self.file_bytes(),
                self.segments
            )));
        }
        let one = Self { segments: self.segments / partitions, partitions, ..self };
        let nth = |i: u64| Self { first_byte: self.first_byte + i * one.file_bytes(), ..one };
        Ok((0..partitions).map(nth).collect())
    }

    /// Bytes of a block.
    pub fn block_size(&self) -> usize {
        self.block_size as usize
    }

    /// Blocks of a segment.
    pub fn blocks_per_segment(&self) -> u32 {
        self.blocks_per_segment
    }

    /// Segments of the file.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Blocks of the file.
    pub fn blocks(&self) -> u64 {
        self.segments * u64::from(self.blocks_per_segment)
    }

    /// Bytes of a segment (`WRITE_BUFFER_SIZE`).
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.block_size) * u64::from(self.blocks_per_segment)
    }

    /// Bytes of the file (`FILE_SIZE`).
    pub fn file_bytes(&self) -> u64 {
        self.segment_bytes() * self.segments
    }

    /// This log's share of a bound on the bytes of all logs of the device.
    pub(crate) fn share(&self, bytes: u64) -> u64 {
        bytes / self.partitions
    }

    /// Buffers that are kept for the next segments.
    pub(crate) fn idle_buffers_max(&self) -> usize {
        if self.partitions == 1 { 2 } else { 1 }
    }

    /// The most write buffers that a log has at once, including those kept for the next segments.
    pub fn write_buffers_max(&self) -> u64 {
        let queued = self.share(WRITE_QUEUE_BYTES_MAX).div_ceil(self.segment_bytes());
        (queued.max(2) + 1 + self.idle_buffers_max() as u64).min(self.segments + 1)
    }

    /// The offset of block `block` on the device, in bytes.
    pub fn offset(&self, block: u64) -> u64 {
        self.first_byte + block * u64::from(self.block_size)
    }

    /// The slot that segment `sequence` lies in.
    pub fn slot(&self, sequence: u64) -> u64 {
        sequence % self.segments
    }

    /// The slot that `block` lies in.
    pub fn slot_of_block(&self, block: u64) -> u64 {
        block / u64::from(self.blocks_per_segment)
    }

    /// First block of segment `sequence`.
    pub fn first_block(&self, sequence: u64) -> u64 {
        self.first_block_of_slot(self.slot(sequence))
    }

    /// The first block of a slot.
    pub fn first_block_of_slot(&self, slot: u64) -> u64 {
        slot * u64::from(self.blocks_per_segment)
    }

    /// The newest sequence number up to `head` that lies in `slot`; 0: none was ever written there.
    pub fn sequence_at(&self, slot: u64, head: u64) -> u64 {
        let back = (self.slot(head) + self.segments - slot) % self.segments;
        head.saturating_sub(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_must_divide_and_the_error_names_the_parameter() {
        let text = |f, w, b| Geometry::new(f, w, b).unwrap_err().to_string();
        assert!(text(1 << 20, 4096, 100).starts_with("block_size 100"));
        assert!(text(1 << 20, 6000, 4096).starts_with("write_buffer_size 6000"));
        assert!(text(1 << 40, 1 << 40, 4096).starts_with("write_buffer_size 1099511627776"));
        assert!(text(10_000, 8192, 4096).starts_with("file_size 10000"));
        assert!(text(0, 8192, 4096).starts_with("file_size 0"));
    }

    #[test]
    fn partitions_lie_one_behind_the_other() {
        let whole = Geometry::new(12 * 8192, 8192, 4096).unwrap();
        assert_eq!(whole.divide(1).unwrap(), [whole]);
        let partitions = whole.divide(4).unwrap();
        let ends = |g: &Geometry| (g.offset(0), g.offset(g.blocks()), g.segments());
        let all = Vec::from_iter(partitions.iter().map(ends));
        assert_eq!(all, [(0, 24576, 3), (24576, 49152, 3), (49152, 73728, 3), (73728, 98304, 3)]);
        assert!(whole.divide(5).unwrap_err().to_string().contains("12 write buffers"));
        assert!(whole.divide(0).is_err());
    }

    #[test]
    fn the_sequence_of_a_slot_follows_from_the_head() {
        let g = Geometry::new(5 * 8192, 8192, 4096).unwrap();
        for head in 0..40u64 {
            for slot in 0..5 {
                let expected = (1..=head).rev().find(|s| g.slot(*s) == slot).unwrap_or(0);
                assert_eq!(g.sequence_at(slot, head), expected, "slot {slot}, head {head}");
            }
        }
    }
}
