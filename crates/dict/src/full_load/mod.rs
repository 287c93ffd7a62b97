//! Layouts that hold all rows of the source: FLAT, HASHED, RANGE_HASHED, IP_TRIE, POLYGON, REGEXP_TREE and the like.
//! A key without a row is not in the source, which is read whole at the first use, at SYSTEM RELOAD DICTIONARY, and
//! when LIFETIME is over.

mod builder;
mod children;
mod dictionary;
mod intervals;
mod keys;
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
pub(crate) use regexps::check_needed;
pub use regexps::regexp_of_re2;
pub(crate) use resident::FullLoadRows;
use snapshot::Snapshot;

use self::builder::{Arrangement, Builder};
use crate::config::FullLoadLayout;
use crate::definition::{Definition, Lifetime};
use crate::environment::Clock;
use crate::error::DictError;
use crate::lookup::{Loader, caught, lock};
use crate::row::RowFormat;
use crate::source::Source;
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
    ) -> Result<FullLoad, DictError> {
        let arrangement = Arrangement::new(layout, definition, format)?;
        Ok(FullLoad {
            arrangement,
            snapshot: RwLock::default(),
            loads: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// The rows loaded last, if there are any.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The load that is under way, or the next one.
    pub fn ticket(&self) -> LoadTicket {
        let mut loads = lock(&self.loads);
        if loads.begun > loads.ended {
            return LoadTicket::Join(loads.begun);
        }
        loads.begun += 1;
        LoadTicket::Begin(loads.begun)
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

    /// Whether the rows are older than LIFETIME allows.
    pub fn is_due(&self, clock: &Clock) -> bool {
        lock(&self.loads).due.is_some_and(|due| due.is_over(clock))
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
        match self.snapshot().is_some() {
            true => LoadState::Loaded,
            false if loads.begun > loads.ended => LoadState::Loading,
            false if loads.failure.is_some() => LoadState::Failed,
            false => LoadState::NotLoaded,
        }
    }

    /// Ends a load; rows that it brought are to be loaded anew when it is `due`.
    fn end(&self, outcome: Result<Snapshot, DictError>, due: Option<Due>) {
        let mut loads = lock(&self.loads);
        match outcome {
            Ok(snapshot) => {
                loads.due = due;
                loads.failure = None;
                *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(snapshot));
            }
            Err(failure) => loads.failure = Some(failure),
        }
        loads.ended += 1;
        self.ended.notify_all();
    }
}

/// A load that has begun. Dropping it ends the load, whatever its outcome.
pub(crate) struct Load {
    loader: Arc<Loader>,
    /// When its rows are over: LIFETIME begins with the load.
    due: Option<Due>,
    outcome: Option<Result<Snapshot, DictError>>,
}

impl Load {
    pub fn new(loader: &Arc<Loader>) -> Load {
        Load { loader: Arc::clone(loader), due: None, outcome: None }
    }

    /// Reads everything, on a source thread. The connection is not used again.
    pub fn run(mut self, connection: &mut Option<Box<dyn Source>>) {
        let loader = Arc::clone(&self.loader);
        let Some(full_load) = loader.storage.full_load() else { return };
        let lifetime = loader.lifetime;
        self.due = (lifetime != Lifetime::FOREVER)
            .then(|| Due::after(&loader.clock, fastrand::u64(lifetime.min_seconds..=lifetime.max_seconds)));
        let mut builder = Builder::new(&full_load.arrangement, loader.clock.now());
        let outcome = loader.ask(connection, |source| {
            source.load_all(&mut |batch| {
                loader.count_rows(std::slice::from_ref(&batch));
                loader.each_row(&batch, |key, row| {
                    builder.add(key, |attribute| row.is_null(attribute), |bytes| row.append_to(bytes))
                })
            })
        });
        *connection = None;
        let finished = outcome.and_then(|()| caught("Arranging the rows", || builder.finish()));
        self.outcome = Some(finished);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(full_load) = self.loader.storage.full_load() {
            let outcome = self.outcome.take().unwrap_or_else(|| Err(self.loader.not_started()));
            full_load.end(outcome, self.due);
        }
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
