//! How long to look for the next request before the thread sleeps.
//!
//! To sleep and to be woken costs both sides more than a request does: a client that asks one thing at a time would
//! pay for a wake-up with each. A thread that looks a few microseconds longer finds several requests at once. It pays
//! off only while requests come so soon, so what is waited in vain ends it.

use crate::limits::PATIENCE_MICROSECONDS_MAX;
use std::time::Duration;

const LEAST: Duration = Duration::from_micros(4);
const MOST: Duration = Duration::from_micros(PATIENCE_MICROSECONDS_MAX);

/// How long requests are looked for, learnt from how long they were waited for.
#[derive(Debug, Default)]
pub(super) struct Patience(Duration);

impl Patience {
    /// How long to look.
    pub fn get(&self) -> Duration {
        self.0
    }

    /// A request came after this time of looking and sleeping.
    pub fn learn(&mut self, waited: Duration) {
        self.0 = if waited <= MOST { (self.0 * 2).clamp(LEAST, MOST) } else { Duration::ZERO };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_requests_come_soon_and_ends_with_the_first_that_does_not() {
        let mut patience = Patience::default();
        assert_eq!(patience.get(), Duration::ZERO);
        for _ in 0..10 {
            patience.learn(MOST);
        }
        assert_eq!(patience.get(), MOST);
        patience.learn(MOST + Duration::from_nanos(1));
        assert_eq!(patience.get(), Duration::ZERO);
        patience.learn(Duration::ZERO);
        assert_eq!(patience.get(), LEAST);
    }
}
