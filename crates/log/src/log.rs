//! The running log: where a block is, and the one writer.

use crate::buffer::AlignedBuffer;
use crate::device::Device;
use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::limits::{RECLAIM_AHEAD_BYTES_MAX, WAIT_FOR_ROOM, WRITE_QUEUE_BYTES_MAX};
use crate::segment::{Segment, WordRule};
use crate::state::{Identity, Left, StateFile, random_number};
use crate::summary::{self, Summary};
use crate::sync::sync::atomic::{AtomicU64, Ordering};
use crate::sync::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::Instant;

/// Gives the words of the records that begin in a block, in order; used where segments carry no
/// summary. Arguments: the salt, the block after its header, its number of records, where the words go.
pub type WordsOf = fn(salt: u64, payload: &[u8], count: u16, words: &mut Vec<u64>);

/// What the log asks of its user. Called without any lock of the log held.
pub trait Consumer: Send + Sync {
    /// A segment is about to be overwritten: forget (or append again) what is in it.
    fn reclaim(&self, segment: &Summary);

    /// As [`reclaim`](Self::reclaim), where the segment could not be read: forget every place in these blocks.
    fn reclaim_unread(&self, blocks: Range<u64>);

    /// A segment could not be written: its records are gone.
    fn lost(&self, segment: &Summary);
}

/// Where a record was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Sequence number of the segment.
    pub sequence: u64,
    /// The block (of the file) that the record begins in.
    pub block: u64,
}

/// Where a block is now.
pub enum Location {
    /// In a write buffer.
    Memory(Arc<Segment>),
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
pub(crate) struct Ring {
    pub head: u64,
    pub live: VecDeque<Arc<Segment>>,
}

impl Ring {
    /// Everything up to here is on the device.
    pub fn durable(&self) -> u64 {
        self.head - self.live.len() as u64
    }
}

/// What the writer alone touches.
pub(crate) struct WriterState {
    pub journal: Journal,
    /// The segment being filled; it is the last of the ring.
    pub current: Option<Arc<Segment>>,
}

/// What the writer tells the flusher.
#[derive(Default)]
pub(crate) struct FlushRequests {
    /// Segments up to this one are full and may be written.
    pub sealed: u64,
    /// The writer could not open this one for want of an empty slot.
    pub wanted: u64,
    pub stop: bool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub bytes_written: AtomicU64,
    pub segments_written: AtomicU64,
    pub write_errors: AtomicU64,
    pub reclaim_errors: AtomicU64,
}

/// The log. Shared by readers, one writer at a time, and one flusher thread that runs [`Log::serve`].
pub struct Log {
    pub(crate) geometry: Geometry,
    pub(crate) instance: AtomicU64,
    pub(crate) fingerprint: u64,
    pub(crate) salt: u64,
    pub(crate) companion: u64,
    pub(crate) device: std::sync::Arc<dyn Device>,
    pub(crate) words_of: WordsOf,
    pub(crate) word_rule: WordRule,
    pub(crate) state: StateFile,
    /// Lock order: writer, ring, segment. No lock is held over device I/O, but for the read lock
    /// of a sealed segment while it is written.
    pub(crate) writer: Mutex<WriterState>,
    pub(crate) ring: RwLock<Ring>,
    /// Segments up to this sequence number may be opened: their slots hold nothing alive.
    pub(crate) free_until: AtomicU64,
    /// Segments that held the slots of those up to this one are being forgotten or were.
    pub(crate) reclaimed_until: AtomicU64,
    /// Segments up to this one hold nothing that the consumer knows: there is nothing to reclaim.
    pub(crate) forgotten: AtomicU64,
    pub(crate) requests: Mutex<FlushRequests>,
    pub(crate) requested: Condvar,
    pub(crate) written: Condvar,
    /// Buffers to use again; at most two stay when idle.
    pub(crate) idle: Mutex<Vec<AlignedBuffer>>,
    pub(crate) counters: Counters,
}

impl Log {
    /// The shape of the log.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Seeds the checksums; another number whenever the content was given up.
    pub fn instance(&self) -> u64 {
        self.instance.load(Ordering::Acquire)
    }

    /// The number that the consumer's words depend on ([`Options::salt`](crate::Options)).
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// The number of what the consumer has of the log beside its files: the one that it named, if that belongs to the
    /// content that was found, or else a new one. 0: it has none.
    pub fn companion(&self) -> u64 {
        self.companion
    }

    /// What reads go to.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Newest sequence number opened so far.
    pub fn head(&self) -> u64 {
        self.read_ring().head
    }

    /// Newest sequence number that was written, as all before it were.
    pub fn durable(&self) -> u64 {
        self.read_ring().durable()
    }

    pub(crate) fn read_ring(&self) -> RwLockReadGuard<'_, Ring> {
        self.ring.read().expect("no panic under the lock")
    }

