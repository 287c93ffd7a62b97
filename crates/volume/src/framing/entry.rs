//! The entries of a segment, which describe its blocks.

use twox_hash::XxHash3_64;

/// The bytes of an entry on the device.
pub const ENTRY_BYTES: usize = 16;

const KIND_BLOCK: u8 = 1;
const KIND_ZEROES: u8 = 2;
const KIND_FOOTER: u8 = 3;

/// One change of the volume; entries are in the order of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The next block of the segment is the content of a logical block.
    Block {
        /// The logical block.
        lba: u64,
        /// The block's checksum ([`checksum`]).
        checksum: u64,
    },
    /// Logical blocks become zero, and take no space.
    Zeroes {
        /// The first logical block.
        lba: u64,
        /// The number of them.
        count: u64,
    },
    /// The next blocks of the segment are the footer of a commit.
    Footer {
        /// The number of them.
        blocks: u32,
    },
}

impl Entry {
    /// The number of blocks of the segment that the entry describes.
    pub fn blocks(&self) -> u32 {
        match self {
            Entry::Block { .. } => 1,
            Entry::Zeroes { .. } => 0,
            Entry::Footer { blocks } => *blocks,
        }
    }

    /// Writes the entry: a number (48 bits), a kind (8 bits), 8 bits reserved for a codec, a number (64 bits).
    pub fn encode(&self, bytes: &mut [u8]) {
        let (kind, first, second) = match *self {
            Entry::Block { lba, checksum } => (KIND_BLOCK, lba, checksum),
            Entry::Zeroes { lba, count } => (KIND_ZEROES, lba, count),
            Entry::Footer { blocks } => (KIND_FOOTER, u64::from(blocks), 0),
        };
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[6..8].copy_from_slice(&[kind, 0]);
        bytes[8..ENTRY_BYTES].copy_from_slice(&second.to_le_bytes());
    }

    /// Reads an entry; `None` if it is of no known kind.
    pub fn parse(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let (first, second) = bytes.split_at(8);
        let first = u64::from_le_bytes(first.try_into().expect("8 bytes"));
        let second = u64::from_le_bytes(second.try_into().expect("8 bytes"));
        let (kind, number) = (first >> 48, first & ((1 << 48) - 1));
        match u8::try_from(kind).ok()? {
            KIND_BLOCK => Some(Entry::Block { lba: number, checksum: second }),
            KIND_ZEROES => Some(Entry::Zeroes { lba: number, count: second }),
            KIND_FOOTER => Some(Entry::Footer { blocks: u32::try_from(number).ok()? }),
            _ => None,
        }
    }
}

/// A hash of a block's content, which [`checksum`] binds to its volume, segment and logical block.
pub fn content_hash(data: &[u8]) -> u64 {
    XxHash3_64::oneshot(data)
}

/// The checksum of a logical block's content in a segment: it differs for another logical block, version or volume.
pub fn checksum(instance: u64, sequence: u64, lba: u64, content_hash: u64) -> u64 {
    [instance, sequence, lba].into_iter().fold(content_hash, |sum, number| {
        let mixed = (sum ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all = [
            Entry::Block { lba: (1 << 40) + 7, checksum: u64::MAX },
            Entry::Zeroes { lba: 3, count: 1 << 40 },
            Entry::Footer { blocks: 4 },
        ];
        for entry in all {
            let mut bytes = [0; ENTRY_BYTES];
            entry.encode(&mut bytes);
            assert_eq!(Entry::parse(&bytes), Some(entry));
            for kind in [0, 4, 255] {
                bytes[6] = kind;
                assert_eq!(Entry::parse(&bytes), None, "kind {kind}");
            }
        }
    }

    #[test]
    fn a_checksum_is_of_one_block_one_time_and_one_volume() {
        let sum = checksum(1, 2, 3, content_hash(b"content"));
        assert_ne!(sum, checksum(9, 2, 3, content_hash(b"content")));
        assert_ne!(sum, checksum(1, 9, 3, content_hash(b"content")));
        assert_ne!(sum, checksum(1, 2, 9, content_hash(b"content")));
        assert_ne!(sum, checksum(1, 2, 3, content_hash(b"contenT")));
    }
}
