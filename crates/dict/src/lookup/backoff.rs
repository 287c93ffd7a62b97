//! When a failing source may be asked again.

use crate::limits;
use std::time::Duration;

/// The source's recent failures. ClickHouse's rule: after error n wait `base + uniform(0..=2^(n-1))` seconds,
/// at most 600. Unlike there, the longest waits are drawn from up to 600 seconds, not cut to them: dictionaries
/// whose source was down for long do not all come back at once.
pub(crate) struct Backoff {
    base_seconds: u64,
    random: fastrand::Rng,
    failures: u32,
    /// Requests that failed for what they asked, since the last that was answered.
    refusals: u32,
    /// When the source may be asked again, on a monotonic clock.
    next_update: Duration,
    last_failure: String,
    last_success: u64,
}

impl Backoff {
    /// Waits are drawn from `random`.
    pub fn new(base_seconds: u64, random: fastrand::Rng) -> Backoff {
        let base_seconds = base_seconds.min(limits::BACKOFF_SECONDS_MAX);
        let last_failure = String::new();
        Backoff {
            base_seconds,
            random,
            failures: 0,
            refusals: 0,
            next_update: Duration::ZERO,
            last_failure,
            last_success: 0,
        }
    }

    /// Notes that a request was answered at Unix second `now`. Returns whether the one before it had failed.
    pub fn succeeded(&mut self, now: u64) -> bool {
        let had_failed = self.errors() > 0;
        self.reset();
        self.last_success = now;
        had_failed
    }

    /// Forgets all failures: the source may be asked at once.
    pub fn reset(&mut self) {
        self.failures = 0;
        self.refusals = 0;
        self.next_update = Duration::ZERO;
        self.last_failure.clear();
    }

    /// Notes that a request failed that was begun after `failures_before` failures in a row. Requests that were under
    /// way together fail together: that is one failure, however many they are. `now` is [`Clock::elapsed`]. Returns
    /// whether it is the first failure since a request was answered.
    ///
    /// [`Clock::elapsed`]: crate::environment::Clock::elapsed
    pub fn failed(&mut self, failures_before: u32, now: Duration, failure: String) -> bool {
        if self.failures > failures_before {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        self.last_failure = failure;
        let doubled = 1u64 << (self.failures - 1).min(10);
        let spread = doubled.min(limits::BACKOFF_SECONDS_MAX - self.base_seconds);
        let wait = self.base_seconds + self.random.u64(0..=spread);
        self.next_update = now.saturating_add(Duration::from_secs(wait));
        self.errors() == 1
    }

    /// Notes that a request failed at `now` for what it asked: the source may be asked for something else at once,
    /// unless `REFUSALS_MAX` such requests failed in a row, which looks like a fault of the source. Then it is left
    /// alone for the shortest wait. Returns whether it is the first failure since a request was answered.
    pub fn refused(&mut self, now: Duration, failure: String) -> bool {
        self.refusals = self.refusals.saturating_add(1);
        self.last_failure = failure;
        if self.refusals >= limits::REFUSALS_MAX {
            self.failures = self.failures.max(1);
            self.next_update = self.next_update.max(now.saturating_add(self.base()));
        }
        self.errors() == 1
    }

    /// The shortest wait after a failure.
    pub fn base(&self) -> Duration {
        Duration::from_secs(self.base_seconds)
    }

    /// How many requests failed since one was answered.
    pub fn errors(&self) -> u32 {
        self.failures.saturating_add(self.refusals)
    }

    /// How long the source is still left alone, if it is.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        let left = self.next_update.checked_sub(now).filter(|left| !left.is_zero())?;
        (self.failures > 0).then_some(left)
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

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn waits_longer_and_longer_up_to_ten_minutes() {
        for round in 0..50 {
            let mut backoff = Backoff::new(5, fastrand::Rng::with_seed(round));
            assert_eq!(backoff.left(at(1000)), None);
            for n in 1..30u32 {
                // A request begun before the last failure does not lengthen the wait.
                backoff.failed(n - 1, at(1000), "down".into());
                backoff.failed(n - 1, at(1100), "down".into());
                let wait = backoff.left(at(1000)).unwrap().as_secs();
                let most = (5 + (1u64 << (n - 1).min(10))).min(600);
                assert!((5..=most).contains(&wait), "failure {n}: {wait} s");
                assert_eq!(backoff.left(at(1000 + wait)), None);
            }
            backoff.succeeded(2000);
            assert_eq!((backoff.left(at(1000)), backoff.failures()), (None, 0));
        }
    }

    #[test]
    fn requests_that_fail_in_a_row_for_what_they_ask_are_an_outage() {
        let mut backoff = Backoff::new(5, fastrand::Rng::with_seed(1));
        let refuse = |backoff: &mut Backoff, times: u32| {
            (0..times).for_each(|_| _ = backoff.refused(at(1000), "no such key".into()));
            backoff.left(at(1000))
        };
        assert_eq!(refuse(&mut backoff, limits::REFUSALS_MAX - 1), None);
        backoff.succeeded(2000);
        assert_eq!(refuse(&mut backoff, limits::REFUSALS_MAX - 1), None, "one was answered meanwhile");
        assert_eq!(refuse(&mut backoff, 1), Some(at(5)));
        assert_eq!(refuse(&mut backoff, 100), Some(at(5)), "it waits no longer and longer");
        assert_eq!(backoff.left(at(1005)), None);
        backoff.succeeded(2000);
        assert_eq!(refuse(&mut backoff, 1), None);
    }

    /// Waits of dictionaries after `failures` failures of their source.
    fn waits_after(failures: u32) -> Vec<u64> {
        let wait = |seed| {
            let mut backoff = Backoff::new(5, fastrand::Rng::with_seed(seed));
            (0..failures).for_each(|n| _ = backoff.failed(n, at(0), "down".into()));
            backoff.left(at(0)).unwrap().as_secs()
        };
        (0..100).map(wait).collect()
    }

    #[test]
    fn dictionaries_of_one_source_come_back_one_by_one() {
        for failures in [8, 11, 30] {
            let mut waits = waits_after(failures);
            assert_eq!(waits, waits_after(failures), "the same seed waits as long");
            waits.sort_unstable();
            let together = waits.chunk_by(|a, b| a == b).map(<[u64]>::len).max();
            assert!(together < Some(8), "{together:?} of 100 ask at once after {failures} failures");
        }
    }
}
