//! The one writer: fills the segment that is open, and opens the next.

use crate::framing::{Framing, SegmentId};
use crate::journal::Journal;
use crate::log::{Log, WriterState};
use crate::segment::Segment;
use crate::slots::Purpose;
use crate::state::{LastShutdown, random_number};
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, MutexGuard};
use std::io;

/// The time at which sealed segments are handed to the flusher.
enum Flushing {
    AtOnce,
    /// Between `defer_flush` and `resume_flush`, by the latter.
    Deferred {
        /// The newest segment that was sealed meanwhile.
        sealed: Option<u64>,
    },
}

/// The right to append.
pub struct Writer<'a, F: Framing> {
    log: &'a Log<F>,
    state: MutexGuard<'a, WriterState<F>>,
    purpose: Purpose,
    flushing: Flushing,
    /// Segments opened between `defer_flush` and `resume_flush`, which a next process must not find yet.
    hidden: Vec<Arc<Segment<F>>>,
}

impl<F: Framing> Drop for Writer<'_, F> {
    fn drop(&mut self) {
        self.resume_flush();
    }
}

impl<F: Framing> Log<F> {
    /// The right to append, one holder at a time.
    pub fn writer(&self) -> Writer<'_, F> {
        Writer::new(self)
    }
}

impl<'a, F: Framing> Writer<'a, F> {
    pub(crate) fn new(log: &'a Log<F>) -> Self {
        let state = log.writer.lock().expect("no panic under the lock");
        Self { log, state, purpose: Purpose::Append, flushing: Flushing::AtOnce, hidden: Vec::new() }
    }

    /// Lets the writer take the slots that are reserved for moving.
    pub fn for_moving(mut self) -> Self {
        self.purpose = Purpose::Move;
        self
    }

