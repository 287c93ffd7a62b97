//! RAM of the rows of layouts that hold all of them.

use crate::lookup::Totals;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one load: of its rows while they are read, and of the snapshot for as long as anyone reads it, after a
/// reload, too. They are part of the sum over all dictionaries.
pub(super) struct HeldBytes {
    totals: Totals,
    own: AtomicU64,
}

impl HeldBytes {
    pub fn new(totals: &Totals) -> HeldBytes {
        HeldBytes { totals: totals.clone(), own: AtomicU64::new(0) }
    }

    /// Counts `bytes` in place of the bytes before.
    pub fn set(&self, bytes: usize) {
        let before = self.own.swap(bytes as u64, Ordering::Relaxed);
        self.totals.replace_full_load_bytes(before, bytes as u64);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}
