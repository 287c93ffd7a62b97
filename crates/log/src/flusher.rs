//! The one thread off the request path: writes sealed segments, empties slots ahead of the writer.

use crate::framing::{Framing, SealedBlocks};
use crate::limits::{TRANSFER_BUFFERS_MAX, TRANSFER_BYTES_MAX, WRITE_AGAIN_AFTER};
use crate::log::{Consumer, FlushRequests, Log, OnWriteError};
use crate::segment::Segment;
use crate::slots::FifoSlots;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use std::io;
use std::ops::Range;

/// A consumer that panics ends the flusher; this releases the threads that wait for it.
struct AbandonAtPanic<'a, F: Framing>(&'a Log<F>);

impl<F: Framing> Drop for AbandonAtPanic<'_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

impl<F: Framing> Log<F> {
    /// Writes and reclaims until [`Log::stop`]; run it on a thread of its own.
    pub fn run_flusher(&self, consumer: &dyn Consumer<F>) {
        let _guard = AbandonAtPanic(self);
        loop {
            self.reclaim_ahead(consumer);
            let batch = self.next_batch();
            if !batch.is_empty() {
                let done = self.write(&batch, consumer);
                let is_blocked = done < batch.len();
                self.release_written(batch, done);
                if is_blocked && self.rest_while_blocked() {
                    return;
                }
                continue;
            }
            let requests = self.requests.lock().expect("no panic under the lock");
            if requests.stop {
                return;
            }
            let work = requests.sealed > self.read_buffers().newest_written()
                || self.reclaim_range(&requests).is_some();
            if !work {
                drop(self.requested.wait(requests).expect("no panic under the lock"));
            }
        }
    }

    /// The oldest sealed segments that lie side by side, as many as one transfer takes.
    fn next_batch(&self) -> Vec<Arc<Segment<F>>> {
        let requests = self.requests.lock().expect("no panic under the lock");
        let (sealed, stop) = (requests.sealed, requests.stop);
        drop(requests);
        let buffers = self.read_buffers();
        if stop && sealed <= buffers.newest_written() {
            return Vec::new();
        }
        let most = (TRANSFER_BYTES_MAX / self.geometry.segment_bytes()).clamp(1, TRANSFER_BUFFERS_MAX as u64);
        let mut batch: Vec<Arc<Segment<F>>> = Vec::new();
        for segment in buffers.live.iter().take(most as usize) {
            let beside = batch.last().is_none_or(|last| {
                segment.first_block() == last.first_block() + u64::from(self.geometry.blocks_per_segment())
            });
            if segment.sequence() > sealed || !beside {
                break;
            }
            batch.push(Arc::clone(segment));
        }
        batch
    }

    /// Writes segments that lie side by side. Returns how many, counted from the first, are finished: written, or
    /// refused by the device and dropped by the consumer.
    fn write(&self, batch: &[Arc<Segment<F>>], consumer: &dyn Consumer<F>) -> usize {
        if let Some(last) = batch.last() {
            self.sync_before(last.sequence());
        }
        let sealed: Vec<SealedBlocks> = batch.iter().map(|segment| segment.seal(&self.framing)).collect();
        let whole = 0..self.geometry.blocks_per_segment() as usize;
        let is_tried_again = |segment: &Segment<F>, error: &io::Error| {
            self.refused(segment, error, consumer) == OnWriteError::Retry
        };
        if sealed.iter().all(|sealed| sealed.data == whole) {
            let readers: Vec<_> = batch.iter().map(|segment| segment.read()).collect();
            let parts: Vec<&[u8]> = readers.iter().map(|reader| reader.bytes(whole.clone())).collect();
            let written = self.write_blocks(batch[0].first_block(), &parts);
            drop(readers);
            let Err(error) = written else {
                self.count_written(batch.len());
                return batch.len();
            };
            return batch.iter().position(|segment| is_tried_again(segment, &error)).unwrap_or(batch.len());
        }
        let again = batch.iter().zip(sealed).position(|(segment, SealedBlocks { data, summary })| {
            // The data first: a summary on the device vouches for its data.
            let data = self.write_part(segment, data);
            let written =
                data.and_then(|()| self.write_part(segment, summary)).inspect(|()| self.count_written(1));
            written.is_err_and(|error| is_tried_again(segment, &error))
        });
        again.unwrap_or(batch.len())
    }

    fn count_written(&self, segments: usize) {
        self.counters.segments_written.fetch_add(segments as u64, Ordering::Relaxed);
    }

    /// Tells the consumer that the device did not take a segment.
    fn refused(&self, segment: &Segment<F>, error: &io::Error, consumer: &dyn Consumer<F>) -> OnWriteError {
        // Before the consumer removes what is in it from its index: what is changed then is journalled no more.
        segment.end();
        let failed = consumer.on_write_error(&segment.summarize(&self.framing), error);
        self.note_write_error(error, (failed == OnWriteError::Drop).then_some(segment.sequence()));
        match failed {
            OnWriteError::Drop => {
                tracing::error!(
                    %error,
                    "cannot write to the device: the entries of a segment are lost, and at the next start all that are \
                     older"
                )
            }
            OnWriteError::Retry => {
                segment.begin();
                // The failure is logged once, until a write succeeds.
                if !self.requests.lock().expect("no panic under the lock").is_write_blocked {
                    tracing::error!(%error, "cannot write to the device: it is tried again until it can be");
                }
            }
        }
        failed
    }

