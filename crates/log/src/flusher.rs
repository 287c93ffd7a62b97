//! The one thread off the request path: writes sealed segments, empties slots ahead of the writer.

use crate::limits::{TRANSFER_BUFFERS_MAX, TRANSFER_BYTES_MAX};
use crate::log::{Consumer, Log};
use crate::open::read_slots;
use crate::segment::Segment;
use crate::sync::sync::Arc;
use crate::sync::sync::atomic::Ordering;

/// A consumer that panics ends the flusher: nobody may wait for it then.
struct AbandonAtPanic<'a>(&'a Log);

impl Drop for AbandonAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

impl Log {
    /// Writes and reclaims until [`Log::stop`]; run it on a thread of its own.
    pub fn serve(&self, consumer: &dyn Consumer) {
        let _guard = AbandonAtPanic(self);
        loop {
            self.reclaim_ahead(consumer);
            let batch = self.next_batch();
            if !batch.is_empty() {
                self.write(&batch, consumer);
                self.retire(batch);
                continue;
            }
            let requests = self.requests.lock().expect("no panic under the lock");
            if requests.stop {
                return;
            }
            let work =
                requests.sealed > self.read_ring().durable() || self.reclaim_range(requests.wanted).is_some();
            if !work {
                drop(self.requested.wait(requests).expect("no panic under the lock"));
            }
        }
    }

    /// The oldest sealed segments that lie side by side, as many as one transfer takes.
    fn next_batch(&self) -> Vec<Arc<Segment>> {
        let requests = self.requests.lock().expect("no panic under the lock");
        let (sealed, stop) = (requests.sealed, requests.stop);
        drop(requests);
        let ring = self.read_ring();
        if stop && sealed <= ring.durable() {
            return Vec::new();
        }
        let most = (TRANSFER_BYTES_MAX / self.geometry.segment_bytes()).clamp(1, TRANSFER_BUFFERS_MAX as u64);
        let mut batch: Vec<Arc<Segment>> = Vec::new();
        for segment in ring.live.iter().take(most as usize) {
            let wraps = !batch.is_empty() && self.geometry.slot(segment.sequence()) == 0;
            if segment.sequence() > sealed || wraps {
                break;
            }
            batch.push(Arc::clone(segment));
        }
        batch
    }

    fn write(&self, batch: &[Arc<Segment>], consumer: &dyn Consumer) {
        let mut failed = Ok(());
        let mut bytes = 0;
        if self.geometry.has_summary() {
            // The data first: a summary on the device says that all it speaks of is there too.
            for segment in batch {
                let sealed = segment.seal(self.instance());
                let first = self.geometry.first_block(segment.sequence());
                let reader = segment.read();
                for blocks in [sealed.data, sealed.summary] {
                    let offset = self.geometry.offset(first + blocks.start as u64);
                    let part = reader.bytes(blocks);
                    bytes += part.len() as u64;
                    let result = if part.is_empty() { Ok(()) } else { self.device.write_at(offset, &[part]) };
                    failed = failed.and(result);
                }
            }
        } else {
            for segment in batch {
                segment.seal(self.instance());
            }
            let readers: Vec<_> = batch.iter().map(|segment| segment.read()).collect();
            let all = 0..self.geometry.blocks_per_segment() as usize;
            let parts: Vec<&[u8]> = readers.iter().map(|reader| reader.bytes(all.clone())).collect();
            bytes += batch.len() as u64 * self.geometry.segment_bytes();
            let offset = self.geometry.offset(self.geometry.first_block(batch[0].sequence()));
            failed = self.device.write_at(offset, &parts);
        }
        self.counters.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        self.counters.segments_written.fetch_add(batch.len() as u64, Ordering::Relaxed);
        if let Err(error) = failed {
            tracing::error!(%error, "cannot write to the device: the entries of a segment are lost");
            self.counters.write_errors.fetch_add(batch.len() as u64, Ordering::Relaxed);
            for segment in batch {
                consumer.lost(&segment.summary());
            }
        }
    }

    /// Takes written segments out of RAM.
    fn retire(&self, batch: Vec<Arc<Segment>>) {
        let mut ring = self.ring.write().expect("no panic under the lock");
        for _ in &batch {
            ring.live.pop_front();
        }
        drop(ring);
        for segment in batch {
            // A reader may still hold it; then its memory is freed by that reader.
            if let Ok(segment) = Arc::try_unwrap(segment) {
                let mut idle = self.idle.lock().expect("no panic under the lock");
                if idle.len() < self.geometry.idle_buffers_max() {
                    drop(idle);
                    let memory = segment.into_memory();
                    idle = self.idle.lock().expect("no panic under the lock");
                    idle.push(memory);
                }
            }
        }
        let _requests = self.requests.lock().expect("no panic under the lock");
        self.written.notify_all();
    }

    /// Sequence numbers whose slots are to be emptied now: whole stretches, not one at a time.
    fn reclaim_range(&self, wanted: u64) -> Option<(u64, u64)> {
        let free = self.free_until.load(Ordering::Acquire);
        let ring = self.read_ring();
        let (head, durable) = (ring.head, ring.durable());
        drop(ring);
        if free >= wanted.max(head + self.ahead().div_ceil(2)) {
            return None;
        }
        // What the slot holds now must be on the device, not still in RAM.
        let until = wanted.max(head + self.ahead()).min(durable + self.geometry.segments());
        (until > free).then_some((free + 1, until))
    }

    /// Empties slots ahead of the writer. [`serve`](Self::serve) does; call it once before, where
    /// the first append must not be refused.
    pub fn reclaim_ahead(&self, consumer: &dyn Consumer) {
        let wanted = || self.requests.lock().expect("no panic under the lock").wanted;
        while let Some((mut from, until)) = self.reclaim_range(wanted()) {
            while from <= until {
                let slot = self.geometry.slot(from);
                let most = (TRANSFER_BYTES_MAX / self.geometry.segment_bytes()).max(1);
                let to = until.min(from + most - 1).min(from + self.geometry.segments() - 1 - slot);
                self.reclaimed_until.store(to, Ordering::Release);
                self.reclaim(from..to + 1, consumer);
                self.free_until.store(to, Ordering::Release);
                from = to + 1;
            }
        }
    }

    /// Empties the slots that these segments (side by side) will be written to.
    fn reclaim(&self, sequences: std::ops::Range<u64>, consumer: &dyn Consumer) {
        let segments = self.geometry.segments();
        let forgotten = self.forgotten.load(Ordering::Acquire);
        let old = |sequence: u64| sequence.checked_sub(segments).filter(|old| *old > forgotten);
        if old(sequences.end - 1).is_none() {
            return;
        }
        let slots = self.geometry.slot(sequences.start)..self.geometry.slot(sequences.end - 1) + 1;
        let reader = self.slot_reader();
        let found = read_slots(&reader, slots);
        for (sequence, summary) in sequences.zip(found) {
            let Some(old) = old(sequence) else { continue };
            match summary {
                Some(summary) if summary.sequence == old => consumer.reclaim(&summary),
                _ => {
                    self.counters.reclaim_errors.fetch_add(1, Ordering::Relaxed);
                    let first = self.geometry.first_block(old);
                    consumer.reclaim_unread(first..first + u64::from(self.geometry.blocks_per_segment()));
                }
            }
        }
    }
}
