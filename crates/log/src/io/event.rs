//! Wakes a waiting thread.

use std::os::fd::OwnedFd;

/// Rings an eventfd.
///
/// It fails only where the eventfd's counter overflows: then the waiting thread is woken anyway.
pub(super) fn ring_event(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}