    /// The layout of segments.
    pub fn framing(&self) -> &'a F {
        &self.log.framing
    }

    /// Passes the current segment to `put`; if `put` returns `None`, seals it and passes the next one. `None`: `put`
    /// returned `None` twice, or no further segment can be opened now. It never waits.
    pub fn fill<R>(
        &mut self,
        mut put: impl FnMut(&SegmentId, &mut F::Builder, &mut [u8]) -> Option<R>,
    ) -> Option<R> {
        if self.log.slots.is_reserved_from(self.purpose) {
            return None;
        }
        if let Some(current) = &self.state.current {
            if let Some(put) = current.fill(&mut put) {
                return Some(put);
            }
            self.seal();
        }
        self.open_next()?.fill(put)
    }

    /// Passes the builder of segment `sequence` to `change`, unless the flusher was told to write that segment.
    pub fn amend<R>(
        &mut self,
        sequence: u64,
        change: impl FnOnce(&SegmentId, &mut F::Builder) -> R,
    ) -> Option<R> {
        if sequence <= self.sealed_until() {
            return None;
        }
        let segment = {
            let buffers = self.log.read_buffers();
            let i = sequence.checked_sub(buffers.newest_written() + 1)?;
            Arc::clone(buffers.live.get(i as usize)?)
        };
        Some(segment.fill(|id, builder, _| change(id, builder)))
    }

    /// The lowest sequence number that the next record can go to.
    pub fn next_sequence(&self) -> u64 {
        self.state.current.as_ref().map_or_else(|| self.log.head() + 1, |segment| segment.sequence())
    }

    /// Notes that segment `sequence` changes the records that `entries` stand for, so that a kill before it is on the
    /// device does not bring older records of these entries back.
    ///
    /// If even that small write fails, the log will start empty after a crash.
    pub fn journal(&mut self, sequence: u64, entries: &[u64]) {
        if entries.is_empty() {
            return;
        }
        let newest_safe = self.log.newest_safe();
        self.write_journal(|journal| journal.append(sequence, newest_safe, entries));
    }

    /// Notes that segments up to `sequence` hold nothing any more, so that a kill before they are overwritten does not
    /// bring their records back. A failure has the effect it has in [`journal`](Self::journal).
    pub fn journal_emptied(&mut self, sequence: u64) {
        let newest_safe = self.log.newest_safe();
        self.write_journal(|journal| journal.note_emptied(sequence, newest_safe));
    }

    fn write_journal(&mut self, append: impl FnOnce(&mut Journal) -> io::Result<()>) {
        self.log.durable.note_append();
        let appended = append(&mut self.state.journal);
        let failed_before = std::mem::replace(&mut self.state.journal_fails, appended.is_err());
        match appended {
            Err(error) if !failed_before => {
                tracing::error!(%error, "cannot write the journal: after a crash the cache will start empty");
            }
            Ok(()) if failed_before => {
                tracing::info!("the journal is written again: a clean stop keeps what is in the cache");
            }
            _ => {}
        }
        if self.state.journal_fails || self.log.durable.must_invalidate.load(Ordering::Acquire) {
            // `invalidate` has logged its failure.
            let _ = self.log.invalidate();
        }
    }

    /// Like [`Log::sync_journal`], before any segment sealed since [`defer_flush`](Self::defer_flush) is written.
    ///
    /// # Errors
    /// The errors of [`Log::sync_journal`].
    pub fn sync_journal(&mut self) -> io::Result<()> {
        let log = self.log;
        if !log.durable.is_active() {
            return Ok(());
        }
        // If another thread is syncing, it has taken files and will count their appends itself.
        let alone = log.durable.journal.try_lock();
        let appends = log.durable.appends.load(Ordering::Acquire);
        log.sync_files(&self.take_unsynced())?;
        if alone.is_ok() {
            log.durable.appends_synced.store(appends, Ordering::Release);
        }
        Ok(())
    }

    /// Gives up everything appended so far, for good: waits for the device, then starts another instance.
    pub fn clear(&mut self) -> io::Result<()> {
        self.seal();
        self.resume_flush();
        let log = self.log;
        let mut requests = log.requests.lock().expect("no panic under the lock");
        while !log.read_buffers().live.is_empty() && !requests.stop {
            requests = log.written.wait(requests).expect("no panic under the lock");
        }
        drop(requests);
        // A loss of content that is given up needs no report.
        log.commits.reported_lost.fetch_max(log.lost.load(Ordering::Acquire), Ordering::AcqRel);
        if let Some(fifo) = log.slots.fifo() {
            fifo.invalid_until.store(log.head(), Ordering::Release);
        }
        log.instance.store(random_number(), Ordering::Release);
        let state = log.state.lock().expect("no panic under the lock");
        let written = match log.durable.has_failed() {
            true => state.invalidate(),
            false => state.write(&log.identity(), LastShutdown::Killed, log.head()),
        };
        drop(state);
        // If the state cannot be written, the next start must be empty rather than find what was given up. The journal
        // belongs to the new instance in either case: its state may be written later.
        let written = written.or_else(|error| log.invalidate().and(Err(error)));
        if written.is_ok() && !log.durable.has_failed() {
            log.durable.must_invalidate.store(false, Ordering::Release);
        }
        // Likewise if the journal still has entries of the old instance: the next start finds nothing behind them.
        let cleared = self.state.journal.clear(log.instance());
        written.and(cleared.or_else(|error| log.invalidate().and(Err(error))))
    }

    /// The journal files that have unsynced entries. They count as synced from here on.
    pub(crate) fn take_unsynced(&mut self) -> Vec<std::sync::Arc<std::fs::File>> {
        self.state.journal.take_unsynced()
    }

    /// Prepares the journal for a clean stop ([`Journal::prepare_stop`]).
    pub(crate) fn prepare_stop(&mut self) -> io::Result<()> {
        let must_invalidate = self.log.durable.must_invalidate.load(Ordering::Acquire);
        let is_void = self.state.journal_fails && !must_invalidate;
        self.state.journal.prepare_stop(is_void)
    }

    /// Ends the journal at a clean stop ([`Journal::stop`]).
    pub(crate) fn stop_journal(&mut self) -> io::Result<()> {
        self.state.journal.stop()
    }

    /// The segment that is being filled.
    pub(crate) fn current(&self) -> Option<Arc<Segment<F>>> {
        self.state.current.clone()
    }

    /// The newest segment that the flusher was told to write.
    pub(crate) fn sealed_until(&self) -> u64 {
        self.log.requests.lock().expect("no panic under the lock").sealed
    }

    /// Ends the current segment, full or not; the flusher writes it.
    pub fn seal(&mut self) {
        // Only the buffers hold it from here on, so that the flusher, which may run at once, can give its memory to the
        // next segment.
        let sequence = self.state.current.take().map(|current| current.sequence());
        if let Some(sequence) = sequence {
            match &mut self.flushing {
                Flushing::Deferred { sealed } => *sealed = Some(sequence),
                Flushing::AtOnce => self.request_flush(sequence),
            }
        }
    }

    fn request_flush(&self, sealed: u64) {
        self.log.requests.lock().expect("no panic under the lock").sealed = sealed;
        self.log.requested.notify_all();
    }

    /// Keeps segments sealed from here on off the device until [`resume_flush`](Self::resume_flush), and hides those
    /// opened from a next process: records that span segments must be in the journal before the first of the segments
    /// can be found.
    pub fn defer_flush(&mut self) {
        if matches!(self.flushing, Flushing::AtOnce) {
            self.flushing = Flushing::Deferred { sealed: None };
        }
    }

    /// Lets a next process find the segments that [`defer_flush`](Self::defer_flush) has hidden so far.
    pub fn publish_deferred(&mut self) {
        self.hidden.drain(..).for_each(|segment| segment.begin());
    }

    /// Hands the segments sealed since [`defer_flush`](Self::defer_flush) to the flusher.
    pub fn resume_flush(&mut self) {
        // In ascending order: if a segment is found, all before it are.
        self.hidden.drain(..).for_each(|segment| segment.begin());
        let flushing = std::mem::replace(&mut self.flushing, Flushing::AtOnce);
        if let Flushing::Deferred { sealed: Some(sequence) } = flushing {
            self.request_flush(sequence);
        }
    }

    fn open_next(&mut self) -> Option<Arc<Segment<F>>> {
        let log = self.log;
        let mut buffers = log.buffers.write().expect("no panic under the lock");
        let sequence = buffers.head + 1;
        let slot = match log.queue_is_full(&buffers) {
            true => None,
            false => log.slots.take(&log.geometry, sequence, self.purpose),
        };
        let Some(slot) = slot else {
            drop(buffers);
            log.requests.lock().expect("no panic under the lock").wanted = sequence;
            log.requested.notify_all();
            return None;
        };
        let memory = log.idle.lock().expect("no panic under the lock").pop();
        let memory = memory.unwrap_or_else(|| log.new_buffer());
        let first_block = log.geometry.first_block_of_slot(slot);
        let id = SegmentId { geometry: log.geometry, instance: log.instance(), sequence, first_block };
        let segment = Arc::new(Segment::new(&log.framing, id, memory));
        match self.flushing {
            Flushing::AtOnce => segment.begin(),
            Flushing::Deferred { .. } => self.hidden.push(Arc::clone(&segment)),
        }
        buffers.head = sequence;
        buffers.live.push_back(Arc::clone(&segment));
        log.published.update(&buffers);
        self.state.current = Some(Arc::clone(&segment));
        drop(buffers);
        if !log.may_open(sequence + 1) {
            // The flusher may have gone to sleep while this slot was the empty one ahead: it has to empty the next.
            drop(log.requests.lock().expect("no panic under the lock"));
            log.requested.notify_all();
        }
        Some(segment)
    }
}
