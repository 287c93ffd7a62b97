//! How long requests take: counted in buckets, each twice as wide as the one before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets: up to 1 us, 2 us, 4 us and so on to 34 s, and one for all longer times.
pub const LATENCY_BUCKETS: usize = 27;

/// The latencies that a [`Stopwatch`] has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Bucket `i` counts times below 2^i microseconds and not below 2^(i-1); the last one, all longer times.
    /// times.
    pub counts: [u64; LATENCY_BUCKETS],
    /// Sum of the times.
    pub total: Duration,
}

impl Latency {
    /// Upper end of a bucket in microseconds; the last one has none.
    pub fn bucket_us_max(bucket: usize) -> Option<u64> {
        (bucket + 1 < LATENCY_BUCKETS).then(|| 1 << bucket)
    }

    /// Number of times counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// An upper bound of the quantile `part` in microseconds: 0.5 is the median; 0 if nothing was counted.
    pub fn quantile_us(&self, part: f64) -> u64 {
        let wanted = (self.count() as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return 1 << bucket;
            }
        }
        0
    }

    /// The latencies counted since `earlier` was read; all of them, if the stopwatch was replaced since.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.counts;
        for (count, earlier) in counts.iter_mut().zip(earlier.counts) {
            match count.checked_sub(earlier) {
                Some(rest) => *count = rest,
                None => return *self,
            }
        }
        Self { counts, total: self.total.saturating_sub(earlier.total) }
    }
}

/// Buckets that any number of threads count in.
#[derive(Debug, Default)]
pub struct Stopwatch {
    counts: [AtomicU64; LATENCY_BUCKETS],
    total_ns: AtomicU64,
}

impl Stopwatch {
    /// Counts a time.
    pub fn add(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // The microseconds are rounded down: 1.5 us must not count as 1.
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        self.counts[bucket.min(LATENCY_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The latencies counted so far.
    pub fn read(&self) -> Latency {
        Latency {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed)),
            total: Duration::from_nanos(self.total_ns.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_bounds() {
        let stopwatch = Stopwatch::default();
        assert_eq!(stopwatch.read().quantile_us(0.5), 0);
        for us in [0, 3, 3, 3, 3, 3, 3, 3, 3, 1000] {
            stopwatch.add(Duration::from_micros(us) + Duration::from_nanos(500));
        }
        stopwatch.add(Duration::from_secs(1000));
        let latency = stopwatch.read();
        assert_eq!((latency.quantile_us(0.0), latency.quantile_us(0.5)), (1, 4));
        assert_eq!(latency.quantile_us(0.9), 1024);
        assert_eq!(latency.quantile_us(1.0), 1 << (LATENCY_BUCKETS - 1));
        assert_eq!(latency.count(), 11);
        assert_eq!(Latency::bucket_us_max(2), Some(4));
        assert_eq!(Latency::bucket_us_max(LATENCY_BUCKETS - 1), None);
    }

    #[test]
    fn what_was_counted_between_two_looks() {
        let stopwatch = Stopwatch::default();
        stopwatch.add(Duration::from_micros(3));
        let earlier = stopwatch.read();
        assert_eq!(earlier.since(&Latency::default()), earlier);
        stopwatch.add(Duration::from_micros(5));
        let between = stopwatch.read().since(&earlier);
        assert_eq!((between.count(), between.total), (1, Duration::from_micros(5)));
        assert_eq!(between.quantile_us(0.5), 8);
        // Another stopwatch.
        assert_eq!(earlier.since(&between), earlier);
    }
}
