//! What a loss of power leaves of a log that goes on being served after one: how much of it the device was told to
//! keep, and that this is on record.

use crate::framing::Framing;
use crate::geometry::Geometry;
use crate::limits::UNSYNCED_BYTES_MAX;
use crate::log::Log;
use crate::options::InDoubt;
use crate::state::Left;
use crate::sync::sync::Mutex;
use crate::sync::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;

/// How much of the log survives a loss of power.
pub(crate) struct Synced {
    /// Whether the log is served after a loss of power by what was journalled ([`InDoubt::ServeOlder`]).
    serves_older: bool,
    /// The state file says that all segments up to this one are synced.
    on_record: AtomicU64,
    /// A sync failed, and the state file says nothing any more: the log starts empty next time.
    is_invalidated: AtomicBool,
    /// Appends to the journal, counted under the writer's lock.
    appends: AtomicU64,
    /// How many of them are synced.
    appends_synced: AtomicU64,
    /// Held while the journal is synced: who comes meanwhile waits, and perhaps finds nothing left to sync.
    journal: Mutex<()>,
}

impl Synced {
    pub fn new(in_doubt: InDoubt, head: u64) -> Self {
        let serves_older = in_doubt == InDoubt::ServeOlder;
        Self {
            serves_older,
            on_record: head.into(),
            is_invalidated: false.into(),
            appends: 0.into(),
            appends_synced: 0.into(),
            journal: Mutex::new(()),
        }
    }

    /// Whether syncs matter.
    fn is_active(&self) -> bool {
        self.serves_older && !self.is_invalidated()
    }

    /// Words are about to be appended to the journal.
    pub fn note_append(&self) {
        self.appends.fetch_add(1, Ordering::Release);
    }

    pub fn is_invalidated(&self) -> bool {
        self.is_invalidated.load(Ordering::Acquire)
    }
}

/// How many segments may be on the device beyond those that were synced.
pub(crate) fn unsynced_max(geometry: &Geometry) -> u64 {
    let most = geometry.share(UNSYNCED_BYTES_MAX) / geometry.segment_bytes();
    most.min(geometry.segments() / 4).max(1)
}

impl<F: Framing> Log<F> {
    /// The newest segment whose words the journal need not have any more, as it and all before it are on the device.
    pub(crate) fn vouched(&self) -> u64 {
        match self.synced.is_active() {
            true => self.synced.on_record.load(Ordering::Acquire),
            false => self.read_buffers().durable(),
        }
    }

    /// Syncs what was written if segments up to this one would otherwise be too many that a loss of power can take.
    /// Called by the thread that writes.
    pub(crate) fn sync_before(&self, sequence: u64) {
        let synced = &self.synced;
        let until = synced.on_record.load(Ordering::Acquire) + unsynced_max(&self.geometry);
        if !synced.is_active() || sequence <= until {
            return;
        }
        let durable = self.durable();
        let recorded = self.sync().and_then(|()| {
            let state = self.state.lock().expect("no panic under the lock");
            state.write(&self.identity(), Left::Killed, durable)
        });
        match recorded {
            Ok(()) => drop(synced.on_record.fetch_max(durable, Ordering::AcqRel)),
            Err(error) => drop(self.invalidate_content(&error)),
        }
    }

    /// Returns once the words that were journalled so far survive a loss of power. Of a log that starts empty after one
    /// that is so at once.
    ///
    /// # Errors
    /// Neither can the journal be synced, nor can the log be made to start empty.
    pub fn sync_journal(&self) -> io::Result<()> {
        if !self.synced.is_active() {
            return Ok(());
        }
        let Synced { appends, journal, appends_synced, .. } = &self.synced;
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
        match files.iter().try_for_each(|file| file.sync_data()) {
            Ok(()) => {
                appends_synced.store(count, Ordering::Release);
                Ok(())
            }
            Err(error) => self.invalidate_content(&error),
        }
    }

    /// Makes the log start empty next time, whatever its end: what a loss of power would leave is not known.
    fn invalidate_content(&self, error: &io::Error) -> io::Result<()> {
        tracing::error!(%error, "cannot sync: after the next start the cache will be empty");
        let invalidated = self.state.lock().expect("no panic under the lock").invalidate();
        if let Err(error) = &invalidated {
            tracing::error!(%error, "cannot even truncate the state file");
        } else {
            self.synced.is_invalidated.store(true, Ordering::Release);
        }
        invalidated
    }
}
