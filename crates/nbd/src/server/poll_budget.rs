//! The time for which a thread polls for the next request before it sleeps.
//!
//! Sleeping and waking cost both sides more than a request: a client with one request at a time would pay for a wake-up
//! each time. A thread that polls a few microseconds longer finds several requests at once. It pays off only while
//! requests come so soon, so a wait in vain ends the polling.

use crate::limits::POLL_MICROSECONDS_MAX;
use std::time::Duration;

const LEAST: Duration = Duration::from_micros(4);
const MOST: Duration = Duration::from_micros(POLL_MICROSECONDS_MAX);

/// The polling time, learnt from past waits for requests.
#[derive(Debug, Default)]
pub(super) struct PollBudget(Duration);

impl PollBudget {
    /// The polling time.
    pub fn get(&self) -> Duration {
        self.0
    }

    /// Learns that a request came after `waited` of polling and sleeping.
    pub fn learn(&mut self, waited: Duration) {
        self.0 = if waited <= MOST { (self.0 * 2).clamp(LEAST, MOST) } else { Duration::ZERO };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_requests_come_soon_and_ends_with_the_first_that_does_not() {
        let mut budget = PollBudget::default();
        assert_eq!(budget.get(), Duration::ZERO);
        for _ in 0..10 {
            budget.learn(MOST);
        }
        assert_eq!(budget.get(), MOST);
        budget.learn(MOST + Duration::from_nanos(1));
        assert_eq!(budget.get(), Duration::ZERO);
        budget.learn(Duration::ZERO);
        assert_eq!(budget.get(), LEAST);
    }
}
