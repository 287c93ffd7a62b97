//! A key with its hash.

use crate::limits::{HASH_BITS, SHARDS};
use xxhash_rust::xxh3::xxh3_64;

/// The 47 bits of a key's hash that the cache knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Hashes the bytes of a key.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_64(bytes) >> (64 - HASH_BITS))
    }

    /// The shard: the top bits.
    pub(crate) fn shard(self) -> usize {
        (self.0 >> (HASH_BITS - SHARDS.ilog2())) as usize
    }

    /// The `bits` bits below those that choose the shard.
    pub(crate) fn below_shard(self, bits: u32) -> u64 {
        (self.0 >> (HASH_BITS - SHARDS.ilog2() - bits)) & ((1 << bits) - 1)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) fn word(self, kind: WordKind) -> u64 {
        self.0 << 1 | kind as u64
    }
}

/// What a word in the log's summaries stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    Entry = 0,
    Deletion = 1,
}

pub(crate) fn parse_word(word: u64) -> (KeyHash, WordKind) {
    (KeyHash(word >> 1), if word & 1 == 0 { WordKind::Entry } else { WordKind::Deletion })
}

/// A key, hashed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    hash: KeyHash,
    bytes: &'a [u8],
}

impl<'a> Key<'a> {
    /// Hashes `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { hash: KeyHash::of(bytes), bytes }
    }

    /// A key with the hash that it has.
    pub(crate) fn hashed(hash: KeyHash, bytes: &'a [u8]) -> Self {
        debug_assert!(hash == KeyHash::of(bytes));
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
