//! The bytes of a checkpoint. Integers are little-endian.
//!
//! | header | what |
//! |---|---|
//! | 0..8 | `GRANMAP1` |
//! | 8..16 | XXH3-64 of bytes 16..64: the *identity* of the checkpoint |
//! | 16..20 | version: 1 |
//! | 20..24 | block size |
//! | 24..32 | instance of the log |
//! | 32..40 | number of logical blocks |
//! | 40..48 | sequence number up to which segments are contained |
//! | 48..52 | blocks of the segment after it that are contained, too |
//! | 52..64 | 0 |
//!
//! | page | what |
//! |---|---|
//! | 0..8 | number of the page: its first logical block divided by 1024 |
//! | 8..16 | XXH3-64 of bytes 16.., seeded by identity XOR (number × 0x9E3779B97F4A7C15 mod 2^64) |
//! | 16..4112 | for each of 1024 logical blocks its place, or 0 |
//!
//! | trailer | what |
//! |---|---|
//! | 0..8 | `GRANMEND` |
//! | 8..16 | number of pages |
//! | 16..24 | number of mapped blocks |
//! | 24..32 | XXH3-64 of bytes 0..24, seeded by the identity |

use crate::limits::{BLOCKS_MAX, CHECKPOINT_PAGE_BLOCKS};
use crate::map::{Place, raw_of};
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"GRANMAP1";
const END_MAGIC: [u8; 8] = *b"GRANMEND";
const VERSION: u32 = 1;

pub(crate) const HEADER_SIZE: usize = 64;
const PAGE_HEADER_SIZE: usize = 16;
pub(crate) const PAGE_RECORD_SIZE: usize = PAGE_HEADER_SIZE + PAGE_BLOCKS * 4;
pub(crate) const TRAILER_SIZE: usize = 32;
const PAGE_BLOCKS: usize = CHECKPOINT_PAGE_BLOCKS as usize;

/// The places of a page.
pub(super) type Places = [Option<Place>; PAGE_BLOCKS];

/// The header of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointHeader {
    /// The instance of the log that the places are in.
    pub instance: u64,
    /// The size of a block in bytes.
    pub block_size: u32,
    /// The number of logical blocks of the volume.
    pub blocks: u64,
    /// The sequence number up to which all segments are contained.
    pub sequence: u64,
    /// The number of blocks of the segment after `sequence` that are contained, too.
    pub position: u32,
}

/// The number that seeds the checksums of a checkpoint's pages and trailer: those of another checkpoint fail their
/// check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckpointIdentity(u64);

impl CheckpointIdentity {
    fn of_page(self, number: u64) -> u64 {
        self.0 ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

pub(super) fn encode_header(header: &CheckpointHeader) -> ([u8; HEADER_SIZE], CheckpointIdentity) {
    let mut bytes = [0; HEADER_SIZE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
    bytes[20..24].copy_from_slice(&header.block_size.to_le_bytes());
    put(&mut bytes, 24, header.instance);
    put(&mut bytes, 32, header.blocks);
    put(&mut bytes, 40, header.sequence);
    bytes[48..52].copy_from_slice(&header.position.to_le_bytes());
    let identity = XxHash3_64::oneshot(&bytes[16..]);
    put(&mut bytes, 8, identity);
    (bytes, CheckpointIdentity(identity))
}

/// Returns the header and its identity, or why it is invalid.
pub(super) fn parse_header(
    bytes: &[u8; HEADER_SIZE],
) -> Result<(CheckpointHeader, CheckpointIdentity), &'static str> {
    if bytes[..8] != MAGIC {
        return Err("it is no checkpoint");
    }
    let identity = u64_at(bytes, 8);
    if identity != XxHash3_64::oneshot(&bytes[16..]) {
        return Err("its header is damaged");
    }
    let header = CheckpointHeader {
        block_size: u32_at(bytes, 20),
        instance: u64_at(bytes, 24),
        blocks: u64_at(bytes, 32),
        sequence: u64_at(bytes, 40),
        position: u32_at(bytes, 48),
    };
    if u32_at(bytes, 16) != VERSION || bytes[52..] != [0; 12] || header.blocks > BLOCKS_MAX {
        return Err("it is of another version");
    }
    Ok((header, CheckpointIdentity(identity)))
}

/// Appends a page to `bytes`.
pub(super) fn encode_page(bytes: &mut Vec<u8>, identity: CheckpointIdentity, number: u64, places: &Places) {
    let start = bytes.len();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend(places.iter().flat_map(|place| raw_of(*place).to_le_bytes()));
    let page = &mut bytes[start..];
    let sum = XxHash3_64::oneshot_with_seed(identity.of_page(number), &page[PAGE_HEADER_SIZE..]);
    put(page, 8, sum);
}

/// Reads a page into `places`. Returns its number, or `None` if it is damaged.
pub(super) fn parse_page(bytes: &[u8], identity: CheckpointIdentity, places: &mut Places) -> Option<u64> {
    let (number, entries) = (u64_at(bytes, 0), &bytes[PAGE_HEADER_SIZE..]);
    if u64_at(bytes, 8) != XxHash3_64::oneshot_with_seed(identity.of_page(number), entries) {
        return None;
    }
    for (place, raw) in places.iter_mut().zip(entries.chunks_exact(4)) {
        *place = Place::from_raw(u32_at(raw, 0));
    }
    Some(number)
}

pub(super) fn encode_trailer(identity: CheckpointIdentity, pages: u64, mapped: u64) -> [u8; TRAILER_SIZE] {
    let mut bytes = [0; TRAILER_SIZE];
    bytes[..8].copy_from_slice(&END_MAGIC);
    put(&mut bytes, 8, pages);
    put(&mut bytes, 16, mapped);
    let sum = XxHash3_64::oneshot_with_seed(identity.0, &bytes[..24]);
    put(&mut bytes, 24, sum);
    bytes
}

/// Sets all magics and checksums of a checkpoint to valid values, to fuzz the code behind the checks.
pub(crate) fn seal(bytes: &mut [u8]) {
    let Some((header, rest)) = bytes.split_at_mut_checked(HEADER_SIZE) else { return };
    header[..8].copy_from_slice(&MAGIC);
    header[16..20].copy_from_slice(&VERSION.to_le_bytes());
    header[52..].fill(0);
    let identity = CheckpointIdentity(XxHash3_64::oneshot(&header[16..]));
    put(header, 8, identity.0);
    let Some(pages) = rest.len().checked_sub(TRAILER_SIZE) else { return };
    let (pages, trailer) = rest.split_at_mut(pages);
    for page in pages.chunks_exact_mut(PAGE_RECORD_SIZE) {
        let sum = XxHash3_64::oneshot_with_seed(identity.of_page(u64_at(page, 0)), &page[PAGE_HEADER_SIZE..]);
        put(page, 8, sum);
    }
    trailer[..8].copy_from_slice(&END_MAGIC);
    let sum = XxHash3_64::oneshot_with_seed(identity.0, &trailer[..24]);
    put(trailer, 24, sum);
}
