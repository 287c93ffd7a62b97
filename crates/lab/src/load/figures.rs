//! Results of a load.

use std::time::Duration;

/// Gets, hits, and the time of each get.
#[derive(Clone, Debug, Default)]
pub struct LoadFigures {
    hits: u64,
    seconds: f64,
    /// Microseconds of each get.
    took: Vec<u32>,
}

impl LoadFigures {
    pub(super) fn add(&mut self, is_hit: bool, took: Duration) {
        self.hits += u64::from(is_hit);
        self.took.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    pub(super) fn finish(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
        self.took.sort_unstable();
    }

    /// Gets a second.
    pub fn operations_per_second(&self) -> f64 {
        self.took.len() as f64 / self.seconds
    }

    /// Hits, of all keys asked for.
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / (self.took.len() as f64).max(1.0)
    }

    /// The quantile `part` (0 to 1) of the gets' microseconds, from sending to reply.
    pub fn percentile_us(&self, part: f64) -> f64 {
        let last = self.took.len().saturating_sub(1);
        self.took.get((last as f64 * part) as usize).copied().map_or(f64::NAN, f64::from)
    }
}
