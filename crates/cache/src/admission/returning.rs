//! Keys that were here lately: two generations of a Bloom filter.

use crate::key::Key;
use crate::limits::{RETURNING_BITS_MIN, RETURNING_FLASH_BYTES_PER_BIT};

/// Bits of a generation for each key that it takes: with two bits set by a key, one key in 23 is taken
/// for another when the generation is full.
const BITS_PER_KEY: u64 = 8;

pub(super) struct Returning {
    current: Vec<u64>,
    previous: Vec<u64>,
    keys: u64,
}

impl Returning {
    pub fn new(flash_bytes: u64) -> Self {
        let bits = (flash_bytes / RETURNING_FLASH_BYTES_PER_BIT).max(RETURNING_BITS_MIN);
        let words = vec![0; bits.div_ceil(64) as usize];
        Self { current: words.clone(), previous: words, keys: 0 }
    }

    fn bits(&self) -> u64 {
        self.current.len() as u64 * 64
    }

    /// Whether the key came here before, and remembers that it did now.
    pub fn seen_before(&mut self, key: Key<'_>) -> bool {
        let mixed = key.hash().to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bits = self.bits();
        let places = [mixed >> 32, mixed & 0xFFFF_FFFF].map(|half| ((half * bits) >> 32) as usize);
        let has = |words: &[u64]| places.iter().all(|p| words[p / 64] >> (p % 64) & 1 == 1);
        if has(&self.current) {
            return true;
        }
        let seen = has(&self.previous);
        places.iter().for_each(|p| self.current[p / 64] |= 1 << (p % 64));
        self.keys += 1;
        if self.keys * BITS_PER_KEY >= bits {
            std::mem::swap(&mut self.current, &mut self.previous);
            self.current.fill(0);
            self.keys = 0;
        }
        seen
    }

    pub fn bytes_allocated(&self) -> usize {
        (self.current.capacity() + self.previous.capacity()) * size_of::<u64>()
    }
}
