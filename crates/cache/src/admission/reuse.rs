//! A key that was asked for twice will be asked for again.
//!
//! DRAM alone is too short a trial where it is a small part of the cache: most objects that are read again are read
//! after they have left it. Such an object misses, is put again, and leaves a second time; that it does so within about
//! the time that flash would have kept it is as good a sign as a read. A few objects without such a sign go to flash,
//! too: there is no other way to find those that are read again late.

use super::candidate::{Candidate, Decision};
use super::lifetime::Lifetime;
use super::returning::Returning;
use crate::limits::{UNPROVEN_ADMITTED, UNPROVEN_ADMITTED_TO_FREE_FLASH};
use fastrand::Rng;

pub(super) struct Reuse {
    returning: Returning,
    lifetime: Lifetime,
    /// Bytes of flash never written: there, unproven objects displace nothing.
    free_bytes: u64,
    random: Rng,
}

impl Reuse {
    pub fn new(flash_bytes: u64, seed: u64) -> Self {
        Self {
            returning: Returning::new(flash_bytes),
            lifetime: Lifetime::new(flash_bytes),
            free_bytes: flash_bytes,
            random: Rng::with_seed(seed),
        }
    }

    pub fn set_free_bytes(&mut self, free_bytes: u64) {
        self.free_bytes = free_bytes;
    }

    pub fn on_put(&mut self, bytes: u64) {
        self.lifetime.on_put(bytes);
        self.returning.on_put(bytes, self.lifetime.admitted());
    }

    pub fn decide(&mut self, candidate: &Candidate<'_>) -> Decision {
        let returns = self.returning.seen_before(candidate.key);
        let unproven = if self.free_bytes > 0 { UNPROVEN_ADMITTED_TO_FREE_FLASH } else { UNPROVEN_ADMITTED };
        if candidate.reads > 0 || returns || self.random.f64() < unproven {
            self.lifetime.on_admit(candidate.bytes);
            self.free_bytes = self.free_bytes.saturating_sub(candidate.bytes);
            return Decision::Flash;
        }
        Decision::Drop
    }

    pub fn bytes_allocated(&self) -> usize {
        self.returning.bytes_allocated()
    }
}
