//! Waits with a time limit.

use std::time::{Duration, Instant};

/// Waits until `holds` is true, at most a minute.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited for a minute until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
