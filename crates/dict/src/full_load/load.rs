//! One load: all rows are read and arranged on a source thread.

use super::builder::Builder;
use super::snapshot::Snapshot;
use super::{Due, FullLoad, HeldBytes};
use crate::definition::Lifetime;
use crate::error::{Code, DictError};
use crate::limits::TIMEOUT_MS_MAX;
use crate::lookup::{SourceAccess, caught};
use crate::source::Source;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A load that has begun. Dropping it ends the load, whatever its outcome.
pub(super) struct Load {
    access: Arc<SourceAccess>,
    /// When its rows are over: LIFETIME begins with the load.
    due: Option<Due>,
    outcome: Option<Result<Snapshot, DictError>>,
    /// It has not ended.
    is_under_way: bool,
}

impl Load {
    pub fn new(access: &Arc<SourceAccess>) -> Load {
        Load { access: Arc::clone(access), due: None, outcome: None, is_under_way: true }
    }

    /// Reads everything, on a source thread, and again if a reload came meanwhile. The connection is not used again.
    pub fn run(mut self, connection: &mut Option<Box<dyn Source>>) {
        let access = Arc::clone(&self.access);
        let Some(full_load) = access.storage.full_load() else { return };
        loop {
            self.read(full_load, connection);
            if self.is_closing() {
                return;
            }
            let outcome = self.take_outcome();
            self.is_under_way = full_load.end_and_begin(outcome, self.due.take());
            // The turn of the next one comes within a day, or the dictionary is closed.
            let deadline = Instant::now() + Duration::from_millis(TIMEOUT_MS_MAX);
            if !self.is_under_way || access.await_turn(deadline).is_err() {
                return;
            }
        }
    }

    fn read(&mut self, full_load: &FullLoad, connection: &mut Option<Box<dyn Source>>) {
        let access = Arc::clone(&self.access);
        let lifetime = access.lifetime;
        self.due = (lifetime != Lifetime::FOREVER)
            .then(|| Due::after(&access.clock, fastrand::u64(lifetime.min_seconds..=lifetime.max_seconds)));
        let loaded_at = access.clock.now();
        // A dictionary that is being closed has given the load up, which is no failure of the source.
        let loaded = access.ask(connection, |source| {
            let held = HeldBytes::new(&full_load.totals);
            let mut builder = Builder::new(&full_load.arrangement, loaded_at);
            let read = source.load_all(&mut |batch| {
                if self.is_closing() {
                    return Err(DictError::new(Code::TimeoutExceeded, "Nobody takes any more rows"));
                }
                access.count_rows(std::slice::from_ref(&batch));
                let added = access.each_row(&batch, |key, row| {
                    builder.add(key, |attribute| row.is_null(attribute), |bytes| row.append_to(bytes))
                });
                held.set(builder.bytes_allocated());
                added
            });
            if read.is_err() && self.is_closing() {
                return Ok(None);
            }
            read?;
            // Rows that cannot be arranged are a failure as those that cannot be read are: the source is left alone.
            caught("Arranging the rows", || builder.finish(held)).map(Some)
        });
        *connection = None;
        self.outcome = loaded.transpose();
    }

    fn is_closing(&self) -> bool {
        self.access.is_closing.load(Ordering::SeqCst)
    }

    fn take_outcome(&mut self) -> Result<Snapshot, DictError> {
        self.outcome.take().unwrap_or_else(|| Err(self.access.not_started()))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(full_load) = self.access.storage.full_load().filter(|_| self.is_under_way) {
            let outcome = self.outcome.take().unwrap_or_else(|| Err(self.access.not_started()));
            full_load.end(outcome, self.due);
        }
    }
}
