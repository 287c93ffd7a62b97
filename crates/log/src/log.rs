//! The running log: where a block is, and whether there is room.

use crate::buffer::AlignedBuffer;
use crate::commit_state::Commits;
use crate::device::Device;
use crate::durable_state::DurableState;
use crate::framing::{Framing, SummarySource};
use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::limits::{RECLAIM_AHEAD_BYTES_MAX, WAIT_FOR_ROOM, WRITE_QUEUE_BYTES_MAX};
use crate::segment::Segment;
use crate::shared_memory::SharedMemory;
use crate::slots::{FifoSlots, Slots};
use crate::state::{Identity, LastShutdown, StateFile};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::Instant;

/// The state that only the holder of the writer's lock touches.
pub(crate) struct WriterState<F: Framing> {
    pub journal: Journal,
    /// The last append to the journal failed.
    pub journal_fails: bool,
    /// The segment being filled, the last of the segments in RAM.
    pub current: Option<Arc<Segment<F>>>,
}

/// The consumer's choice for a segment that could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWriteError {
    /// The segment is dropped from RAM; its content is lost.
    Drop,
    /// It stays in RAM and is written again later; the segments after it wait.
    Retry,
}

/// Callbacks that the log's user implements. Called without any lock of the log held.
pub trait Consumer<F: Framing>: Send + Sync {
    /// Called before a segment is overwritten: forget its records, or append them again.
    fn reclaim(&self, segment: &F::Summary);

    /// Like [`reclaim`](Self::reclaim), for a segment that could not be read: forget every place in `blocks`.
    fn reclaim_unread(&self, blocks: Range<u64>);

    /// Called when a segment could not be written. If it is dropped, its records are lost.
    fn on_write_error(&self, segment: &F::Summary, error: &io::Error) -> OnWriteError;
}

/// The current place of a block.
pub enum Location<F: Framing> {
    /// In a write buffer.
    WriteBuffer(Arc<Segment<F>>),
    /// On the device, written as part of the segment with this sequence number.
    Device {
        /// The sequence number that the block must carry.
        sequence: u64,
    },
}

/// Counters since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes written to the device.
    pub bytes_written: u64,
    /// Segments written.
    pub segments_written: u64,
    /// Segments that could not be written.
    pub write_errors: u64,
    /// Summaries or segments that could not be read when reclaimed.
    pub reclaim_errors: u64,
    /// Bytes of RAM in write buffers now.
    pub buffer_bytes: u64,
}

/// Segments in RAM are the newest: sequence numbers `head - live.len() + 1 ..= head`.
pub(crate) struct Buffers<F: Framing> {
    pub head: u64,
    pub live: VecDeque<Arc<Segment<F>>>,
}

impl<F: Framing> Buffers<F> {
    /// Everything up to here is on the device.
    pub fn newest_written(&self) -> u64 {
        self.head - self.live.len() as u64
    }
}

/// The sequence numbers of [`Buffers`], for readers without its lock. Written under its write lock.
pub(crate) struct PublishedSequences {
    pub head: AtomicU64,
    pub newest_written: AtomicU64,
}

impl PublishedSequences {
    pub fn new(head: u64) -> Self {
        Self { head: AtomicU64::new(head), newest_written: AtomicU64::new(head) }
    }

    pub fn update<F: Framing>(&self, buffers: &Buffers<F>) {
        self.head.store(buffers.head, Ordering::Release);
        self.newest_written.store(buffers.newest_written(), Ordering::Release);
    }
}

/// The writer's orders to the flusher.
#[derive(Default)]
pub(crate) struct FlushRequests {
    /// Segments up to this one are full and may be written.
    pub sealed: u64,
    /// The segment that the writer could not open for want of an empty slot.
    pub wanted: u64,
    /// The oldest segment could not be written and will be tried again.
    pub is_write_blocked: bool,
    /// Slots are emptied no earlier than the writer wants them.
    pub reclaims_only_wanted: bool,
    pub stop: bool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub bytes_written: AtomicU64,
    pub segments_written: AtomicU64,
    pub write_errors: AtomicU64,
    pub reclaim_errors: AtomicU64,
}