    /// Where the segment that `block` belongs to is now.
    pub fn locate(&self, block: u64) -> Location {
        let ring = self.read_ring();
        let sequence = self.geometry.sequence_at(self.geometry.slot_of_block(block), ring.head);
        match sequence.checked_sub(ring.durable() + 1) {
            Some(i) => Location::Memory(Arc::clone(&ring.live[i as usize])),
            None => Location::Device { sequence },
        }
    }

    /// Sequence number of the segment that `block` belongs to now; 0: none.
    pub fn sequence_of(&self, block: u64) -> u64 {
        self.geometry.sequence_at(self.geometry.slot_of_block(block), self.head())
    }

    /// Whether what was put there may still be indexed. Asked under a lock that [`Consumer::reclaim`]
    /// takes to forget it: then what it says yes to is forgotten in time.
    pub fn keeps(&self, placed: Placed) -> bool {
        placed.sequence + self.geometry.segments() > self.reclaimed_until.load(Ordering::Acquire)
    }

    /// Longest record that fits a segment, in bytes.
    pub fn record_bytes_max(&self) -> usize {
        let all = self.geometry.blocks_per_segment() as usize;
        let data = (1..=all).rev().find(|data| data + summary::blocks(&self.geometry, *data, 1) <= all);
        data.unwrap_or(0) * self.geometry.payload_size()
    }

    /// The right to append, one holder at a time.
    pub fn writer(&self) -> Writer<'_> {
        Writer { log: self, state: self.writer.lock().expect("no panic under the lock"), held: None }
    }

    /// Whether a segment more may be opened at once: else appends are refused when the current one is full, until the
    /// device has taken one of those that wait for it.
    pub fn is_behind(&self) -> bool {
        if self.geometry.segments() == 1 {
            // A lone segment waits for itself: it is behind from when it is full until it is written.
            let sealed = self.requests.lock().expect("no panic under the lock").sealed;
            let ring = self.read_ring();
            return sealed == ring.head && !ring.live.is_empty();
        }
        let ring = self.read_ring();
        ring.head + 1 > self.free_until.load(Ordering::Acquire) || self.queue_is_full(&ring)
    }

    /// Waits until it is not [behind](Self::is_behind); `false`: it still was at the deadline, or the log has ended.
    pub fn wait_for_room(&self, deadline: Instant) -> bool {
        while self.is_behind() {
            let requests = self.requests.lock().expect("no panic under the lock");
            let left = deadline.saturating_duration_since(Instant::now());
            if requests.stop || left.is_zero() {
                return false;
            }
            // A slot that is emptied makes room as well, and nobody is told of that.
            drop(
                self.written
                    .wait_timeout(requests, left.min(WAIT_FOR_ROOM))
                    .expect("no panic under the lock"),
            );
        }
        true
    }

    fn queue_is_full(&self, ring: &Ring) -> bool {
        let queued = ring.live.len() as u64 * self.geometry.segment_bytes();
        ring.live.len() >= 2 && queued >= self.geometry.share(WRITE_QUEUE_BYTES_MAX)
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let idle: usize = self.idle.lock().expect("no panic under the lock").iter().map(|b| b.len()).sum();
        let live: u64 = self.read_ring().live.iter().map(|segment| segment.bytes_allocated()).sum();
        LogStats {
            bytes_written: get(&self.counters.bytes_written),
            segments_written: get(&self.counters.segments_written),
            write_errors: get(&self.counters.write_errors),
            reclaim_errors: get(&self.counters.reclaim_errors),
            buffer_bytes: live + idle as u64,
        }
    }

    /// How many segments are kept free ahead of the writer. A lone segment keeps its content until
    /// the writer wants it.
    pub(crate) fn ahead(&self) -> u64 {
        let most = (self.geometry.share(RECLAIM_AHEAD_BYTES_MAX) / self.geometry.segment_bytes()).max(1);
        if self.geometry.segments() == 1 { 0 } else { (self.geometry.segments() / 16).clamp(1, most) }
    }

    /// Seals what was appended so far and waits until it is on the device.
    pub fn flush(&self) {
        let sealed = {
            let mut writer = self.writer();
            writer.seal();
            writer.log.head()
        };
        let mut requests = self.requests.lock().expect("no panic under the lock");
        while self.read_ring().durable() < sealed && !requests.stop {
            requests = self.written.wait(requests).expect("no panic under the lock");
        }
    }

    /// Seals, writes and syncs everything, ends [`serve`](Self::serve), and marks the stop as clean.
    /// Nothing may be appended afterwards.
    pub fn stop(&self) -> io::Result<()> {
        self.flush();
        self.requests.lock().expect("no panic under the lock").stop = true;
        self.requested.notify_all();
        self.device.sync()?;
        self.state.write(&self.identity(), Left::Clean, self.head())?;
        self.writer().state.journal.clear(self.instance())
    }

    /// Ends [`serve`](Self::serve) as a kill would: nothing is sealed, nothing marked.
    pub fn abandon(&self) {
        self.requests.lock().expect("no panic under the lock").stop = true;
        self.requested.notify_all();
        self.written.notify_all();
    }

    pub(crate) fn identity(&self) -> Identity {
        let Self { geometry, fingerprint, salt, companion, .. } = *self;
        Identity { geometry, fingerprint, instance: self.instance(), salt, companion }
    }
}

