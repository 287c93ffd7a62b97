//! A key with its hash.

use crate::limits::{HASH_BITS, SHARDS};
use std::hash::{BuildHasher, RandomState};
use twox_hash::XxHash3_64;

/// The 47 bits of a key's hash that the cache knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(u64);

/// Hashes keys for one cache, under a secret seed: a client that chooses keys cannot choose colliding ones. The seed is
/// drawn when a cache is made and kept with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHasher {
    seed: u64,
}

impl KeyHasher {
    /// The hasher of caches with this seed.
    pub fn with_seed(seed: u64) -> Self {
        Self { seed }
    }

    /// A hasher with a random seed.
    pub(crate) fn random() -> Self {
        Self::with_seed(RandomState::new().hash_one(0))
    }

    /// Hashes the bytes of a key.
    #[inline]
    pub fn hash(self, bytes: &[u8]) -> KeyHash {
        KeyHash(XxHash3_64::oneshot_with_seed(self.seed, bytes) >> (64 - HASH_BITS))
    }

    /// A key with its hash.
    #[inline]
    pub fn key(self, bytes: &[u8]) -> Key<'_> {
        Key { hash: self.hash(bytes), bytes }
    }
}

impl KeyHash {
    /// The shard: the top bits.
    pub(crate) fn shard(self) -> usize {
        (self.0 >> (HASH_BITS - SHARDS.ilog2())) as usize
    }

    /// The partition, of a power of two of `partitions`: the lowest bits, which a partition's index does not use.
    pub(crate) fn partition(self, partitions: usize) -> usize {
        self.0 as usize & (partitions - 1)
    }

    /// The `bits` bits below those that choose the shard.
    pub(crate) fn below_shard(self, bits: u32) -> u64 {
        (self.0 >> (HASH_BITS - SHARDS.ilog2() - bits)) & ((1 << bits) - 1)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The hash's 47 bits.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The entry that the summary of a segment has for a record of this hash.
    pub(crate) fn summary_entry(self, kind: RecordKind) -> u64 {
        self.0 << 1 | kind as u64
    }
}

/// Packs a key of at most 8 bytes into a word; keys of one length have different words. `None`: the key is longer.
#[inline]
pub(crate) fn short_word(bytes: &[u8]) -> Option<u64> {
    // Two loads that overlap, rather than one for each byte.
    match bytes.len() {
        4..=8 => {
            let (first, last) = (bytes.first_chunk()?, bytes.last_chunk()?);
            Some(u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32)
        }
        2..=3 => {
            let (first, last) = (bytes.first_chunk()?, bytes.last_chunk()?);
            Some(u64::from(u16::from_le_bytes(*first)) | u64::from(u16::from_le_bytes(*last)) << 16)
        }
        1 => Some(u64::from(bytes[0])),
        0 => Some(0),
        _ => None,
    }
}

/// A record's kind, as in its summary entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// It holds a key and a value.
    Entry = 0,
    /// It voids the records of its hash that came before it.
    Deletion = 1,
}

/// The hash and the kind of a record.
pub(crate) fn parse_summary_entry(entry: u64) -> (KeyHash, RecordKind) {
    (KeyHash(entry >> 1), if entry & 1 == 0 { RecordKind::Entry } else { RecordKind::Deletion })
}

/// A key, hashed once, for the cache whose [`KeyHasher`] made it. Another cache must not be asked for it: it would
/// not find the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    hash: KeyHash,
    bytes: &'a [u8],
}

impl<'a> Key<'a> {
    /// A key with the hash that it has.
    pub(crate) fn hashed(hash: KeyHash, bytes: &'a [u8]) -> Self {
        Self { hash, bytes }
    }

    /// The key itself.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its hash.
    #[inline]
    pub fn hash(&self) -> KeyHash {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_short_key_has_all_its_bits() {
        for len in 0..12 {
            let key: Vec<u8> = (1..=len as u8).collect();
            assert_eq!(short_word(&key).is_some(), len <= 8);
            for (i, bit) in (0..len).flat_map(|i| (0..8).map(move |bit| (i, bit))) {
                let mut other = key.clone();
                other[i] ^= 1 << bit;
                assert!(len > 8 || short_word(&other) != short_word(&key));
            }
        }
    }
}
