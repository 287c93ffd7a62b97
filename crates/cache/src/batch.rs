//! A batch's keys grouped by shard.

use crate::key::KeyHash;
use crate::limits::SHARDS;

/// A key of the batch, by its hash.
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyInBatch {
    pub hash: KeyHash,
    /// Its place in the batch.
    pub key: u32,
}

/// The keys of a batch, grouped by shard, each group in the order of the batch: a shard is locked once, and what its
/// lookups touch stays in the processor's caches.
pub(crate) struct KeysByShard {
    keys: Vec<KeyInBatch>,
    /// The end of each shard's keys.
    ends: [usize; SHARDS],
}

impl Default for KeysByShard {
    fn default() -> Self {
        Self { keys: Vec::new(), ends: [0; SHARDS] }
    }
}

impl KeysByShard {
    /// Replaces the content by keys whose places in the batch begin at `start`.
    pub fn deal(&mut self, batch: impl Iterator<Item = KeyHash> + Clone, start: u32) {
        let mut counts = [0; SHARDS];
        batch.clone().for_each(|hash| counts[hash.shard()] += 1);
        let mut next = [0; SHARDS];
        let mut end = 0;
        for shard in 0..SHARDS {
            next[shard] = end;
            end += counts[shard];
            self.ends[shard] = end;
        }
        self.keys.resize(end, KeyInBatch::default());
        for (hash, key) in batch.zip(start..) {
            let at = &mut next[hash.shard()];
            self.keys[*at] = KeyInBatch { hash, key };
            *at += 1;
        }
    }

    /// A batch dealt out once.
    pub fn of_batch(batch: impl Iterator<Item = KeyHash> + Clone) -> Self {
        let mut this = Self::default();
        this.deal(batch, 0);
        this
    }

    /// The shards that have keys, with their keys.
    pub fn shards(&self) -> impl Iterator<Item = (usize, &[KeyInBatch])> {
        (0..SHARDS).map(|shard| (shard, self.keys_of(shard))).filter(|(_, asked)| !asked.is_empty())
    }

    /// The keys of a shard.
    pub fn keys_of(&self, shard: usize) -> &[KeyInBatch] {
        let start = if shard == 0 { 0 } else { self.ends[shard - 1] };
        &self.keys[start..self.ends[shard]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyHasher;

    #[test]
    fn every_key_is_with_its_shard_in_the_order_of_the_batch() {
        let mut dealt = KeysByShard::default();
        for keys in [1000u32, 3, 0, 70] {
            let hashes: Vec<KeyHash> =
                (0..keys).map(|i| KeyHasher::with_seed(0).hash(&(i % 50).to_le_bytes())).collect();
            dealt.deal(hashes.iter().copied(), 7);
            let mut all = 0;
            for shard in 0..SHARDS {
                let part = dealt.keys_of(shard);
                assert!(part.is_sorted_by_key(|asked| asked.key));
                assert!(part.iter().all(|a| a.hash.shard() == shard && a.hash == hashes[a.key as usize - 7]));
                all += part.len();
            }
            assert_eq!(all, keys as usize);
        }
    }
}
