//! Bytes a day: a bucket that fills as time passes.

use crate::limits::BUDGET_BURST_SECONDS;

const DAY_SECONDS: f64 = 86_400.0;

/// The bytes that may be written now.
pub(super) struct Budget {
    bytes_per_second: f64,
    saved: f64,
    since: Option<f64>,
}

impl Budget {
    pub fn new(bytes_per_day: u64) -> Self {
        Self { bytes_per_second: bytes_per_day as f64 / DAY_SECONDS, saved: 0.0, since: None }
    }

    /// Takes `bytes`, or returns `false` if they are too many now. Unused budget is saved, but not for long: a quiet
    /// night must not become a morning's burst. A debt of one object is allowed, so that an object larger than what can
    /// be saved is written sometimes.
    pub fn spend(&mut self, bytes: u64, now: f64) -> bool {
        let passed = (now - self.since.unwrap_or(now)).max(0.0);
        self.since = Some(self.since.unwrap_or(now).max(now));
        let most = self.bytes_per_second * BUDGET_BURST_SECONDS;
        self.saved = (self.saved + passed * self.bytes_per_second).min(most);
        let enough = self.saved > 0.0;
        if enough {
            self.saved -= bytes as f64;
        }
        enough
    }

    /// Gives back `bytes` that were taken and not written after all.
    pub fn refund(&mut self, bytes: u64) {
        self.saved += bytes as f64;
    }
}
