//! Several keys looked up in one block. The keys are few and the records many, so the keys are put in a table, and the
//! records are walked once.

use crate::key::short_word;
use crate::record::{EntryRecord, Keys, Record, parse, same_bytes};

/// Many more chains than keys usually searched in a block, so that most records, which are none of these, meet an empty
/// chain.
const CHAINS: usize = 1024;

/// The search for several keys in one block.
pub(crate) struct Search {
    /// By chain: 1 + the key that was added to it last, or 0. All that are not 0 are chains of `wanted`.
    heads: [u32; CHAINS],
    wanted: Vec<SearchedKey>,
}

#[derive(Clone, Copy)]
struct SearchedKey {
    digest: KeyDigest,
    /// The key added to the chain before it, encoded as in `heads`.
    next: u32,
    /// 1 + where the newest entry of the key begins in the payload, or 0.
    found: u32,
}

impl Default for Search {
    fn default() -> Self {
        Self { heads: [0; CHAINS], wanted: Vec::new() }
    }
}

impl Search {
    /// Searches for the keys `key(i)`, some of which may be equal; `digests` are their digests.
    #[inline]
    pub fn run<'k>(
        &mut self,
        payload: &[u8],
        count: u16,
        digests: impl Iterator<Item = KeyDigest>,
        key: impl Fn(usize) -> &'k [u8],
    ) {
        for wanted in self.wanted.drain(..) {
            self.heads[wanted.digest.chain()] = 0;
        }
        for (i, digest) in digests.enumerate() {
            let next = std::mem::replace(&mut self.heads[digest.chain()], i as u32 + 1);
            self.wanted.push(SearchedKey { digest, next, found: 0 });
        }
        for (at, key_there) in Keys::new(payload, count) {
            let digest = KeyDigest::of(key_there);
            let mut next = self.heads[digest.chain()];
            while let Some(i) = (next as usize).checked_sub(1) {
                let wanted = &mut self.wanted[i];
                if wanted.digest == digest && same_bytes(key(i), key_there) {
                    // The last one counts.
                    wanted.found = at as u32 + 1;
                }
                next = wanted.next;
            }
        }
    }

    /// Finds what [`find_last`](crate::record::find_last) does for the `i`-th key in the payload that was searched.
    #[inline(always)]
    pub fn found<'a>(&self, payload: &'a [u8], i: usize) -> Option<EntryRecord<'a>> {
        let at = self.wanted[i].found.checked_sub(1)?;
        match parse(&payload[at as usize..]) {
            Some(Record::Entry(entry)) => Some(entry),
            _ => unreachable!("it was parsed before"),
        }
    }
}

/// A few bits derived from the whole key, cheap to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyDigest(u16);

impl KeyDigest {
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        let mix = |digest: u64, word: u64| (digest.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if let Some(word) = short_word(key) {
            return Self((mix(key.len() as u64, word) >> 48) as u16);
        }
        let (words, rest) = key.as_chunks::<8>();
        let digest =
            words.iter().fold(key.len() as u64, |digest, word| mix(digest, u64::from_le_bytes(*word)));
        Self((rest.iter().fold(digest, |digest, byte| mix(digest, u64::from(*byte))) >> 48) as u16)
    }

    #[inline]
    fn chain(self) -> usize {
        usize::from(self.0) / (0x1_0000 / CHAINS)
    }
}
