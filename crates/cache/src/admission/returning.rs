//! Keys seen lately: two generations of a Bloom filter.

use crate::key::Key;
use crate::limits::{RETURNING_BITS_MIN, RETURNING_FLASH_BYTES_PER_BIT, RETURNING_FLASH_DIVISOR};

/// Bits of a generation for each key: each key sets two, so when the generation is full, one key in 6 is a false
/// positive. Remembering more keys is worth more than being sure of each.
const BITS_PER_KEY: u64 = 4;

/// A key counts as new again about when it would have left flash since it was seen: remembering keys for ever would
/// admit everything. If objects are small, the number of keys ends a generation sooner.
pub(super) struct Returning {
    current: Vec<u64>,
    previous: Vec<u64>,
    keys: u64,
    /// Bytes put since the current generation began.
    bytes: u64,
    /// A generation ends once this many of the bytes put have gone to flash.
    flash_bytes: u64,
}

impl Returning {
    pub fn new(flash_bytes: u64) -> Self {
        let bits = (flash_bytes / RETURNING_FLASH_BYTES_PER_BIT).max(RETURNING_BITS_MIN);
        let words = vec![0; bits.div_ceil(64) as usize];
        let flash_bytes = flash_bytes / RETURNING_FLASH_DIVISOR;
        Self { current: words.clone(), previous: words, keys: 0, bytes: 0, flash_bytes }
    }

    fn bits(&self) -> u64 {
        self.current.len() as u64 * 64
    }

    /// Notes that an object of `bytes` bytes was put. `admitted`: the share of the bytes put that goes to flash.
    pub fn on_put(&mut self, bytes: u64, admitted: f64) {
        self.bytes += bytes;
        if self.bytes as f64 * admitted > self.flash_bytes as f64 {
            self.next_generation();
        }
    }

    fn next_generation(&mut self) {
        std::mem::swap(&mut self.current, &mut self.previous);
        self.current.fill(0);
        (self.keys, self.bytes) = (0, 0);
    }

    /// Whether the key was seen before; remembers it.
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
            self.next_generation();
        }
        seen
    }

    pub fn bytes_allocated(&self) -> usize {
        (self.current.capacity() + self.previous.capacity()) * size_of::<u64>()
    }
}
