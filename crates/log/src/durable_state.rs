//! The part of the log that survives a loss of power.

use crate::geometry::Geometry;
use crate::limits::UNSYNCED_BYTES_MAX;
use crate::options::CrashPolicy;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The part of the log that survives a loss of power.
pub(crate) struct DurableState {
    /// Whether the log is served after a loss of power, with the help of its journal ([`CrashPolicy::ServeOlder`]).
    pub serves_older: bool,
    /// The state file says that all segments up to this one are synced.
    pub durable_sequence: AtomicU64,
    /// The journal is unreliable, or a sync failed: the state file must be invalid from here on. Set under the lock of
    /// the state file.
    pub has_failed: AtomicBool,
    /// The state file is invalid: the log starts empty next time.
    pub is_invalidated: AtomicBool,
    /// The state file should be invalid but could not be written: the next start may read stale state.
    pub must_invalidate: AtomicBool,
    /// Appends to the journal, counted under the writer's lock.
    pub appends: AtomicU64,
    /// The number of appends that are synced.
    pub appends_synced: AtomicU64,
    /// Held while the journal is synced. A thread that waits for it may find nothing left to sync.
    pub journal: Mutex<()>,
}

impl DurableState {
    pub fn new(crash_policy: CrashPolicy, head: u64) -> Self {
        let serves_older = crash_policy == CrashPolicy::ServeOlder;
        Self {
            serves_older,
            durable_sequence: head.into(),
            has_failed: false.into(),
            is_invalidated: false.into(),
            must_invalidate: false.into(),
            appends: 0.into(),
            appends_synced: 0.into(),
            journal: Mutex::new(()),
        }
    }

    /// Whether syncs matter.
    pub fn is_active(&self) -> bool {
        self.serves_older && !self.is_invalidated()
    }

    /// Entries are about to be appended to the journal.
    pub fn note_append(&self) {
        self.appends.fetch_add(1, Ordering::Release);
    }

    /// Whether a sync, or a write to the journal, failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Whether the log starts empty next time.
    pub fn is_invalidated(&self) -> bool {
        self.is_invalidated.load(Ordering::Acquire)
    }
}

/// The most segments that may be on the device and not synced.
pub(crate) fn unsynced_max(geometry: &Geometry) -> u64 {
    let most = geometry.share(UNSYNCED_BYTES_MAX) / geometry.segment_bytes();
    most.min(geometry.segments() / 4).max(1)
}
