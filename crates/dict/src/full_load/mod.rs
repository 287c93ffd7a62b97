//! Layouts that hold all rows of the source: FLAT, HASHED, RANGE_HASHED, IP_TRIE, POLYGON, REGEXP_TREE and the like.
//! A key without a row is not in the source, which is read whole at the first use, at SYSTEM RELOAD DICTIONARY, and
//! when LIFETIME is over.

mod builder;
mod children;
mod dictionary;
mod held_bytes;
mod intervals;
mod keys;
mod load;
mod networks;
mod outline;
mod polygons;
mod ranges;
mod regexps;
mod resident;
mod rows;
mod snapshot;
mod texts;

pub use children::{Children, murmur3_finalizer};
pub use dictionary::ShownLoad;
use held_bytes::HeldBytes;
use load::Load;
pub(crate) use regexps::check_needed;
pub use regexps::regexp_of_re2;
pub(crate) use resident::FullLoadRows;
use snapshot::Snapshot;

use self::builder::Arrangement;
use crate::config::FullLoadLayout;
use crate::definition::Definition;
use crate::environment::Clock;
use crate::error::DictError;
use crate::lookup::{Totals, lock};
use crate::row::RowFormat;
use crate::status::{FullLoadFigures, LoadState};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The rows, and the loads that replace them: one at a time, numbered from 1.
pub(crate) struct FullLoad {
    arrangement: Arrangement,
    /// The rows that lookups show; replaced as a whole. `None`: nothing has been loaded yet.
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    loads: Mutex<Loads>,
    ended: Condvar,
    totals: Totals,
}

/// Invariant: `begun` is `ended`, or one more while a load is under way.
#[derive(Default)]
struct Loads {
    begun: u64,
    ended: u64,
    /// Failure of the last load that ended.
    failure: Option<DictError>,
    /// When the rows are to be loaded anew; `None`: only on request.
    due: Option<Due>,
    /// A reload came while a load was under way, which may have read older rows: another load follows it.
    is_wanted_anew: bool,
}

impl Loads {
    fn is_under_way(&self) -> bool {
        self.begun > self.ended
    }

    /// Begins the next load.
    fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.is_wanted_anew = false;
        self.begun
    }

    /// Ends the load under way; lookups see its rows in `shown`.
    fn end(
        &mut self,
        outcome: Result<Snapshot, DictError>,
        due: Option<Due>,
        shown: &RwLock<Option<Arc<Snapshot>>>,
    ) {
        match outcome {
            Ok(snapshot) => {
                self.due = due;
                self.failure = None;
                *shown.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(snapshot));
            }
            Err(failure) => self.failure = Some(failure),
        }
        self.ended += 1;
    }
}

/// A time, on two clocks: one can be set back, the other stands still while the machine sleeps.
#[derive(Clone, Copy)]
struct Due {
    /// Unix seconds.
    at: u64,
    /// The value of [`Clock::elapsed`] at that time.
    elapsed: Duration,
}

impl Due {
    fn after(clock: &Clock, seconds: u64) -> Due {
        Due {
            at: clock.now().saturating_add(seconds),
            elapsed: clock.elapsed() + Duration::from_secs(seconds),
        }
    }

    fn is_over(self, clock: &Clock) -> bool {
        self.at <= clock.now() || self.elapsed <= clock.elapsed()
    }
}

/// A load to wait for.
pub(crate) enum LoadTicket {
    /// The caller has to begin it, with [`Load`].
    Begin(u64),
    /// It is under way.
    Join(u64),
}

impl FullLoad {
    /// `format` is that of the source's rows.
    ///
    /// # Errors
    /// Errors of the definition.
    pub fn new(
        layout: FullLoadLayout,
        definition: &Definition,
        format: &RowFormat,
        totals: &Totals,
    ) -> Result<FullLoad, DictError> {
        let arrangement = Arrangement::new(layout, definition, format)?;
        Ok(FullLoad {
            arrangement,
            snapshot: RwLock::default(),
            loads: Mutex::default(),
            ended: Condvar::new(),
            totals: totals.clone(),
        })
    }

    /// The rows loaded last, if there are any.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The load that is under way, or the next one.
    pub fn ticket(&self) -> LoadTicket {
        let mut loads = lock(&self.loads);
        match loads.is_under_way() {
            true => LoadTicket::Join(loads.begun),
            false => LoadTicket::Begin(loads.begin()),
        }
    }

