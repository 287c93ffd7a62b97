//! The time that items expire by.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Seconds since 1970: what the system's clock said at first, and what has passed since. As in memcached, a clock that is
/// set meanwhile neither ends items early nor brings expired ones back.
pub(crate) fn unix_time() -> u32 {
    static FIRST: OnceLock<(SystemTime, Instant)> = OnceLock::new();
    let (system, instant) = FIRST.get_or_init(|| (SystemTime::now(), Instant::now()));
    let since = (*system + instant.elapsed()).duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX).saturating_add(AHEAD.load(Ordering::Relaxed))
}

/// Seconds that are added to the system's clock.
static AHEAD: AtomicU32 = AtomicU32::new(0);

/// Has [`unix_time`] go on from a second that is yet to come.
pub(crate) fn start_from(second: u32) {
    AHEAD.fetch_add(second.saturating_sub(unix_time()), Ordering::Relaxed);
}
