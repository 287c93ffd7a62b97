//! A filter that rules out that a record looks like another one of a long block, so that not all are compared.

use super::sharing::SharingRule;
use crate::limits::{MARK_BITS_PER_RECORD, MARKED_RECORDS_MIN};

/// A bit for each mark, a hash of a record's distinguishing bits. Empty while the block has few records.
#[derive(Default)]
pub(super) struct Marks {
    bits: Vec<u64>,
}

impl Marks {
    pub fn bytes_allocated(&self) -> usize {
        self.bits.capacity() * size_of::<u64>()
    }

    /// Begins a new block.
    pub fn clear(&mut self) {
        self.bits.clear();
    }

    /// Whether no record of the block looks like this one; `false`: one may.
    pub fn exclude(&self, rule: SharingRule, entry: u64) -> bool {
        !self.bits.is_empty() && {
            let bit = self.bit(rule, entry);
            self.bits[bit / 64] >> (bit % 64) & 1 == 0
        }
    }

    /// Notes a record that was added as the last one of `all`, the block's records.
    pub fn note(&mut self, rule: SharingRule, all: &[u64]) {
        match self.bits.is_empty() {
            true if all.len() < MARKED_RECORDS_MIN => {}
            // There are enough bits for another record.
            false if all.len() * MARK_BITS_PER_RECORD <= self.bits.len() * 64 => {
                all.last().into_iter().for_each(|entry| self.mark(rule, *entry));
            }
            _ => {
                let bits = (2 * all.len() * MARK_BITS_PER_RECORD).next_power_of_two();
                self.bits.clear();
                self.bits.resize(bits / 64, 0);
                all.iter().for_each(|entry| self.mark(rule, *entry));
            }
        }
    }

    fn mark(&mut self, rule: SharingRule, entry: u64) {
        let bit = self.bit(rule, entry);
        self.bits[bit / 64] |= 1 << (bit % 64);
    }

    /// The filter bit of a record, hashed from its distinguishing bits: look-alikes share a bit.
    fn bit(&self, rule: SharingRule, entry: u64) -> usize {
        let mixed = rule.mark(entry).wrapping_mul(0x9E37_79B9);
        ((u64::from(mixed) * (self.bits.len() as u64 * 64)) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_record_that_looks_like_another_is_never_missed() {
        let rule = SharingRule { ignored_bits: 22 };
        let mut random = fastrand::Rng::with_seed(1);
        let (mut marks, mut all) = (Marks::default(), Vec::new());
        let (mut alike, mut excluded) = (0, 0);
        for block in 0..3 {
            marks.clear();
            all.clear();
            let mut seen = HashSet::new();
            for _ in 0..20_000 * block {
                let entry = random.u64(0..1 << 34) << 10;
                let (is_alike, is_excluded) = (seen.contains(&rule.mark(entry)), marks.exclude(rule, entry));
                assert!(!(is_alike && is_excluded), "{entry}");
                alike += u64::from(is_alike);
                excluded += u64::from(is_excluded);
                seen.insert(rule.mark(entry));
                all.push(entry);
                marks.note(rule, &all);
            }
            assert_eq!(marks.bytes_allocated() > 0, block > 0);
        }
        // The first 1000 or so are compared without the filter.
        assert!(alike > 100 && excluded > 50_000, "{alike}, {excluded}");
    }
}
