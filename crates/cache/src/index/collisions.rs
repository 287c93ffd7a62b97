//! Blocks that were read and found not to hold a key although the index suggested them.
//!
//! Without them, two keys with one tag would drive each other out of the index for ever: a put replaces every entry
//! that looks like an older version of its key. A known collision is spared.

use crate::key::Key;
use crate::limits::COLLISIONS_PER_SHARD;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use twox_hash::XxHash3_64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Collision {
    identity: u64,
    block: u64,
    sequence: u64,
}

/// Distinguishes keys that share the cache's hash: among 10^8 keys some do. An older version mistaken for another key's
/// entry would stay reachable, so the seed is secret from clients that choose keys.
fn identity(key: Key<'_>) -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    XxHash3_64::oneshot_with_seed(*SEED, key.bytes())
}

/// The last few collisions that lookups of a shard found; a new one replaces the oldest one.
#[derive(Default)]
pub(crate) struct CollisionFilter {
    ring: Vec<Collision>,
    next: usize,
}

impl CollisionFilter {
    /// Notes that block `block`, as written in segment `sequence`, does not hold this key.
    pub fn add(&mut self, key: Key<'_>, block: u64, sequence: u64) {
        let collision = Collision { identity: identity(key), block, sequence };
        if self.ring.contains(&collision) {
            return;
        }
        if self.ring.len() < COLLISIONS_PER_SHARD {
            self.ring.push(collision);
        } else {
            self.ring[self.next] = collision;
            self.next = (self.next + 1) % COLLISIONS_PER_SHARD;
        }
    }

    pub fn contains(&self, key: Key<'_>, block: u64, sequence: u64) -> bool {
        let mut candidates =
            self.ring.iter().filter(|h| h.block == block && h.sequence == sequence).peekable();
        candidates.peek().is_some() && {
            let identity = identity(key);
            candidates.any(|collision| collision.identity == identity)
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn bytes_allocated(&self) -> usize {
        self.ring.capacity() * size_of::<Collision>()
    }
}
