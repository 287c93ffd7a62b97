//! Waits that come to an end.

use std::time::{Duration, Instant};

/// Waits until something holds, a minute at most.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited for a minute until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
