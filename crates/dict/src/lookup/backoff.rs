//! When a failing source may be asked again.

use crate::limits;

/// The source's recent failures. ClickHouse's rule: after error n wait `base + uniform(0..=2^(n-1))` seconds,
/// at most 600.
pub(crate) struct Backoff {
    base_seconds: u64,
    failures: u32,
    /// Unix seconds before which the source is left alone.
    next_update: u64,
    last_failure: String,
    last_success: u64,
}

impl Backoff {
    pub fn new(base_seconds: u64) -> Backoff {
        Backoff { base_seconds, failures: 0, next_update: 0, last_failure: String::new(), last_success: 0 }
    }

    pub fn succeeded(&mut self, now: u64) {
        self.reset();
        self.last_success = now;
    }

    /// The source may be asked at once, whatever was before.
    pub fn reset(&mut self) {
        self.failures = 0;
        self.next_update = 0;
        self.last_failure.clear();
    }

    /// A request failed that was begun after `failures_before` failures in a row. Requests that were under way
    /// together fail together: that is one failure, however many of them there are.
    pub fn failed(&mut self, failures_before: u32, now: u64, failure: String) {
        if self.failures > failures_before {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.last_failure = failure;
        let spread = 1u64 << (self.failures - 1).min(10);
        let wait =
            self.base_seconds.saturating_add(fastrand::u64(0..=spread)).min(limits::BACKOFF_SECONDS_MAX);
        self.next_update = now.saturating_add(wait);
    }

    /// When the next request is scheduled, if that is in the future.
    pub fn wait_until(&self, now: u64) -> Option<u64> {
        (self.failures > 0 && now < self.next_update).then_some(self.next_update)
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn last_failure(&self) -> &str {
        &self.last_failure
    }

    pub fn last_success(&self) -> u64 {
        self.last_success
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_longer_and_longer_up_to_ten_minutes() {
        for round in 0..50 {
            fastrand::seed(round);
            let mut backoff = Backoff::new(5);
            assert_eq!(backoff.wait_until(1000), None);
            for n in 1..30u32 {
                // What was begun before the last failure waits for no longer.
                backoff.failed(n - 1, 1000, "down".into());
                backoff.failed(n - 1, 1100, "down".into());
                let wait = backoff.wait_until(1000).unwrap() - 1000;
                let most = (5 + (1u64 << (n - 1).min(10))).min(600);
                assert!((5..=most).contains(&wait), "failure {n}: {wait} s");
                assert_eq!(backoff.wait_until(1000 + wait), None);
            }
            backoff.succeeded(2000);
            assert_eq!((backoff.wait_until(1000), backoff.failures()), (None, 0));
        }
    }
}
