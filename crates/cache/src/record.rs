//! Records in the payload of a block. See docs/format.md, "Records".
//!
//! An entry: flags (u8: bits 0-1 kind, bits 2-5 codec, [`crate::codec`]), expiry (u32), key length and value length
//! (LEB128), key, value. A deletion: flags, 48 bits of the key's hash. Little endian.

use crate::codec::{CODEC_MASK, Codec, StoredValue};
use crate::key::{KeyHash, KeyHasher, RecordKind, short_word};
use crate::limits::HASH_BITS;
use std::collections::HashSet;

const KIND_VALUE: u8 = 0;
const KIND_NEGATIVE: u8 = 1;
const KIND_DELETION: u8 = 2;
const KIND_MASK: u8 = 3;

/// Longest header: flags, expiry, two lengths of up to 5 bytes.
pub(crate) const HEADER_SIZE_MAX: usize = 15;
pub(crate) const DELETION_SIZE: usize = 7;

/// The flags of an entry's record.
#[inline]
pub(crate) fn flags_of(value: Option<StoredValue<'_>>) -> u8 {
    value.map_or(KIND_NEGATIVE, |value| KIND_VALUE | value.codec.flags())
}

/// The header of a record, ready to be written.
pub(crate) struct HeaderBytes {
    bytes: [u8; HEADER_SIZE_MAX],
    len: usize,
}

impl HeaderBytes {
    pub fn entry(key: &[u8], value: Option<StoredValue<'_>>, expires_at: u32) -> Self {
        let mut this = Self { bytes: [0; HEADER_SIZE_MAX], len: 5 };
        let flags = flags_of(value);
        let value_len = value.map_or(0, |value| value.bytes.len());
        if key.len() < 0x80 && value_len < 0x80 {
            // As one word: a copy soon after would otherwise stall on bytes that were stored one by one.
            let lengths = (key.len() | value_len << 8) as u64;
            let word = u64::from(flags) | u64::from(expires_at) << 8 | lengths << 40;
            this.bytes[..8].copy_from_slice(&word.to_le_bytes());
            this.len = SHORT_SIZE;
            return this;
        }
        this.bytes[0] = flags;
        this.bytes[1..5].copy_from_slice(&expires_at.to_le_bytes());
        this.push_varint(key.len() as u32);
        this.push_varint(value_len as u32);
        this
    }

    pub fn deletion(hash: KeyHash) -> Self {
        let mut this = Self { bytes: [0; HEADER_SIZE_MAX], len: DELETION_SIZE };
        this.bytes[0] = KIND_DELETION;
        this.bytes[1..7].copy_from_slice(&hash.to_bits().to_le_bytes()[..6]);
        this
    }

    fn push_varint(&mut self, mut n: u32) {
        while n >= 0x80 {
            self.bytes[self.len] = n as u8 | 0x80;
            self.len += 1;
            n >>= 7;
        }
        self.bytes[self.len] = n as u8;
        self.len += 1;
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[inline]
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut n = 0usize;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        n |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

/// One record, as far as it lies in the given bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Entry(EntryRecord<'a>),
    Deletion(KeyHash),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryRecord<'a> {
    pub negative: bool,
    codec: Codec,
    pub expires_at: u32,
    pub key: &'a [u8],
    /// The value's offset in the record, and its length.
    value_at: usize,
    value_len: usize,
    /// From the record's start to the end of the given bytes.
    bytes: &'a [u8],
}

impl<'a> EntryRecord<'a> {
    /// The value; `None`: negative, or it is incomplete.
    pub fn value(&self) -> Option<StoredValue<'a>> {
        if self.negative {
            return None;
        }
        let bytes = self.bytes.get(self.value_at..self.value_at + self.value_len)?;
        Some(StoredValue { codec: self.codec, bytes })
    }

    /// The value's offset in the record.
    pub fn value_at(&self) -> usize {
        self.value_at
    }

    /// Bytes of the whole record, even if it is incomplete.
    pub fn len(&self) -> usize {
        self.value_at + self.value_len
    }