    /// Like [`ticket`](Self::ticket), for rows that are no older than this call: if a load is under way, another one
    /// follows it, whether or not the caller waits.
    pub fn ticket_anew(&self) -> LoadTicket {
        let mut loads = lock(&self.loads);
        if loads.is_under_way() {
            loads.is_wanted_anew = true;
            return LoadTicket::Join(loads.begun);
        }
        LoadTicket::Begin(loads.begin())
    }

    /// The load that followed load `number`, which has ended, or else the next one.
    pub fn ticket_after(&self, number: u64) -> LoadTicket {
        let mut loads = lock(&self.loads);
        match loads.begun > number {
            true => LoadTicket::Join(number + 1),
            false => LoadTicket::Begin(loads.begin()),
        }
    }

    /// Waits for a load, or a later one; `None`: none of these has ended by `deadline`.
    pub fn wait(&self, number: u64, deadline: Instant) -> Option<Result<(), DictError>> {
        let mut loads = lock(&self.loads);
        while loads.ended < number {
            let left = deadline.checked_duration_since(Instant::now())?;
            loads = self.ended.wait_timeout(loads, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(loads.failure.clone().map_or(Ok(()), Err))
    }

    /// Why the last load failed, if it did.
    pub fn failure(&self) -> Option<DictError> {
        lock(&self.loads).failure.clone()
    }

    /// Whether the rows are older than LIFETIME allows, or than a reload that could not begin.
    pub fn is_due(&self, clock: &Clock) -> bool {
        let loads = lock(&self.loads);
        loads.is_wanted_anew || loads.due.is_some_and(|due| due.is_over(clock))
    }

    pub fn figures(&self) -> FullLoadFigures {
        let snapshot = self.snapshot();
        let snapshot = snapshot.as_deref();
        FullLoadFigures {
            state: self.state(),
            rows: snapshot.map_or(0, Snapshot::len),
            load_factor: snapshot.map_or(0.0, Snapshot::load_factor),
            bytes_allocated: snapshot.map_or(0, Snapshot::bytes_allocated),
            hierarchy_bytes: snapshot.map_or(0, Snapshot::children_bytes),
            index_bytes: snapshot.map_or(0, Snapshot::index_bytes),
        }
    }

    fn state(&self) -> LoadState {
        let loads = lock(&self.loads);
        let has_failed = loads.failure.is_some();
        match (self.snapshot().is_some(), loads.is_under_way()) {
            (true, true) => LoadState::LoadedAndReloading,
            (true, false) => LoadState::Loaded,
            (false, true) if has_failed => LoadState::FailedAndReloading,
            (false, true) => LoadState::Loading,
            (false, false) if has_failed => LoadState::Failed,
            (false, false) => LoadState::NotLoaded,
        }
    }

    /// Ends a load; rows that it brought are to be loaded anew when it is `due`.
    fn end(&self, outcome: Result<Snapshot, DictError>, due: Option<Due>) {
        lock(&self.loads).end(outcome, due, &self.snapshot);
        self.ended.notify_all();
    }

    /// Ends a load as [`end`](Self::end) does, and begins the next one if that is wanted; returns whether it is.
    fn end_and_begin(&self, outcome: Result<Snapshot, DictError>, due: Option<Due>) -> bool {
        let mut loads = lock(&self.loads);
        loads.end(outcome, due, &self.snapshot);
        let is_wanted = loads.is_wanted_anew;
        if is_wanted {
            loads.begin();
        }
        self.ended.notify_all();
        is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn lifetime_is_over_by_either_clock() {
        let times = [1000, 70].map(|seconds| Arc::new(AtomicU64::new(seconds)));
        let clock = Clock::Apart { unix: times[0].clone(), elapsed: times[1].clone() };
        let due = Due::after(&clock, 30);
        assert!(!due.is_over(&clock));
        for (unix, elapsed, is_over) in [(1029, 99, false), (0, 100, true), (1030, 71, true)] {
            times[0].store(unix, Ordering::SeqCst);
            times[1].store(elapsed, Ordering::SeqCst);
            assert_eq!(due.is_over(&clock), is_over, "{unix} {elapsed}");
        }
    }
}
