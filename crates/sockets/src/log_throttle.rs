//! Log lines that strangers can bring about: one a second, with the number of those that were left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);

/// The state of one kind of log line.
#[derive(Debug)]
pub struct LogThrottle(Mutex<State>);

#[derive(Debug)]
struct State {
    told: Option<Instant>,
    untold: u64,
}

impl Default for LogThrottle {
    fn default() -> Self {
        Self::new()
    }
}

impl LogThrottle {
    /// None was told of yet.
    pub const fn new() -> Self {
        Self(Mutex::new(State { told: None, untold: 0 }))
    }

    /// Whether the log is to tell of one more event now: how many it did not tell of before, or `None`.
    pub fn take(&self) -> Option<u64> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told.is_some_and(|told| now < told + INTERVAL) {
            state.untold += 1;
            return None;
        }
        state.told = Some(now);
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_a_second_is_told_and_the_others_are_counted() {
        let (throttle, now) = (LogThrottle::default(), Instant::now());
        let told = [0, 1, 999, 1000, 1500, 4000, 9000];
        let told = told.map(|milliseconds| throttle.take_at(now + Duration::from_millis(milliseconds)));
        assert_eq!(told, [Some(0), None, None, Some(2), None, Some(1), Some(0)]);
    }
}