    /// The record as it was written, as far as it is given.
    pub fn as_bytes(&self) -> &'a [u8] {
        &self.bytes[..self.len().min(self.bytes.len())]
    }

    pub fn is_expired(&self, now: u32) -> bool {
        self.expires_at != 0 && now > self.expires_at
    }

    pub fn is_whole(&self) -> bool {
        self.len() <= self.bytes.len()
    }
}

impl Record<'_> {
    pub fn summary_entry(&self, hasher: KeyHasher) -> u64 {
        match self {
            Record::Entry(entry) => hasher.hash(entry.key).summary_entry(RecordKind::Entry),
            Record::Deletion(hash) => hash.summary_entry(RecordKind::Deletion),
        }
    }
}

/// Bits of the first 8 bytes that are zero in an entry whose lengths take a byte each: all flags except the codec and
/// the lowest bit, and the top bits of the lengths.
const SHORT: u64 = u64::from_le_bytes([!(KIND_NEGATIVE | CODEC_MASK), 0, 0, 0, 0, 0x80, 0x80, 0]);

/// Bytes of such an entry's header.
const SHORT_SIZE: usize = 7;

/// The first bytes of such an entry; `None`: it is not one.
#[inline(always)]
fn short_head(bytes: &[u8]) -> Option<&[u8; 8]> {
    bytes.first_chunk().filter(|head| u64::from_le_bytes(**head) & SHORT == 0)
}

/// Parses a record if it is a short one: an entry whose lengths take a byte each, of a value that is not compressed.
#[inline(always)]
pub(crate) fn parse_short(bytes: &[u8]) -> Option<EntryRecord<'_>> {
    let head = short_head(bytes).filter(|head| head[0] & CODEC_MASK == 0)?;
    let value_at = SHORT_SIZE + usize::from(head[5]);
    Some(EntryRecord {
        negative: head[0] & KIND_NEGATIVE != 0,
        codec: Codec::None,
        expires_at: u32::from_le_bytes([head[1], head[2], head[3], head[4]]),
        key: bytes.get(SHORT_SIZE..value_at)?,
        value_at,
        value_len: usize::from(head[6]),
        bytes,
    })
}

/// The header of an entry's record.
struct RecordHeader {
    flags: u8,
    expires_at: u32,
    key_at: usize,
    key_len: usize,
    value_len: usize,
}

/// Parses the record at the start of `bytes`; `None`: there is no valid record.
#[inline(always)]
pub(crate) fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    // Field by field, which stay in registers: bytes that were just stored one by one are slow to load as a word.
    let (flags, expires_at, key_at, key_len, value_len) = if let Some(head) = short_head(bytes) {
        let expires_at = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        (head[0], expires_at, SHORT_SIZE, usize::from(head[5]), usize::from(head[6]))
    } else if bytes.first()? & KIND_MASK == KIND_DELETION {
        return parse_deletion(bytes);
    } else {
        let RecordHeader { flags, expires_at, key_at, key_len, value_len } = parse_header(bytes)?;
        (flags, expires_at, key_at, key_len, value_len)
    };
    let value_at = key_at.checked_add(key_len)?;
    Some(Record::Entry(EntryRecord {
        negative: flags & KIND_NEGATIVE != 0,
        codec: Codec::of_flags(flags),
        expires_at,
        key: bytes.get(key_at..value_at)?,
        value_at,
        value_len,
        bytes,
    }))
}

fn parse_deletion(bytes: &[u8]) -> Option<Record<'_>> {
    let mut hash = [0; 8];
    hash[..6].copy_from_slice(bytes.get(1..DELETION_SIZE)?);
    let bits = u64::from_le_bytes(hash);
    (bits >> HASH_BITS == 0).then(|| Record::Deletion(KeyHash::from_bits(bits)))
}

