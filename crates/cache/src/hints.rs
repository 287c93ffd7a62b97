//! Places that were read and found not to hold a key although the index suggested them.
//!
//! Without them, two keys with one tag would drive each other out of the index for ever: a put takes
//! over whatever looks like an older version of its key. A hint says: that one is not.

use crate::key::KeyHash;
use crate::limits::HINTS_PER_SHARD;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Hint {
    hash: KeyHash,
    place: u64,
    sequence: u64,
}

/// The last few hints of a shard, oldest first to go.
#[derive(Default)]
pub(crate) struct Hints {
    ring: Vec<Hint>,
    next: usize,
}

impl Hints {
    /// Block `place`, as written in segment `sequence`, does not hold the key with this hash.
    pub fn add(&mut self, hash: KeyHash, place: u64, sequence: u64) {
        if self.contains(hash, place, sequence) {
            return;
        }
        let hint = Hint { hash, place, sequence };
        if self.ring.len() < HINTS_PER_SHARD {
            self.ring.push(hint);
        } else {
            self.ring[self.next] = hint;
            self.next = (self.next + 1) % HINTS_PER_SHARD;
        }
    }

    pub fn contains(&self, hash: KeyHash, place: u64, sequence: u64) -> bool {
        self.ring.contains(&Hint { hash, place, sequence })
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn bytes_allocated(&self) -> usize {
        self.ring.capacity() * size_of::<Hint>()
    }
}
