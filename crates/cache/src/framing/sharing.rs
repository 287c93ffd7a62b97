//! Which records may lie in one block.

/// Which records may share a block: two different summary entries must differ above their lowest
/// `ignored_bits` bits, so that a consumer that knows only those upper bits and the block knows the
/// record. 0: all may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingRule {
    /// Low bits that do not tell two records of a block apart.
    pub ignored_bits: u32,
}

impl SharingRule {
    pub(super) fn allows(self, entry: u64, others: &[u64]) -> bool {
        self.ignored_bits == 0
            || !self.may_look_like(entry, others)
            || others.iter().all(|o| *o == entry || (*o ^ entry) >> self.ignored_bits != 0)
    }

    /// Whether a record may lie before others although it came after them: it has nothing to do with them, for
    /// their summary entries differ in their upper bits.
    pub(super) fn commutes(self, entry: u64, others: &[u64]) -> bool {
        self.ignored_bits > 0 && !self.may_look_like(entry, others)
    }

    /// `false`: no other has the same upper bits.
    fn may_look_like(self, entry: u64, others: &[u64]) -> bool {
        // Without an early exit the compiler compares several at a time.
        others.iter().fold(false, |any, other| any | (self.mark(*other) == self.mark(entry)))
    }

    /// What records have in common that look alike, and few others have.
    pub(super) fn mark(self, entry: u64) -> u32 {
        (entry >> self.ignored_bits) as u32
    }
}
