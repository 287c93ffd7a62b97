//! Tells a thread that waits that something has come.

use std::os::fd::OwnedFd;

/// Rings an eventfd.
///
/// It cannot fail but where it has rung 2^64 times and nobody came.
pub(super) fn ring_event(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}
