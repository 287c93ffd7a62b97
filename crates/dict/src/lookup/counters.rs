//! Counters of rows of lookups, duplicates too, as ClickHouse counts.

use granary_metrics::Stopwatch;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums since the dictionary was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub keys_requested: Counter,
    pub keys_hit: Counter,
    pub keys_expired: Counter,
    pub keys_missed: Counter,
    pub keys_negative: Counter,
    pub keys_found_at_source: Counter,
    pub keys_joined: Counter,
    pub keys_updated: Counter,
    pub rows_bad: Counter,
    pub lookups: Stopwatch,
    pub source_requests: Counter,
    pub source_keys: Counter,
    pub source_keys_found: Counter,
    pub source_keys_absent: Counter,
    pub source_rows: Counter,
    pub source_rows_uninvited: Counter,
    pub source_errors: Counter,
    pub source_under_way: Gauge,
}

/// The number of calls under way now.
#[derive(Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    /// Counts one more until the returned guard is dropped.
    pub fn enter(&self) -> Entered<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Entered(self)
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A lookup or request under way: counted until this is dropped.
pub(crate) struct Entered<'a>(&'a Gauge);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A sum that several threads add to; nothing is ordered by it.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