/// The log. Shared by readers, one writer at a time, and one flusher thread that runs [`Log::run_flusher`].
pub struct Log<F: Framing> {
    pub(crate) geometry: Geometry,
    pub(crate) instance: AtomicU64,
    pub(crate) fingerprint: u64,
    /// The number that the content depends on ([`Options::depends_on`](crate::Options::depends_on)).
    pub(crate) depends_on: u64,
    pub(crate) salt: u64,
    pub(crate) memory_id: u64,
    pub(crate) shared_memory: Option<std::sync::Arc<dyn SharedMemory>>,
    pub(crate) device: std::sync::Arc<dyn Device>,
    pub(crate) framing: F,
    pub(crate) state: Mutex<StateFile>,
    /// Lock order: commits, writer, state, buffers, segment. No lock is held over device I/O, except the read lock of a
    /// sealed segment while it is written, the lock of commits, and the lock of the device's syncs.
    pub(crate) writer: Mutex<WriterState<F>>,
    pub(crate) buffers: RwLock<Buffers<F>>,
    pub(crate) published: PublishedSequences,
    pub(crate) slots: Slots,
    pub(crate) commits: Commits,
    pub(crate) durable: DurableState,
    pub(crate) requests: Mutex<FlushRequests>,
    pub(crate) requested: Condvar,
    pub(crate) written: Condvar,
    /// Whether the shared memory had no room for the last buffer that it was asked for.
    pub(crate) lacks_buffers: AtomicBool,
    /// Buffers to use again, at most two.
    pub(crate) idle: Mutex<Vec<AlignedBuffer>>,
    /// The newest segment that the device refused and the consumer dropped; 0: none.
    pub(crate) lost: AtomicU64,
    pub(crate) counters: Counters,
}

impl<F: Framing> Log<F> {
    /// The shape of the log.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Seeds the checksums; another number whenever the content was given up.
    pub fn instance(&self) -> u64 {
        self.instance.load(Ordering::Acquire)
    }

    /// The number that the consumer's summary entries depend on ([`Options::salt`](crate::Options)).
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// The number of the shared memory: the one found there, if it belongs to the content that was found, or else a new
    /// one. 0: there is none.
    pub fn memory_id(&self) -> u64 {
        self.memory_id
    }

    /// Zeroed memory for a segment.
    pub(crate) fn new_buffer(&self) -> AlignedBuffer {
        let bytes = self.geometry.segment_bytes() as usize;
        let Some(memory) = &self.shared_memory else { return AlignedBuffer::zeroed(bytes) };
        let lent = memory.buffer(bytes);
        let lacked = self.lacks_buffers.swap(lent.is_none(), Ordering::Relaxed);
        match (lacked, &lent) {
            (false, None) => {
                tracing::warn!("a write buffer has no room in the file in memory: a kill loses it")
            }
            (true, Some(_)) => tracing::info!("write buffers are in the file in memory again"),
            _ => {}
        }
        lent.unwrap_or_else(|| AlignedBuffer::zeroed(bytes))
    }

    /// The device that reads go to.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Newest sequence number opened so far.
    pub fn head(&self) -> u64 {
        self.published.head.load(Ordering::Acquire)
    }

    /// Slots of segments that were opened since the log was made or cleared.
    pub fn segments_used(&self) -> u64 {
        // A clear that goes on meanwhile may have invalidated the head that was read.
        self.head().saturating_sub(self.slots.invalid_until()).min(self.geometry.segments())
    }

    /// Newest sequence number that was written, as all before it were.
    pub fn newest_written(&self) -> u64 {
        self.published.newest_written.load(Ordering::Acquire)
    }

