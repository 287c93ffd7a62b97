//! An entry in a chunk: eight bytes, then its record as it would be on flash.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | lower half of the XXH3-64 of the value, seeded by all else (`checksum`); 0 in memory of the process's own |
//! | 4..6 | 16 bits of the key's hash |
//! | 6 | flags |
//! | 7 | counts: reads in the lower half, updates in the upper |

use crate::admission::COUNT_MAX;
use crate::entry::StoredEntry;
use crate::key::{Key, KeyHash, KeyHasher};
use crate::record::{self, EntryRecord, Record, flags_of, same_bytes};
use twox_hash::XxHash3_64;

const TAG_AT: usize = 4;
pub(super) const FLAGS_AT: usize = 6;
pub(super) const COUNTS_AT: usize = 7;
pub(super) const RECORD_AT: usize = 8;
/// An entry's share of a table: five bytes a slot, of which 44 to 88 % are taken.
const TABLE_BYTES: usize = 8;

/// The entry was read since the hand last passed.
pub(super) const READ: u8 = 1;
/// The entry is no longer valid.
pub(super) const DEAD: u8 = 2;
/// The entry is in RAM only.
pub(super) const DIRTY: u8 = 4;
/// The entry was read since it was put.
pub(super) const FETCHED: u8 = 8;
/// The upper bits of the flags are the entry's stamp.
pub(super) const STAMP_SHIFT: u32 = 4;

/// Counts are reads in the lower half of the byte, updates in the upper.
pub(super) const UPDATE: u8 = 16;
const _: () = assert!(COUNT_MAX == UPDATE - 1);

/// The 16 bits of a hash that distinguish most entries. They are not those that choose shard and partition.
#[inline]
fn tag_of(hash: KeyHash) -> u16 {
    (hash.to_bits() >> 16) as u16
}

/// The first bytes of an entry; `sum` is its checksum, or 0.
pub(super) fn head(hash: KeyHash, flags: u8, counts: u8, sum: u32) -> [u8; RECORD_AT] {
    let (tag, flags, counts) = (u64::from(tag_of(hash)), u64::from(flags), u64::from(counts));
    // As one word, for a copy that follows soon.
    let word = u64::from(sum) | tag << (8 * TAG_AT) | flags << (8 * FLAGS_AT) | counts << (8 * COUNTS_AT);
    word.to_le_bytes()
}

/// Any odd number.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The checksum of an entry under the file's seed. It covers the key by its hash, which the writer has already, so that
/// no bytes are read that were just stored.
#[inline]
pub(super) fn checksum(entry: &StoredEntry<'_>, seed: u64) -> u32 {
    let value = entry.value.map_or(&[][..], |value| value.bytes);
    checksum_of(entry.key.hash(), flags_of(entry.value), entry.expires_at, value, seed)
}

#[inline]
fn checksum_of(hash: KeyHash, flags: u8, expires_at: u32, value: &[u8], seed: u64) -> u32 {
    let fields = u64::from(flags) << 32 | u64::from(expires_at);
    let seed = seed ^ fields ^ hash.to_bits().wrapping_mul(MULTIPLIER);
    XxHash3_64::oneshot_with_seed(seed, value) as u32
}

/// The record of the entry at the start of `bytes`, which this process has written or checked.
#[inline(always)]
pub(super) fn record_of(bytes: &[u8]) -> EntryRecord<'_> {
    parse_written(&bytes[RECORD_AT..])
}

/// Parses the record at the start of `record`, which this process has written or checked.
#[inline(always)]
pub(super) fn parse_written(record: &[u8]) -> EntryRecord<'_> {
    match record::parse(record) {
        Some(Record::Entry(entry)) => entry,
        _ => unreachable!("the tier wrote an entry there"),
    }
}