    fn write_part(&self, segment: &Segment<F>, blocks: Range<usize>) -> io::Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let first = segment.first_block() + blocks.start as u64;
        self.write_blocks(first, &[segment.read().bytes(blocks)])
    }

    fn write_blocks(&self, first_block: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.device.write_at(self.geometry.offset(first_block), parts)?;
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.counters.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Tells waiters that the oldest segment could not be written, and rests. Returns `true` if the log ends.
    fn rest_while_blocked(&self) -> bool {
        let mut requests = self.requests.lock().expect("no panic under the lock");
        requests.is_write_blocked = true;
        self.written.notify_all();
        let (requests, _) =
            self.requested.wait_timeout(requests, WRITE_AGAIN_AFTER).expect("no panic under the lock");
        requests.stop
    }

    /// Takes the first `done` segments of the batch, the oldest in RAM, out of RAM.
    fn release_written(&self, mut batch: Vec<Arc<Segment<F>>>, done: usize) {
        batch.truncate(done);
        if batch.is_empty() {
            return;
        }
        // Before they count as written: later changes are journalled as if nothing of these were in RAM.
        batch.iter().for_each(|segment| segment.end());
        let mut buffers = self.buffers.write().expect("no panic under the lock");
        for _ in &batch {
            buffers.live.pop_front();
        }
        self.published.update(&buffers);
        drop(buffers);
        for segment in batch {
            // A reader may still hold it; then its memory is freed by that reader.
            if let Ok(segment) = Arc::try_unwrap(segment) {
                let mut idle = self.idle.lock().expect("no panic under the lock");
                if idle.len() < self.geometry.idle_buffers_max() {
                    drop(idle);
                    let memory = segment.into_memory(&self.framing);
                    // Private memory that replaced a shared buffer is not reused: the next segment asks for a shared
                    // one.
                    if self.shared_memory.is_none() || memory.is_lent() {
                        idle = self.idle.lock().expect("no panic under the lock");
                        idle.push(memory);
                    }
                }
            }
        }
        let was_blocked = std::mem::replace(
            &mut self.requests.lock().expect("no panic under the lock").is_write_blocked,
            false,
        );
        if was_blocked {
            tracing::info!("the device takes writes again");
        }
        self.written.notify_all();
    }

    /// The range of sequence numbers whose slots are to be emptied now, many at a time.
    fn reclaim_range(&self, requests: &FlushRequests) -> Option<(u64, u64)> {
        let FlushRequests { wanted, reclaims_only_wanted, .. } = *requests;
        let ahead = if reclaims_only_wanted { 0 } else { self.segments_ahead() };
        let free = self.slots.fifo()?.free_until.load(Ordering::Acquire);
        let buffers = self.read_buffers();
        let (head, written) = (buffers.head, buffers.newest_written());
        drop(buffers);
        if free >= wanted.max(head + ahead.div_ceil(2)) {
            return None;
        }
        // The slot's present segment must be on the device, not still in RAM.
        let until = wanted.max(head + ahead).min(written + self.geometry.segments());
        (until > free).then_some((free + 1, until))
    }

    /// Empties slots ahead of the writer, as [`run_flusher`](Self::run_flusher) does. Call it once before `run_flusher`
    /// if the first append must not be refused.
    pub fn reclaim_ahead(&self, consumer: &dyn Consumer<F>) {
        let Some(fifo) = self.slots.fifo() else { return };
        let requests = || self.requests.lock().expect("no panic under the lock");
        loop {
            let Some((mut from, until)) = self.reclaim_range(&requests()) else { return };
            while from <= until {
                let slot = self.geometry.slot(from);
                let most = (TRANSFER_BYTES_MAX / self.geometry.segment_bytes()).max(1);
                let to = until.min(from + most - 1).min(from + self.geometry.segments() - 1 - slot);
                let requests = requests();
                if requests.reclaims_only_wanted && to > requests.wanted {
                    return;
                }
                fifo.reclaimed_until.store(to, Ordering::Release);
                drop(requests);
                self.reclaim(fifo, from..to + 1, consumer);
                fifo.free_until.store(to, Ordering::Release);
                // With the lock taken once, a waiter for room either looks later, or already waits and is notified.
                drop(self.requests.lock().expect("no panic under the lock"));
                self.written.notify_all();
                from = to + 1;
            }
        }
    }

    /// Empties the slots that these segments (side by side) will be written to.
    fn reclaim(&self, fifo: &FifoSlots, sequences: Range<u64>, consumer: &dyn Consumer<F>) {
        let segments = self.geometry.segments();
        // Before what is invalid: a clear invalidates first, and then gives the log another instance, under which no
        // summary of an older segment can be read.
        let source = self.summary_source();
        let invalid_until = fifo.invalid_until.load(Ordering::Acquire);
        let old = |sequence: u64| sequence.checked_sub(segments).filter(|old| *old > invalid_until);
        if old(sequences.end - 1).is_none() {
            return;
        }
        let slots = self.geometry.slot(sequences.start)..self.geometry.slot(sequences.end - 1) + 1;
        let found = self.framing.read(&source, slots);
        for (sequence, summary) in sequences.zip(found) {
            let Some(old) = old(sequence) else { continue };
            match summary {
                Some(summary) if F::position(&summary).0 == old => consumer.reclaim(&summary),
                _ => {
                    self.counters.reclaim_errors.fetch_add(1, Ordering::Relaxed);
                    let first = self.geometry.first_block(old);
                    consumer.reclaim_unread(first..first + u64::from(self.geometry.blocks_per_segment()));
                }
            }
        }
    }
}