    pub(crate) fn read_buffers(&self) -> RwLockReadGuard<'_, Buffers<F>> {
        self.buffers.read().expect("no panic under the lock")
    }

    /// Locates the segment that `block` belongs to.
    pub fn locate(&self, block: u64) -> Location<F> {
        // A segment that is on the device stays there until its slot is used again, which the reader has to notice
        // anyway.
        let sequence = self.sequence_of(block);
        if sequence <= self.newest_written() {
            return Location::Device { sequence };
        }
        let buffers = self.read_buffers();
        let sequence = self.slots.sequence(&self.geometry, self.geometry.slot_of_block(block), buffers.head);
        match sequence.checked_sub(buffers.newest_written() + 1) {
            Some(i) => Location::WriteBuffer(Arc::clone(&buffers.live[i as usize])),
            None => Location::Device { sequence },
        }
    }

    /// Sequence number of the segment that `block` belongs to now; 0: none.
    pub fn sequence_of(&self, block: u64) -> u64 {
        self.slots.sequence(&self.geometry, self.geometry.slot_of_block(block), self.head())
    }

    /// Whether entries of this segment may still be added to the index. Call it under the lock that
    /// [`Consumer::reclaim`] takes to forget them, so that `reclaim` removes the added entry again.
    pub fn may_index(&self, sequence: u64) -> bool {
        self.slots.may_index(sequence, &self.geometry)
    }

    /// The layout of segments.
    pub fn framing(&self) -> &F {
        &self.framing
    }

    /// The [`SummarySource`] from which [`Framing::read`] reads summaries.
    pub fn summary_source(&self) -> SummarySource<'_> {
        let Self { geometry, device, salt, .. } = self;
        SummarySource { geometry, instance: self.instance(), salt: *salt, device: &**device }
    }

    /// Frees a slot whose segment holds nothing alive, in RAM or on the device; it may be overwritten from here on.
    /// Only for a log with [`SlotOrder::Table`](crate::SlotOrder::Table).
    pub fn release_slot(&self, slot: u64) {
        self.slots.table().expect("a fifo empties its slots by itself").release(slot);
        // Waiters for room look again.
        let _requests = self.requests.lock().expect("no panic under the lock");
        self.written.notify_all();
    }

    /// Removes a slot from the free slots for good: its content is unknown and may be needed. Only for a log with
    /// [`SlotOrder::Table`](crate::SlotOrder::Table).
    pub fn retire_slot(&self, slot: u64) {
        if let Some(table) = self.slots.table() {
            table.retire(slot);
        }
    }

    /// The number of free slots, including those reserved for moving.
    pub fn free_slots(&self) -> u64 {
        self.slots.free_slots(self.head())
    }

    /// The sequence number of the segment in a slot; 0: none was ever there.
    pub fn sequence_of_slot(&self, slot: u64) -> u64 {
        self.slots.sequence(&self.geometry, slot, self.head())
    }

    /// Whether no further segment can be opened at once: when the current one is full, appends are refused until the
    /// device has taken a waiting segment.
    pub fn is_behind(&self) -> bool {
        if self.geometry.segments() == 1 && self.slots.fifo().is_some() {
            // With one segment the writer is behind from its sealing until it is written.
            let sealed = self.requests.lock().expect("no panic under the lock").sealed;
            let buffers = self.read_buffers();
            return sealed == buffers.head && !buffers.live.is_empty();
        }
        let buffers = self.read_buffers();
        !self.may_open(buffers.head + 1) || self.queue_is_full(&buffers)
    }

    /// Waits until the log is not [behind](Self::is_behind). Returns `false` at the deadline, or if the log has ended.
    pub fn wait_for_room(&self, deadline: Instant) -> bool {
        self.wait_while(deadline, || self.is_behind() || self.wants_lone_slot())
    }

    /// Whether the only slot has to be emptied before anything is appended. If so, it requests that; until then the
    /// slot keeps its content.
    fn wants_lone_slot(&self) -> bool {
        let buffers = self.read_buffers();
        let next = buffers.head + 1;
        if self.geometry.segments() > 1 || !buffers.live.is_empty() || self.may_open(next) {
            return false;
        }
        drop(buffers);
        self.requests.lock().expect("no panic under the lock").wanted = next;
        self.requested.notify_all();
        true
    }

    /// Like [`wait_for_room`](Self::wait_for_room), for a writer that may take the slots reserved for moving.
    pub fn wait_for_room_to_move(&self, deadline: Instant) -> bool {
        self.wait_while(deadline, || !self.has_room_to_move())
    }

    /// Whether a writer that may take the slots reserved for moving can open a further segment at once.
    pub fn has_room_to_move(&self) -> bool {
        self.free_slots() > 0 && !self.queue_is_full(&self.read_buffers())
    }

    fn wait_while(&self, deadline: Instant, is_behind: impl Fn() -> bool) -> bool {
        while is_behind() {
            let requests = self.requests.lock().expect("no panic under the lock");
            let left = deadline.saturating_duration_since(Instant::now());
            if requests.stop || left.is_zero() {
                return false;
            }
            drop(
                self.written
                    .wait_timeout(requests, left.min(WAIT_FOR_ROOM))
                    .expect("no panic under the lock"),
            );
        }
        true
    }

    /// Whether the slot of a segment is empty.
    pub(crate) fn may_open(&self, sequence: u64) -> bool {
        self.slots.may_open(sequence)
    }

    pub(crate) fn queue_is_full(&self, buffers: &Buffers<F>) -> bool {
        let queued = buffers.live.len() as u64 * self.geometry.segment_bytes();
        buffers.live.len() >= 2 && queued >= self.geometry.share(WRITE_QUEUE_BYTES_MAX)
    }

    /// Segments written to the device since the log was opened.
    pub fn segments_written(&self) -> u64 {
        self.counters.segments_written.load(Ordering::Relaxed)
    }

    /// Counters. It may wait for a segment that is being written.
    pub fn stats(&self) -> LogStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let idle: usize = self.idle.lock().expect("no panic under the lock").iter().map(|b| b.len()).sum();
        // No thread waits for the buffers meanwhile.
        let live = self.read_buffers().live.clone();
        let live: u64 = live.into_iter().map(|segment| segment.bytes_allocated()).sum();
        LogStats {
            bytes_written: get(&self.counters.bytes_written),
            segments_written: self.segments_written(),
            write_errors: get(&self.counters.write_errors),
            reclaim_errors: get(&self.counters.reclaim_errors),
            buffer_bytes: live + idle as u64,
        }
    }

    /// The number of segments that are kept free ahead of the writer. A lone segment keeps its content until the writer
    /// wants it.
    pub(crate) fn segments_ahead(&self) -> u64 {
        let most = (self.geometry.share(RECLAIM_AHEAD_BYTES_MAX) / self.geometry.segment_bytes()).max(1);
        if self.geometry.segments() == 1 { 0 } else { (self.geometry.segments() / 16).clamp(1, most) }
    }

    /// From now on a slot is emptied only when the writer wants it, so that a stop gives up no content for segments
    /// that will not be written. When this returns, no slot is being emptied. Do not call it under a lock that
    /// [`Consumer::reclaim`] takes.
    pub fn stop_reclaiming_ahead(&self) {
        let Some(FifoSlots { free_until, reclaimed_until, .. }) = self.slots.fifo() else { return };
        let mut requests = self.requests.lock().expect("no panic under the lock");
        requests.reclaims_only_wanted = true;
        while reclaimed_until.load(Ordering::Acquire) > free_until.load(Ordering::Acquire) && !requests.stop {
            let waited = self.written.wait_timeout(requests, WAIT_FOR_ROOM);
            (requests, _) = waited.expect("no panic under the lock");
        }
    }

    /// Seals, writes and syncs everything, ends [`run_flusher`](Self::run_flusher), and marks the stop as clean.
    /// Nothing may be appended afterwards.
    pub fn stop(&self) -> io::Result<()> {
        let flushed = self.flush();
        let kept = self.read_buffers().live.is_empty();
        self.requests.lock().expect("no panic under the lock").stop = true;
        self.requested.notify_all();
        // A commit that began after the flush fails: the flusher may have ended before what it waits for is written.
        self.written.notify_all();
        // A lost segment is no reason to lose the rest.
        if !kept {
            flushed?;
        }
        self.sync()?;
        self.writer().prepare_stop()?;
        let state = self.state.lock().expect("no panic under the lock");
        state.write(&self.identity(), LastShutdown::Clean, self.head())?;
        drop(state);
        self.writer().stop_journal()
    }

    /// Checks that the next start will serve all that is on the device: it would find a lost segment as a hole, and
    /// nothing before a hole is served. In time the ring passes over the hole.
    ///
    /// # Errors
    /// The next start will find a hole.
    pub fn check_no_gap(&self) -> io::Result<()> {
        if self.slots.fifo().is_none() {
            return Ok(());
        }
        let lost = self.lost.load(Ordering::Acquire);
        // Before the oldest segment there is nothing to lose.
        let is_found = lost > self.slots.invalid_until() && lost + self.geometry.segments() > self.head() + 1;
        match is_found {
            true => Err(io::Error::other(
                "a write buffer could not be written, and what was put before it is not there at the next start",
            )),
            false => Ok(()),
        }
    }

    /// Ends [`run_flusher`](Self::run_flusher) as a kill would: nothing is sealed, and the stop is not marked as clean.
    pub fn abandon(&self) {
        self.requests.lock().expect("no panic under the lock").stop = true;
        self.requested.notify_all();
        self.written.notify_all();
    }

    pub(crate) fn identity(&self) -> Identity {
        let Self { geometry, fingerprint, salt, memory_id, depends_on, .. } = *self;
        Identity { geometry, fingerprint, instance: self.instance(), salt, memory_id, depends_on }
    }
}
