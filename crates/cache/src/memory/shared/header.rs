//! The first page of the file: what it belongs to and how it is divided.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `GRANRAM3` |
//! | 8..16 | XXH3-64 of bytes 16..96 |
//! | 16..24 | number of this memory: the one in the cache's state file, or the content is void |
//! | 24..32 | salt: seeds the hashes of keys |
//! | 32..40 | seed of the entries' checksums |
//! | 40..56 | boot id of the kernel |
//! | 56..64 | bytes of a unit |
//! | 64..72 | number of units |
//! | 72..80 | number of shards |
//! | 80..88 | number of write buffers |
//! | 88..96 | bytes of a write buffer |
//! | 96..98 | bytes of the path that the cache's state file is named after; 0: it is too long |
//! | 98.. | this path, which the file's own name has the hash of |

use crate::limits::{SHARDS, SHARED_MEMORY_PAGE_BYTES, WRITE_BUFFERS_USUAL};
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"GRANRAM3";
pub(crate) const SIZE: usize = 96;

/// The offset of the path, and the most bytes that it may have.
const PATH_AT: usize = SIZE + 2;
pub(crate) const PATH_BYTES_MAX: usize = SHARED_MEMORY_PAGE_BYTES as usize - PATH_AT;

/// The page's bytes after the header, with the path.
pub(crate) fn encode_path(path: &[u8]) -> Vec<u8> {
    let path = if path.len() > PATH_BYTES_MAX { &[] } else { path };
    [&(path.len() as u16).to_le_bytes()[..], path].concat()
}

/// The path in the page; `None`: the page is not of this version, or has no path.
pub(crate) fn parse_path(page: &[u8]) -> Option<&[u8]> {
    let (start, rest) = page.split_at_checked(SIZE)?;
    let (len, path) = rest.split_at_checked(PATH_AT - SIZE)?;
    let path = path.get(..usize::from(u16::from_le_bytes(len.try_into().ok()?)))?;
    (start[..8] == MAGIC && !path.is_empty()).then_some(path)
}

/// The layout of a file: the header's page, the directories of units and of write buffers, the units, the write
/// buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub unit_bytes: u64,
    pub units: u64,
    pub buffers: WriteBuffers,
}

/// The most write buffers at once. Parts of the file that no buffer uses take no RAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteBuffers {
    pub number: u64,
    pub bytes: u64,
}

impl Layout {
    /// The file of a RAM tier of `memory_bytes` bytes in units of `unit_bytes`. It has an eighth more: shards exceed
    /// the tier a little before others give way, and room is lost between long chunks.
    pub fn new(memory_bytes: u64, unit_bytes: u64) -> Self {
        let bytes = memory_bytes + memory_bytes / 8 + SHARED_MEMORY_PAGE_BYTES;
        Self { unit_bytes, units: bytes.div_ceil(unit_bytes), buffers: WriteBuffers::default() }
    }

    /// The layout with write buffers.
    pub fn with_buffers(self, buffers: WriteBuffers) -> Self {
        Self { buffers, ..self }
    }

    /// Bytes of the RAM tier, or a little more.
    pub fn memory_bytes(&self) -> u64 {
        self.units * self.unit_bytes / 9 * 8
    }

    /// Bytes of the usual number of write buffers.
    pub fn usual_buffer_bytes(&self) -> u64 {
        self.buffers.number.min(WRITE_BUFFERS_USUAL) * self.buffers.bytes
    }

    pub fn directory_at(&self) -> u64 {
        SHARED_MEMORY_PAGE_BYTES
    }

    /// The offset of the write buffers' directory, whose entries are as long as a unit's.
    pub fn buffer_directory_at(&self) -> u64 {
        self.directory_at() + self.units * super::directory::ENTRY_SIZE as u64
    }

    /// The offset of the first segment of the change under way: an entry of the same length, behind the write buffers'
    /// directory.
    pub fn under_way_at(&self) -> u64 {
        self.buffer_directory_at() + self.buffers.number * super::directory::ENTRY_SIZE as u64
    }

    /// The offset of the units.
    pub fn units_at(&self) -> u64 {
        let end = self.under_way_at() + super::directory::ENTRY_SIZE as u64;
        end.next_multiple_of(SHARED_MEMORY_PAGE_BYTES)
    }

    /// The offset of a write buffer, which begins at a page.
    pub fn buffer_at(&self, buffer: u64) -> u64 {
        let units_end = self.units_at() + self.units * self.unit_bytes;
        let stride = self.buffers.bytes.next_multiple_of(SHARED_MEMORY_PAGE_BYTES);
        units_end.next_multiple_of(SHARED_MEMORY_PAGE_BYTES) + buffer * stride
    }

    pub fn file_bytes(&self) -> u64 {
        self.buffer_at(self.buffers.number)
    }
}

/// The decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArenaHeader {
    pub memory_id: u64,
    pub salt: u64,
    pub checksum_seed: u64,
    pub boot_id: [u8; 16],
    pub layout: Layout,
}

impl ArenaHeader {
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&MAGIC);
        let mut put = |at: usize, number: u64| bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        put(16, self.memory_id);
        put(24, self.salt);
        put(32, self.checksum_seed);
        put(56, self.layout.unit_bytes);
        put(64, self.layout.units);
        put(72, SHARDS as u64);
        put(80, self.layout.buffers.number);
        put(88, self.layout.buffers.bytes);
        bytes[40..56].copy_from_slice(&self.boot_id);
        let sum = XxHash3_64::oneshot(&bytes[16..]);
        bytes[8..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses a header; `None`: it is not of this version, or damaged.
    pub fn parse(bytes: &[u8; SIZE]) -> Option<Self> {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let is_whole = bytes[..8] == MAGIC && u64_at(8) == XxHash3_64::oneshot(&bytes[16..]);
        (is_whole && u64_at(72) == SHARDS as u64).then(|| Self {
            memory_id: u64_at(16),
            salt: u64_at(24),
            checksum_seed: u64_at(32),
            boot_id: bytes[40..56].try_into().expect("16 bytes"),
            layout: Layout {
                unit_bytes: u64_at(56),
                units: u64_at(64),
                buffers: WriteBuffers { number: u64_at(80), bytes: u64_at(88) },
            },
        })
    }
}