/// The right to append.
pub struct Writer<'a> {
    log: &'a Log,
    state: MutexGuard<'a, WriterState>,
    /// Between `hold` and `release`: the newest segment that was ended (0: none).
    held: Option<u64>,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

impl Writer<'_> {
    /// Appends a record made of `parts`. `None`: the device is behind, or the record is longer than
    /// [`Log::record_bytes_max`]; nothing was written and nobody waited.
    pub fn append(&mut self, word: u64, parts: &[&[u8]]) -> Option<Placed> {
        if let Some(current) = &self.state.current {
            if let Some(block) = current.append(word, parts) {
                return Some(Placed { sequence: current.sequence(), block });
            }
            if parts.iter().map(|p| p.len()).sum::<usize>() > self.log.record_bytes_max() {
                return None;
            }
            self.seal();
        }
        let segment = self.open_next()?;
        let block = segment.append(word, parts)?;
        Some(Placed { sequence: segment.sequence(), block })
    }

    /// The sequence number that the next record will go to, at the least.
    pub fn next_sequence(&self) -> u64 {
        self.state.current.as_ref().map_or_else(|| self.log.head() + 1, |segment| segment.sequence())
    }

    /// Notes that what `words` stand for changes with segment `sequence`, so that a kill before it
    /// is on the device does not bring older records of theirs back.
    ///
    /// If even that small write fails, the log will start empty after a crash.
    pub fn journal(&mut self, sequence: u64, words: &[u64]) {
        let durable = self.log.read_ring().durable();
        if let Err(error) = self.state.journal.append(sequence, durable, words) {
            tracing::error!(%error, "cannot write the journal: after a crash the cache will start empty");
            if let Err(error) = self.log.state.invalidate() {
                tracing::error!(%error, "cannot even truncate the state file");
            }
        }
    }

    /// Gives up everything appended so far, for good: waits for the device, then starts another instance.
    pub fn clear(&mut self) -> io::Result<()> {
        self.seal();
        self.release();
        let log = self.log;
        let mut requests = log.requests.lock().expect("no panic under the lock");
        while !log.read_ring().live.is_empty() && !requests.stop {
            requests = log.written.wait(requests).expect("no panic under the lock");
        }
        drop(requests);
        log.forgotten.store(log.head(), Ordering::Release);
        log.instance.store(random_number(), Ordering::Release);
        if let Err(error) = log.state.write(&log.identity(), Left::Killed, log.head()) {
            // Rather nothing than what was given up.
            log.state.invalidate()?;
            return Err(error);
        }
        self.state.journal.clear(log.instance())
    }

    /// Ends the current segment, full or not; the flusher writes it.
    pub fn seal(&mut self) {
        if let Some(current) = self.state.current.take() {
            match &mut self.held {
                Some(ended) => *ended = current.sequence(),
                None => self.order(current.sequence()),
            }
        }
    }

    fn order(&self, sealed: u64) {
        self.log.requests.lock().expect("no panic under the lock").sealed = sealed;
        self.log.requested.notify_all();
    }

    /// Keeps the segments that end from here on off the device until [`release`](Self::release), for
    /// records that span segments and must be in the journal before the first of these is found whole.
    pub fn hold(&mut self) {
        self.held.get_or_insert(0);
    }

    /// Lets the flusher have what ended since [`hold`](Self::hold).
    pub fn release(&mut self) {
        if let Some(ended) = self.held.take().filter(|ended| *ended > 0) {
            self.order(ended);
        }
    }

    fn open_next(&mut self) -> Option<Arc<Segment>> {
        let log = self.log;
        let mut ring = log.ring.write().expect("no panic under the lock");
        let sequence = ring.head + 1;
        if sequence > log.free_until.load(Ordering::Acquire) || log.queue_is_full(&ring) {
            drop(ring);
            log.requests.lock().expect("no panic under the lock").wanted = sequence;
            log.requested.notify_all();
            return None;
        }
        let memory = log.idle.lock().expect("no panic under the lock").pop();
        let memory = memory.unwrap_or_else(|| AlignedBuffer::zeroed(log.geometry.segment_bytes() as usize));
        let segment = Arc::new(Segment::new(sequence, log.geometry, log.word_rule, memory));
        ring.head = sequence;
        ring.live.push_back(Arc::clone(&segment));
        self.state.current = Some(Arc::clone(&segment));
        drop(ring);
        if sequence >= log.free_until.load(Ordering::Acquire) {
            // The flusher may have gone to sleep while this slot was the empty one ahead: it has to empty the next.
            drop(log.requests.lock().expect("no panic under the lock"));
            log.requested.notify_all();
        }
        Some(segment)
    }
}