/// Parses the header of an entry with lengths of any size.
fn parse_header(bytes: &[u8]) -> Option<RecordHeader> {
    let flags = *bytes.first()?;
    if flags & !CODEC_MASK > KIND_NEGATIVE {
        return None;
    }
    let expires_at = u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?);
    let mut key_at = 5;
    let key_len = varint(bytes, &mut key_at)?;
    let value_len = varint(bytes, &mut key_at)?;
    Some(RecordHeader { flags, expires_at, key_at, key_len, value_len })
}

/// Walks the records of a payload. The last one may reach into the blocks that follow.
pub(crate) struct RecordIter<'a> {
    payload: &'a [u8],
    left: u16,
}

impl<'a> RecordIter<'a> {
    pub fn new(payload: &'a [u8], count: u16) -> Self {
        Self { payload, left: count }
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        self.left = self.left.checked_sub(1)?;
        let record = parse(self.payload)?;
        let len = match &record {
            Record::Entry(entry) => entry.len(),
            Record::Deletion(_) => DELETION_SIZE,
        };
        self.payload = self.payload.get(len..).unwrap_or(&[]);
        Some(record)
    }
}

/// Walks the entries of a payload, like [`RecordIter`], but yields only where each begins, and its key.
pub(crate) struct Keys<'a> {
    payload: &'a [u8],
    at: usize,
    left: u16,
}

impl<'a> Keys<'a> {
    pub fn new(payload: &'a [u8], count: u16) -> Self {
        Self { payload, at: 0, left: count }
    }

    /// The next entry, if the next record is not a short one.
    #[inline(never)]
    fn next_long(&mut self) -> Option<(usize, &'a [u8])> {
        loop {
            let start = self.at;
            match parse(self.payload.get(start..)?)? {
                Record::Entry(entry) => {
                    self.at += entry.len();
                    return Some((start, entry.key));
                }
                Record::Deletion(_) => self.at += DELETION_SIZE,
            }
            self.left = self.left.checked_sub(1)?;
        }
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = (usize, &'a [u8]);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        self.left = self.left.checked_sub(1)?;
        let start = self.at;
        let Some((key, len)) = self.payload.get(start..).and_then(short_key) else { return self.next_long() };
        self.at += len;
        Some((start, key))
    }
}

/// The key and the length of an entry whose lengths take a byte each.
#[inline(always)]
fn short_key(record: &[u8]) -> Option<(&[u8], usize)> {
    let head = short_head(record)?;
    let value_at = SHORT_SIZE + usize::from(head[5]);
    Some((record.get(SHORT_SIZE..value_at)?, value_at + usize::from(head[6])))
}

/// The newest entry of `key` in a block: the last one, for a key may be written twice into it.
#[inline]
pub(crate) fn find_last<'a>(payload: &'a [u8], count: u16, key: &[u8]) -> Option<EntryRecord<'a>> {
    let (at, _) = Keys::new(payload, count).filter(|(_, other)| same_bytes(other, key)).last()?;
    match parse(&payload[at..]) {
        Some(Record::Entry(entry)) => Some(entry),
        _ => unreachable!("it was an entry just now"),
    }
}

/// The entries of a payload, except those followed by one of the same key: these are the ones that the index refers to.
pub(crate) fn newest_entries(payload: &[u8], count: u16) -> Vec<EntryRecord<'_>> {
    let entries = RecordIter::new(payload, count).filter_map(|record| match record {
        Record::Entry(entry) => Some(entry),
        Record::Deletion(_) => None,
    });
    let mut newest: Vec<_> = entries.collect();
    let mut later = HashSet::with_capacity(newest.len());
    newest.reverse();
    newest.retain(|entry| later.insert(entry.key));
    newest.reverse();
    newest
}

/// Whether two keys are equal. Keys of up to 8 bytes are compared without a call.
#[inline]
pub(crate) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match (short_word(a), short_word(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        }
}

/// Makes the summary entries of the records that begin in a block. The log's salt is the seed of hashes.
pub(crate) fn summary_entries_of(salt: u64, payload: &[u8], count: u16, summary_entries: &mut Vec<u64>) {
    let hasher = KeyHasher::with_seed(salt);
    summary_entries.extend(RecordIter::new(payload, count).map(|record| record.summary_entry(hasher)));
}
