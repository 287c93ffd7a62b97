//! The rule for records that lie in one block.

/// The rule for records that share a block: two different summary entries must differ above their lowest `ignored_bits`
/// bits, so that those upper bits and the block identify a record for a consumer. 0: all may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingRule {
    /// The number of low bits that do not distinguish two records of a block.
    pub ignored_bits: u32,
}

impl SharingRule {
    pub(super) fn allows(self, entry: u64, others: &[u64]) -> bool {
        self.ignored_bits == 0
            || !self.may_look_like(entry, others)
            || others.iter().all(|o| *o == entry || (*o ^ entry) >> self.ignored_bits != 0)
    }

    /// Whether a record may lie before `others`, though it was added after them: its summary entry differs from theirs
    /// in the upper bits.
    pub(super) fn commutes(self, entry: u64, others: &[u64]) -> bool {
        self.ignored_bits > 0 && !self.may_look_like(entry, others)
    }

    /// Whether one of `others` has the same upper bits.
    fn may_look_like(self, entry: u64, others: &[u64]) -> bool {
        // No early exit, so that the compiler compares several at a time.
        others.iter().fold(false, |any, other| any | (self.mark(*other) == self.mark(entry)))
    }

    /// The bits that look-alikes have in common, and few other records have.
    pub(super) fn mark(self, entry: u64) -> u32 {
        (entry >> self.ignored_bits) as u32
    }
}
