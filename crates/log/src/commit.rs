//! Getting what was appended onto the device, and knowing that it is there.

use crate::commit_state::Failure;
use crate::framing::Framing;
use crate::log::Log;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use std::io;

impl<F: Framing> Log<F> {
    /// Makes everything durable that was appended before the call. The segment that is being filled goes on being
    /// filled where its framing can be committed in parts; else it is sealed. Callers that come while a commit runs
    /// share the next one.
    ///
    /// # Errors
    /// The device refused a write, or a sync now or earlier: a failed sync is never followed by a successful one.
    pub fn commit(&self) -> io::Result<()> {
        let number = self.commits.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut covered = self.commits.running.lock().expect("no panic under the lock");
        if covered.until < number {
            covered.until = self.commits.asked.load(Ordering::Acquire);
            let result = self.commit_now();
            covered.result = result.as_ref().err().map(Failure::of);
            return result;
        }
        covered.result.as_ref().map_or(Ok(()), |failure| Err(failure.error()))
    }

    /// The number of commits that were asked for.
    #[doc(hidden)]
    pub fn commits_asked(&self) -> u64 {
        self.commits.asked.load(Ordering::Acquire)
    }

    fn commit_now(&self) -> io::Result<()> {
        let errors = self.counters.write_errors.load(Ordering::Acquire);
        let mut writer = self.writer();
        let current = writer.current();
        let committed = current.as_ref().map(|segment| segment.commit(&self.framing));
        let part = match (current, committed) {
            (Some(segment), Some(Some((blocks, bytes)))) => Some((segment, blocks, bytes)),
            (Some(_), _) => {
                writer.seal();
                None
            }
            (None, _) => None,
        };
        let sealed = writer.sealed_until();
        drop(writer);
        if let Some((segment, blocks, bytes)) = part.as_ref().filter(|(_, blocks, _)| !blocks.is_empty()) {
            let bytes = &bytes[..blocks.len() * self.geometry.block_size()];
            let offset = self.geometry.offset(segment.first_block() + blocks.start as u64);
            self.device.write_at(offset, &[bytes])?;
            segment.note_written(blocks);
            self.counters.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        // Weak: the segment's memory may be wanted for another one before the sync is done.
        let part = part.map(|(segment, blocks, _)| (Arc::downgrade(&segment), blocks.end));
        self.wait_until_written(sealed, errors)?;
        self.sync()?;
        if let Some((segment, end)) = part.and_then(|(segment, end)| Some((segment.upgrade()?, end))) {
            segment.note_synced(end);
        }
        Ok(())
    }

    /// Seals what was appended so far and waits until it is on the device, where it survives the end of the process.
    /// Unlike a [`commit`](Self::commit) it syncs nothing, waits for no other caller, and tells of segments that were
    /// lost before it, each once.
    ///
    /// # Errors
    /// A segment could not be written meanwhile, or was lost since the flush before.
    pub fn flush(&self) -> io::Result<()> {
        let errors = self.counters.write_errors.load(Ordering::Acquire);
        let mut writer = self.writer();
        writer.seal();
        let sealed = writer.sealed_until();
        drop(writer);
        let written = self.wait_until_written(sealed, errors);
        let lost = self.lost.load(Ordering::Acquire);
        let is_told = self.commits.reported_lost.fetch_max(lost, Ordering::AcqRel) >= lost;
        if is_told { written } else { written.and(Err(self.write_error())) }
    }

    /// Waits until all segments up to `sealed` were written. `errors`: the count of write errors before.
    fn wait_until_written(&self, sealed: u64, errors: u64) -> io::Result<()> {
        let mut requests = self.requests.lock().expect("no panic under the lock");
        let failed = || self.counters.write_errors.load(Ordering::Acquire) != errors;
        let written = || self.read_buffers().newest_written() >= sealed;
        while !(written() || requests.stop || requests.is_write_blocked && failed()) {
            requests = self.written.wait(requests).expect("no panic under the lock");
        }
        drop(requests);
        if failed() {
            return Err(self.write_error());
        }
        if written() { Ok(()) } else { Err(io::Error::other("the log has ended")) }
    }

    /// The error of the last failed write of a segment.
    fn write_error(&self) -> io::Error {
        let error = self.commits.write_error.lock().expect("no panic under the lock");
        error.as_ref().map_or_else(|| io::ErrorKind::Other.into(), Failure::error)
    }

    /// Syncs the device. After a failed sync, all later ones fail.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.device.sync()
    }

    /// The reason why no later write can be made durable; `None`: it can.
    pub fn sync_failure(&self) -> Option<io::Error> {
        self.device.sync_failure()
    }

    /// The error of writing the oldest segment while that is retried; `None`: writes succeed.
    pub fn write_failure(&self) -> Option<io::Error> {
        if !self.requests.lock().expect("no panic under the lock").is_write_blocked {
            return None;
        }
        let error = self.commits.write_error.lock().expect("no panic under the lock");
        error.as_ref().map(Failure::error)
    }

    /// Notes that a segment could not be written. `lost`: its number, if it was dropped.
    pub(crate) fn note_write_error(&self, error: &io::Error, lost: Option<u64>) {
        *self.commits.write_error.lock().expect("no panic under the lock") = Some(Failure::of(error));
        // In this order a thread that sees the counter sees the lost segment, and one that sees that sees the error.
        self.lost.fetch_max(lost.unwrap_or(0), Ordering::AcqRel);
        self.counters.write_errors.fetch_add(1, Ordering::AcqRel);
    }
}
