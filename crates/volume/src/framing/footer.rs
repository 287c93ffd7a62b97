//! Blocks of a segment that are not content: its header, the footers of commits, the summary at its end.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | XXH3-64 of the rest of the block, seeded by the instance and the block's number |
//! | 8..14 | sequence number of the segment |
//! | 14 | kind: 1 header, 2 footer of a commit, 3 summary |
//! | 15 | bits: 1 see [`FooterHeader::reuse_after_checkpoint`], 2 see [`FooterHeader::follows_synced`]; 0 in segments from before |
//! | 16..20 | number of this block in the footer |
//! | 20..24 | blocks of the footer |
//! | 24..28 | entries in this block |
//! | 28..32 | position in the segment of the first block that the footer is about; in the header, this segment's number less that of the first segment that the newest checkpoint lacked, plus 1; 0 if there was none |
//! | 32..40 | sequence number up to which everything was synced when this was written |
//! | 40..48 | `GRVOLUME` |
//! | 48.. | entries of 16 bytes |

use super::entry::{ENTRY_BYTES, Entry};
use granary_log::Geometry;
use twox_hash::XxHash3_64;

/// The bytes before the entries.
pub const FOOTER_HEADER_BYTES: usize = 48;

/// The offset of [`MAGIC`].
pub const MAGIC_AT: usize = 40;

/// Marks a block that is not content.
pub const MAGIC: [u8; 8] = *b"GRVOLUME";

/// The kind of a block that is not content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The segment's first block, which marks the slot as the segment's.
    Header = 1,
    /// The entries since the last commit.
    Commit = 2,
    /// All entries of the segment.
    Summary = 3,
}

/// The header of such a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterHeader {
    /// The sequence number of the segment.
    pub sequence: u64,
    /// The block's kind.
    pub kind: Kind,
    /// The number of this block in the footer.
    pub index: u32,
    /// The blocks of the footer.
    pub blocks: u32,
    /// The entries in this block.
    pub entries: u32,
    /// The position in the segment of the first block that the footer is about. In a segment's header, its number less
    /// that of the first segment that the newest checkpoint lacked, plus 1; 0 if there was no checkpoint. So each
    /// header tells how new the map must be.
    pub position: u32,
    /// The sequence number up to which everything was synced.
    pub synced: u64,
    /// Whether the writer reuses a slot only once the checkpoint covers its former segment. Then the only sequence
    /// numbers missing behind the checkpoint are those that starts skip.
    pub reuse_after_checkpoint: bool,
    /// For a commit: whether everything before `position` in the segment was synced when this was written.
    pub follows_synced: bool,
}

impl FooterHeader {
    /// The `position` of the header of segment `sequence`, begun while the checkpoint has all segments before
    /// `checkpoint`. `checkpoint` 0: there is none.
    pub fn position_of(sequence: u64, checkpoint: u64) -> u32 {
        let behind = if checkpoint == 0 { 0 } else { sequence.saturating_sub(checkpoint) + 1 };
        u32::try_from(behind).unwrap_or(0)
    }

    /// The `checkpoint` that [`position_of`](Self::position_of) encoded; 0: there was none, or the header does not
    /// tell.
    pub fn checkpoint(&self) -> u64 {
        let behind = u64::from(self.position);
        if behind == 0 { 0 } else { (self.sequence + 1).saturating_sub(behind) }
    }
}

/// The number of entries that fit a block.
pub fn entries_per_block(geometry: &Geometry) -> usize {
    (geometry.block_size() - FOOTER_HEADER_BYTES) / ENTRY_BYTES
}

/// The blocks of a footer with `entries` entries: at least one.
pub fn blocks_for(geometry: &Geometry, entries: usize) -> usize {
    entries.div_ceil(entries_per_block(geometry)).max(1)
}

fn seed(instance: u64, block: u64) -> u64 {
    instance ^ block.wrapping_add(1).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Writes a footer over `bytes`, its blocks; `block` is the first one's number on the device.
pub fn write(
    bytes: &mut [u8],
    geometry: &Geometry,
    instance: u64,
    block: u64,
    header: FooterHeader,
    entries: &[Entry],
) {
    let size = geometry.block_size();
    let blocks = (bytes.len() / size) as u32;
    let mut parts = entries.chunks(entries_per_block(geometry));
    for (index, bytes) in (0..blocks).zip(bytes.chunks_exact_mut(size)) {
        let part = parts.next().unwrap_or(&[]);
        bytes.fill(0);
        for (entry, bytes) in part.iter().zip(bytes[FOOTER_HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES)) {
            entry.encode(bytes);
        }
        bytes[8..16].copy_from_slice(&header.sequence.to_le_bytes());
        let flags = u8::from(header.reuse_after_checkpoint) | u8::from(header.follows_synced) << 1;
        bytes[14..16].copy_from_slice(&[header.kind as u8, flags]);
        let numbers = [index, blocks, part.len() as u32, header.position];
        for (number, at) in numbers.into_iter().zip((16..).step_by(4)) {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&header.synced.to_le_bytes());
        bytes[40..48].copy_from_slice(&MAGIC);
        seal(bytes, instance, block + u64::from(index));
    }
}

/// Writes the checksum of an otherwise complete block.
pub fn seal(bytes: &mut [u8], instance: u64, block: u64) {
    let sum = XxHash3_64::oneshot_with_seed(seed(instance, block), &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Whether a block is marked as not being content, valid or not.
pub fn is_marked(bytes: &[u8]) -> bool {
    bytes[MAGIC_AT..MAGIC_AT + MAGIC.len()] == MAGIC
}

/// Reads the header of such a block; `None` if it is invalid, not in its place, or of another instance.
pub fn check(bytes: &[u8], instance: u64, block: u64) -> Option<FooterHeader> {
    if !is_marked(bytes) {
        return None;
    }
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    if u64_at(0) != XxHash3_64::oneshot_with_seed(seed(instance, block), &bytes[8..]) {
        return None;
    }
    let kind = match bytes[14] {
        1 => Kind::Header,
        2 => Kind::Commit,
        3 => Kind::Summary,
        _ => return None,
    };
    let room = (bytes.len() - FOOTER_HEADER_BYTES) / ENTRY_BYTES;
    let header = FooterHeader {
        sequence: u64_at(8) & ((1 << 48) - 1),
        kind,
        index: u32_at(16),
        blocks: u32_at(20),
        entries: u32_at(24),
        position: u32_at(28),
        synced: u64_at(32),
        reuse_after_checkpoint: bytes[15] & 1 != 0,
        follows_synced: bytes[15] & 2 != 0,
    };
    (header.index < header.blocks && header.entries as usize <= room).then_some(header)
}

/// Reads the entries of a checked block; `None`: one of them is of no known kind.
pub fn entries<'a>(bytes: &'a [u8], header: &FooterHeader) -> impl Iterator<Item = Option<Entry>> + use<'a> {
    let entries = bytes[FOOTER_HEADER_BYTES..].as_chunks::<ENTRY_BYTES>().0;
    entries[..header.entries as usize].iter().map(Entry::parse)
}
