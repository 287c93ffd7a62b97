//! A log that is served after a loss of power: what is synced, and when.

use crate::durable_state::{DurableState, unsynced_max};
use crate::framing::Framing;
use crate::log::Log;
use crate::state::LastShutdown;
use crate::sync::atomic::Ordering;
use std::fs::File;
use std::io;
use std::sync::Arc;

fn earlier_failure() -> io::Error {
    io::Error::other(
        "an earlier sync, or a write to the journal, failed: what it should have kept may be lost",
    )
}

impl<F: Framing> Log<F> {
    /// The newest segment that is safe without the journal, with all before it: it is written and, if the log is served
    /// after a loss of power, synced.
    pub fn newest_safe(&self) -> u64 {
        match self.durable.is_active() {
            true => self.durable.durable_sequence.load(Ordering::Acquire),
            false => self.read_buffers().newest_written(),
        }
    }

    /// Syncs what was written if a loss of power could otherwise take too many segments up to `sequence`. The flusher
    /// calls it.
    pub(crate) fn sync_before(&self, sequence: u64) {
        let synced = &self.durable;
        let until = synced.durable_sequence.load(Ordering::Acquire) + unsynced_max(&self.geometry);
        if !synced.is_active() || sequence <= until {
            return;
        }
        let written = self.newest_written();
        let recorded = self.sync().and_then(|()| {
            let state = self.state.lock().expect("no panic under the lock");
            // Once invalidated, the state file stays so until the next open.
            match synced.has_failed() {
                true => Err(earlier_failure()),
                false => state.write(&self.identity(), LastShutdown::Killed, written),
            }
        });
        match recorded {
            Ok(()) => drop(synced.durable_sequence.fetch_max(written, Ordering::AcqRel)),
            Err(error) => drop(self.invalidate_content(&error)),
        }
    }

    /// Waits until the entries journalled so far survive a loss of power. If the log starts empty after one anyway, it
    /// returns at once: they survive a kill.
    ///
    /// # Errors
    /// The journal cannot be written and synced, nor can the state file be invalidated.
    pub fn sync_journal(&self) -> io::Result<()> {
        if self.durable.must_invalidate.load(Ordering::Acquire) {
            self.invalidate()?;
        }
        if !self.durable.is_active() {
            return Ok(());
        }
        let DurableState { appends, journal, appends_synced, .. } = &self.durable;
        let wanted = appends.load(Ordering::Acquire);
        if appends_synced.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let _alone = journal.lock().expect("no panic under the lock");
        if appends_synced.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let (files, count) = {
            let mut writer = self.writer();
            (writer.take_unsynced(), appends.load(Ordering::Acquire))
        };
        self.sync_files(&files)?;
        appends_synced.store(count, Ordering::Release);
        Ok(())
    }

    /// Syncs files of the journal.
    pub(crate) fn sync_files(&self, files: &[Arc<File>]) -> io::Result<()> {
        let synced = match self.durable.has_failed() {
            // After a failed sync, later syncs of that file do not report what was lost.
            true => Err(earlier_failure()),
            false => files.iter().try_for_each(|file| file.sync_data()),
        };
        synced.or_else(|error| self.invalidate_content(&error))
    }

    /// Whether the entries that were journalled so far survive a loss of power.
    #[doc(hidden)]
    pub fn is_journal_synced(&self) -> bool {
        let DurableState { appends, appends_synced, .. } = &self.durable;
        appends_synced.load(Ordering::Acquire) >= appends.load(Ordering::Acquire)
    }

    /// Makes the log start empty next time, however it ends: what a loss of power would leave is unknown.
    fn invalidate_content(&self, error: &io::Error) -> io::Result<()> {
        tracing::error!(%error, "cannot sync: after the next start the cache will be empty");
        self.invalidate()
    }

    /// Invalidates the state file. For a log that is served after a loss of power it stays so while the log is open.
    pub(crate) fn invalidate(&self) -> io::Result<()> {
        let state = self.state.lock().expect("no panic under the lock");
        self.durable.has_failed.store(self.durable.serves_older, Ordering::Release);
        let invalidated = state.invalidate();
        let failed_before = self.durable.must_invalidate.swap(invalidated.is_err(), Ordering::AcqRel);
        match &invalidated {
            Ok(()) => self.durable.is_invalidated.store(self.durable.serves_older, Ordering::Release),
            Err(error) if !failed_before => tracing::error!(%error, "cannot even truncate the state file"),
            Err(_) => {}
        }
        invalidated
    }
}