/// Marks an entry as read, given the bytes before its record.
#[inline(always)]
pub(super) fn mark_read(head: &mut [u8]) {
    let (flags, counts) = (head[FLAGS_AT], head[COUNTS_AT]);
    // Most entries are marked already: then the cache line stays clean.
    if flags & READ == 0 {
        head[FLAGS_AT] = flags | READ | FETCHED;
    }
    // Only dirty entries are judged by their counts when they leave.
    if flags & DIRTY != 0 && counts % UPDATE < COUNT_MAX {
        head[COUNTS_AT] = counts + 1;
    }
}

/// The hash of the key of the entry at the start of `bytes`.
#[inline]
pub(super) fn hash_of(bytes: &[u8], hasher: KeyHasher) -> KeyHash {
    hasher.hash(record_of(bytes).key)
}

/// Whether the entry at the start of `bytes` is the key's.
#[inline(always)]
pub(super) fn is_of(bytes: &[u8], key: Key<'_>) -> bool {
    has_tag(bytes, key.hash()) && same_bytes(record_of(bytes).key, key.bytes())
}

/// Whether the entry at the start of `bytes` may have this hash.
#[inline(always)]
pub(super) fn has_tag(bytes: &[u8], hash: KeyHash) -> bool {
    bytes[TAG_AT..FLAGS_AT] == tag_of(hash).to_le_bytes()
}

/// The length of the entry at the start of `bytes`.
pub(super) fn entry_len(bytes: &[u8]) -> usize {
    RECORD_AT + record_of(bytes).len()
}

/// Mean bytes of RAM of an entry with a record of `record` bytes, including its share of a table.
pub(crate) fn cost(record: usize) -> u64 {
    (RECORD_AT + record + TABLE_BYTES) as u64
}

/// A checked entry of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedEntry {
    pub hash: KeyHash,
    pub len: usize,
    pub flags: u8,
}

/// Checks the entry at the start of `bytes`; `None`: there is no complete one of this cache.
pub(crate) fn check(bytes: &[u8], hasher: KeyHasher, seed: u64) -> Option<CheckedEntry> {
    let head = bytes.first_chunk::<RECORD_AT>()?;
    let Some(Record::Entry(entry)) = record::parse(&bytes[RECORD_AT..]) else { return None };
    let sum = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    if !entry.is_whole() {
        return None;
    }
    let hash = hasher.hash(entry.key);
    let value = &entry.as_bytes()[entry.value_at()..];
    let is_valid =
        has_tag(bytes, hash) && sum == checksum_of(hash, bytes[RECORD_AT], entry.expires_at, value, seed);
    is_valid.then(|| CheckedEntry { hash, len: RECORD_AT + entry.len(), flags: head[FLAGS_AT] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::StoredValue;
    use crate::record::HeaderBytes;

    #[test]
    fn a_bit_that_changed_is_found() {
        let (hasher, seed) = (KeyHasher::with_seed(5), 7);
        let long = [3; 300];
        for value in [None, Some(&b""[..]), Some(b"value"), Some(&long)] {
            let (key, value) = (hasher.key(b"some key"), value.map(StoredValue::raw));
            let stored = StoredEntry { key, value, expires_at: 1_000_000 };
            let head = head(key.hash(), READ, 3, checksum(&stored, seed));
            let header = HeaderBytes::entry(key.bytes(), value, 1_000_000);
            let parts = [&head[..], header.as_slice(), key.bytes(), value.map_or(&[], |value| value.bytes)];
            let entry = parts.concat();
            let whole = CheckedEntry { hash: key.hash(), len: entry.len(), flags: READ };
            assert_eq!(check(&entry, hasher, seed), Some(whole));
            assert_eq!(check(&entry, hasher, seed + 1), None);
            assert_eq!(check(&entry[..entry.len() - 1], hasher, seed), None);
            for bit in 0..entry.len() * 8 {
                let mut other = entry.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                // Flags and counts change while the entry lives.
                let may_change = FLAGS_AT * 8..RECORD_AT * 8;
                assert_eq!(check(&other, hasher, seed).is_some(), may_change.contains(&bit), "bit {bit}");
            }
        }
    }
}
