//! Records in the payload of a block. See docs/format.md, "Records".
//!
//! An entry: flags (u8: bits 0-1 kind, bits 2-5 codec), expiry (u32), key length and value length
//! (LEB128), key, value. A deletion: flags, 48 bits of the key's hash. Little endian.

use crate::key::{KeyHash, WordKind};
use crate::limits::HASH_BITS;

const KIND_VALUE: u8 = 0;
const KIND_NEGATIVE: u8 = 1;
const KIND_DELETION: u8 = 2;
const KIND_MASK: u8 = 3;

/// Longest header: flags, expiry, two lengths of up to 5 bytes.
pub(crate) const HEADER_SIZE_MAX: usize = 15;
pub(crate) const DELETION_SIZE: usize = 7;

/// The header of a record, ready to be written.
pub(crate) struct HeaderBytes {
    bytes: [u8; HEADER_SIZE_MAX],
    len: usize,
}

impl HeaderBytes {
    pub fn entry(key: &[u8], value: Option<&[u8]>, expires_at: u32) -> Self {
        let mut this = Self { bytes: [0; HEADER_SIZE_MAX], len: 5 };
        this.bytes[0] = if value.is_some() { KIND_VALUE } else { KIND_NEGATIVE };
        this.bytes[1..5].copy_from_slice(&expires_at.to_le_bytes());
        this.push_varint(key.len() as u32);
        this.push_varint(value.map_or(0, <[u8]>::len) as u32);
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

/// One record as far as it lies in the bytes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Entry(EntryRecord<'a>),
    Deletion(KeyHash),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryRecord<'a> {
    pub negative: bool,
    pub expires_at: u32,
    pub key: &'a [u8],
    /// Where the value begins in the record, and how long it is.
    value_at: usize,
    value_len: usize,
    /// From the record's start to the end of what is at hand.
    bytes: &'a [u8],
}

impl<'a> EntryRecord<'a> {
    /// The value; `None`: negative, or not all of it is at hand.
    pub fn value(&self) -> Option<&'a [u8]> {
        if self.negative { None } else { self.bytes.get(self.value_at..self.value_at + self.value_len) }
    }

    /// Bytes of the whole record, at hand or not.
    pub fn len(&self) -> usize {
        self.value_at + self.value_len
    }

    /// The record as it was written, as far as it is at hand.
    pub fn as_bytes(&self) -> &'a [u8] {
        &self.bytes[..self.len().min(self.bytes.len())]
    }

    pub fn is_whole(&self) -> bool {
        self.len() <= self.bytes.len()
    }
}

impl Record<'_> {
    pub fn word(&self) -> u64 {
        match self {
            Record::Entry(entry) => KeyHash::of(entry.key).word(WordKind::Entry),
            Record::Deletion(hash) => hash.word(WordKind::Deletion),
        }
    }
}

/// Parses the record that begins `bytes`; `None`: the bytes are no record.
#[inline]
pub(crate) fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    let flags = *bytes.first()?;
    if flags & KIND_MASK == KIND_DELETION {
        let mut hash = [0; 8];
        hash[..6].copy_from_slice(bytes.get(1..7)?);
        let bits = u64::from_le_bytes(hash);
        return (bits >> HASH_BITS == 0).then(|| Record::Deletion(KeyHash::from_bits(bits)));
    }
    if flags > KIND_NEGATIVE {
        return None;
    }
    let expires_at = u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?);
    let (at, key_len, value_len) = match bytes.get(5..7)? {
        [key_len @ 0..0x80, value_len @ 0..0x80] => (7, usize::from(*key_len), usize::from(*value_len)),
        _ => {
            let mut at = 5;
            let key_len = varint(bytes, &mut at)?;
            let value_len = varint(bytes, &mut at)?;
            (at, key_len, value_len)
        }
    };
    let key = bytes.get(at..at.checked_add(key_len)?)?;
    let negative = flags & KIND_MASK == KIND_NEGATIVE;
    Some(Record::Entry(EntryRecord { negative, expires_at, key, value_at: at + key_len, value_len, bytes }))
}

/// Walks the records of a payload. The last one may reach into the blocks that follow.
pub(crate) struct Records<'a> {
    payload: &'a [u8],
    left: u16,
}

impl<'a> Records<'a> {
    pub fn new(payload: &'a [u8], count: u16) -> Self {
        Self { payload, left: count }
    }
}

impl<'a> Iterator for Records<'a> {
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

/// The newest entry of `key` in a block: the last one, for a key may be written twice into it.
#[inline]
pub(crate) fn find_last<'a>(payload: &'a [u8], count: u16, key: &[u8]) -> Option<EntryRecord<'a>> {
    let print = print_of(key);
    let mut found = None;
    for record in Records::new(payload, count) {
        if let Record::Entry(entry) = record
            && print_of(entry.key) == print
            && entry.key == key
        {
            found = Some(entry);
        }
    }
    found
}

/// A few bits of a key that are cheap to compare: its length, its first and its last bytes.
#[inline]
fn print_of(key: &[u8]) -> u32 {
    let ends = match (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        (Some(first), Some(last)) => u32::from_le_bytes(*first) ^ u32::from_le_bytes(*last).rotate_left(16),
        _ => key.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
    };
    ends ^ (key.len() as u32) << 24
}

/// Where the entries of a block begin, for looking several keys up in it: chains of entries whose
/// prints fall together, the newest first.
#[derive(Default)]
pub(crate) struct Directory {
    /// Of each chain: 1 + its newest entry, or 0.
    heads: Vec<u16>,
    entries: Vec<Listed>,
}

struct Listed {
    print: u32,
    start: u32,
    /// As a head.
    older: u16,
}

impl Directory {
    /// Replaces what it knew by the entries of this block.
    pub fn fill(&mut self, payload: &[u8], count: u16) {
        self.heads.clear();
        self.heads.resize(usize::from(count).next_power_of_two(), 0);
        self.entries.clear();
        self.entries.reserve(usize::from(count));
        for record in Records::new(payload, count) {
            if let Record::Entry(entry) = record {
                let print = print_of(entry.key);
                let start = (payload.len() - entry.bytes.len()) as u32;
                let chain = self.chain(print);
                let older = std::mem::replace(&mut self.heads[chain], self.entries.len() as u16 + 1);
                self.entries.push(Listed { print, start, older });
            }
        }
    }

    #[inline]
    fn chain(&self, print: u32) -> usize {
        print.wrapping_mul(0x9E37_79B1) as usize >> 16 & (self.heads.len() - 1)
    }

    /// As [`find_last`], in the block it was filled from.
    #[inline]
    pub fn find<'a>(&self, payload: &'a [u8], key: &[u8]) -> Option<EntryRecord<'a>> {
        let print = print_of(key);
        let mut next = self.heads[self.chain(print)];
        while let Some(at) = usize::from(next).checked_sub(1) {
            let listed = &self.entries[at];
            if listed.print == print
                && let Some(Record::Entry(entry)) = parse(&payload[listed.start as usize..])
                && entry.key == key
            {
                return Some(entry);
            }
            next = listed.older;
        }
        None
    }
}

/// The words of the records that begin in a block, as the log asks for them.
pub(crate) fn words_of(payload: &[u8], count: u16, words: &mut Vec<u64>) {
    words.extend(Records::new(payload, count).map(|record| record.word()));
}
