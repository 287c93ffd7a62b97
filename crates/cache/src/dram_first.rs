//! State of a DRAM-first cache, beside its shards: the admission policy, and requests to write entries to flash.

use crate::admission::{Admission, Admitter};
use crate::applications::Applications;
use crate::framing::Log;
use granary_log::sync::atomic::{AtomicBool, AtomicU64};
use granary_log::sync::{Condvar, Mutex};
use std::time::Instant;

/// The state of a cache that is DRAM first.
pub(crate) struct DramFirst {
    /// Lock order: after the shard's.
    pub admitter: Mutex<Admitter>,
    /// Whether the policy ever writes to flash.
    pub writes: bool,
    /// The admitter's [`Admitter::sample_threshold`], to be read without the lock.
    pub sample_threshold: AtomicU64,
    /// While [`Log::newest_safe`](granary_log::Log::newest_safe) is below this segment, flash may hold entries that a
    /// recovery would find and the index does not have: blocks that could not be read may be readable the next time.
    pub unindexed_until: AtomicU64,
    /// Whether entries that are read often return to RAM when their segment is reused.
    pub takes_back: AtomicBool,
    pub requests: Mutex<EvictionRequests>,
    pub requested: Condvar,
    /// The start of the policy's clock.
    pub opened: Instant,
}

/// Requests to the evictor.
#[derive(Default)]
pub(crate) struct EvictionRequests {
    pub wanted: bool,
    pub stop: bool,
}

impl DramFirst {
    /// `None`: the policy writes every put at once.
    pub fn new(
        admission: &Admission,
        applications: &Applications,
        log: &Log,
        bytes_per_day: Option<u64>,
    ) -> Option<Self> {
        let geometry = log.geometry();
        let flash_bytes = geometry.file_bytes();
        let mut admitter =
            Admitter::new(admission, applications, flash_bytes, bytes_per_day, fastrand::u64(..));
        admitter.set_free_bytes((geometry.segments() - log.segments_used()) * geometry.segment_bytes());
        (*admission != Admission::All).then(|| Self {
            writes: admitter.writes(),
            sample_threshold: AtomicU64::new(admitter.sample_threshold()),
            admitter: Mutex::new(admitter),
            unindexed_until: AtomicU64::new(0),
            takes_back: AtomicBool::new(true),
            requests: Mutex::default(),
            requested: Condvar::new(),
            opened: Instant::now(),
        })
    }

    /// Tells the evictor to stop.
    pub fn stop(&self) {
        self.requests.lock().expect("no panic under the lock").stop = true;
        self.requested.notify_one();
    }

    /// Tells the evictor that it has work.
    pub fn wake(&self) {
        let mut requests = self.requests.lock().expect("no panic under the lock");
        if !requests.wanted {
            requests.wanted = true;
            self.requested.notify_one();
        }
    }
}
