//! An entry in a chunk: eight bytes, then its record as it would be on flash.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | lower half of the XXH3-64 of the record, seeded by the file's number; 0 in memory of the process's own |
//! | 4..6 | 16 bits of the key's hash |
//! | 6 | flags |
//! | 7 | counts: reads in the lower half, updates in the upper |

use crate::key::{Key, KeyHash, KeyHasher};
use crate::record::{self, EntryRecord, Record, same_bytes};
use twox_hash::XxHash3_64;

const TAG_AT: usize = 4;
pub(super) const FLAGS_AT: usize = 6;
pub(super) const COUNTS_AT: usize = 7;
pub(super) const RECORD_AT: usize = 8;
/// An entry's part of a table: five bytes for each of its slots, of which 44 to 88 of a hundred are taken.
const TABLE_BYTES: usize = 8;

/// It was read since the hand last passed.
pub(super) const READ: u8 = 1;
/// It counts no more.
pub(super) const DEAD: u8 = 2;
/// It is nowhere else.
pub(super) const DIRTY: u8 = 4;
/// It was read since it was put.
pub(super) const FETCHED: u8 = 8;
/// The upper bits of the flags are the entry's stamp.
pub(super) const STAMP_SHIFT: u32 = 4;

/// The 16 bits of a hash that tell most entries apart: those that choose shard and partition are others.
#[inline]
fn tag_of(hash: KeyHash) -> u16 {
    (hash.to_bits() >> 16) as u16
}

/// The first bytes of an entry; its checksum comes when the record is there.
pub(super) fn head(hash: KeyHash, flags: u8, counts: u8) -> [u8; RECORD_AT] {
    let mut head = [0; RECORD_AT];
    head[TAG_AT..FLAGS_AT].copy_from_slice(&tag_of(hash).to_le_bytes());
    (head[FLAGS_AT], head[COUNTS_AT]) = (flags, counts);
    head
}

/// Writes the checksum of the entry that `bytes` are.
pub(super) fn seal(bytes: &mut [u8], seed: u64) {
    let sum = checksum(&bytes[RECORD_AT..], seed);
    bytes[..TAG_AT].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(record: &[u8], seed: u64) -> u32 {
    XxHash3_64::oneshot_with_seed(seed, record) as u32
}

/// The record of an entry that begins `bytes`, and that this process has written or checked.
#[inline(always)]
pub(super) fn record_of(bytes: &[u8]) -> EntryRecord<'_> {
    match record::parse(&bytes[RECORD_AT..]) {
        Some(Record::Entry(entry)) => entry,
        _ => unreachable!("the tier wrote an entry there"),
    }
}

/// The hash of the key of an entry that begins `bytes`.
#[inline]
pub(super) fn hash_of(bytes: &[u8], hasher: KeyHasher) -> KeyHash {
    hasher.hash(record_of(bytes).key)
}

/// Whether the entry that begins `bytes` is the key's.
#[inline(always)]
pub(super) fn is_of(bytes: &[u8], key: Key<'_>) -> bool {
    has_tag(bytes, key.hash()) && same_bytes(record_of(bytes).key, key.bytes())
}

/// Whether the entry that begins `bytes` may have this hash.
#[inline(always)]
pub(super) fn has_tag(bytes: &[u8], hash: KeyHash) -> bool {
    bytes[TAG_AT..FLAGS_AT] == tag_of(hash).to_le_bytes()
}

/// Bytes of the entry that begins `bytes`.
pub(super) fn entry_len(bytes: &[u8]) -> usize {
    RECORD_AT + record_of(bytes).len()
}

/// Bytes of RAM of an entry with a record of so many bytes, its part of a table included, in the mean.
pub(crate) fn cost(record: usize) -> u64 {
    (RECORD_AT + record + TABLE_BYTES) as u64
}

/// An entry of another process, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedEntry {
    pub hash: KeyHash,
    pub len: usize,
    pub flags: u8,
}

/// Checks the entry that begins `bytes`; `None`: there is no whole one of this cache.
pub(crate) fn check(bytes: &[u8], hasher: KeyHasher, seed: u64) -> Option<CheckedEntry> {
    let head = bytes.first_chunk::<RECORD_AT>()?;
    let Some(Record::Entry(entry)) = record::parse(&bytes[RECORD_AT..]) else { return None };
    let sum = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    if !entry.is_whole() || sum != checksum(entry.as_bytes(), seed) {
        return None;
    }
    let hash = hasher.hash(entry.key);
    let is_valid = has_tag(bytes, hash);
    is_valid.then(|| CheckedEntry { hash, len: RECORD_AT + entry.len(), flags: head[FLAGS_AT] })
}
