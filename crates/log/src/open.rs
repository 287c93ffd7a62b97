//! Opening a log: what the process before left, and which of it may be served again.

use crate::device::{Device, FileDevice, OpenDeviceError};
use crate::geometry::Geometry;
use crate::journal::{self, Journal};
use crate::limits::{SCRUB_TRIES_MAX, TRANSFER_BYTES_MAX, WRITE_QUEUE_BYTES_MAX};
use crate::lock::is_locked;
use crate::log::{Counters, FlushRequests, Log, Ring, WordsOf, WriterState};
use crate::partitions::Partition;
use crate::segment::WordRule;
use crate::state::{self, Identity, Known, Left, Peeked, StateFile, beside, companion_number, random_number};
use crate::summary::{self, Summary};
use crate::sync::sync::atomic::AtomicU64;
use crate::sync::sync::{Condvar, Mutex, RwLock};
use crate::{AlignedBuffer, block};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a log lies and what its shape is.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data: a file of exactly the geometry's size, or a block device.
    pub path: PathBuf,
    /// Where the small state and journal files go: `<this>.state`, `<this>.journal.0` and `.1`.
    pub state_path: PathBuf,
    /// The shape.
    pub geometry: Geometry,
    /// A number that stands for what the consumer stores; another one starts empty.
    pub fingerprint: u64,
    /// A number that the consumer's words depend on, kept with the content; another one starts empty. `None`: the
    /// one that is there, or a random one.
    pub salt: Option<u64>,
    /// How the words of a block are found.
    pub words_of: WordsOf,
    /// Which records may share a block. Part of the content: another rule wants another fingerprint.
    pub word_rule: WordRule,
    /// Of each partition the number of its companion, which is what the consumer has of the log beside its files (0:
    /// nothing yet). Whoever opens the log without naming it makes it void: [`Log::companion`] says which number is
    /// right from now on. Empty: the consumer has none.
    pub companions: Vec<u64>,
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The sizes do not fit together.
    #[error(transparent)]
    Geometry(#[from] crate::GeometryError),
    /// The data file or device.
    #[error(transparent)]
    Device(#[from] OpenDeviceError),
    /// The state or journal files.
    #[error("cannot use the state files of {path}: {source}")]
    State {
        /// What their names begin with.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Another cache has it open.
    #[error("{path} is in use by another cache: give each its own PATH")]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// An option that makes no sense.
    #[error("{option}: {reason}")]
    Invalid {
        /// Its name.
        option: &'static str,
        /// What is wrong with it, and what to give instead.
        reason: String,
    },
    /// Somebody else's file lies where a log's would: it would be overwritten.
    #[error("{path} is there already, and is no cache of Granary's: move it away, or choose another path")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Whoever uses the log wants to overwrite one segment while it keeps another.
    #[error("{path} has room for one write buffer: make file_size at least twice write_buffer_size")]
    OneSegment {
        /// The path.
        path: PathBuf,
    },
}

/// What may be served again, for the consumer to take in.
#[derive(Debug, Default)]
pub struct Recovered {
    /// In order of sequence number; a gap of a segment that was lost is in `lost`.
    pub segments: Vec<Summary>,
    /// (sequence number, words) of changes whose segments never reached the device: older records
    /// of these words are void.
    pub lost: BTreeMap<u64, Vec<u64>>,
}

/// What lies where a log is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or a log with this fingerprint. A block device is whatever it was made.
    Fitting,
    /// A log with another fingerprint, in this file.
    Another(PathBuf),
    /// A file that is no log's.
    Foreign(PathBuf),
}

impl Options {
    /// Looks at the place of so many logs without touching it.
    ///
    /// # Errors
    /// What the operating system says of a file that is there.
    pub fn found(&self, partitions: u64) -> io::Result<Found> {
        let has_data = has_bytes(&self.path)?;
        let state = beside(&self.state_path, ".state");
        let peeked = state::peek(&state)?;
        if peeked == Peeked::Nothing && has_data {
            return Ok(Found::Foreign(self.path.clone()));
        }
        if let Some(foreign) = self.foreign_beside(partitions)? {
            return Ok(Found::Foreign(foreign));
        }
        Ok(match peeked {
            Peeked::Known(found) if found != self.fingerprint_of(0, partitions) => {
                Found::Another(if has_data { self.path.clone() } else { state })
            }
            _ => Found::Fitting,
        })
    }
}

/// Whether there is a file with something in it. A block device is none.
pub(crate) fn has_bytes(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(found.is_file() && found.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The right to the log.
pub(crate) fn lock(options: &Options) -> Result<StateFile, OpenError> {
    StateFile::open(&beside(&options.state_path, ".state"))
        .map_err(|source| OpenError::State { path: options.state_path.clone(), source })?
        .map_err(|_| OpenError::InUse { path: options.path.clone() })
}

impl Log {
    /// Opens the log in a file or on a block device.
    pub fn open(options: &Options) -> Result<(Self, Recovered), OpenError> {
        let mut logs = Self::open_partitions(options, 1)?;
        Ok(logs.pop().expect("one partition is one log"))
    }

    /// As [`open`](Self::open), on a device at hand; `options.path` is not touched.
    pub fn open_on(device: Box<dyn Device>, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let mut logs = Self::open_partitions_on(device, options, 1)?;
        Ok(logs.pop().expect("one partition is one log"))
    }

    /// Opens a file as several logs, each with a part of it and state and journal files of its own. Opened as
    /// another number of logs than before, all are empty.
    pub fn open_partitions(options: &Options, partitions: u64) -> Result<Vec<(Self, Recovered)>, OpenError> {
        let found = options.found(partitions);
        let found = found.map_err(|source| OpenError::State { path: options.path.clone(), source })?;
        if let Found::Foreign(path) = found {
            // Another cache's, with its state elsewhere.
            let is_in_use = path == options.path && is_locked(&path);
            return Err(if is_in_use { OpenError::InUse { path } } else { OpenError::Foreign { path } });
        }
        let mut files = options.state_files(partitions);
        files.push(options.path.clone());
        files.retain(|file| std::fs::symlink_metadata(file).is_err());
        // The locks first: another cache's file must not be cut to our size.
        let partitions = Partition::of(options, partitions)?;
        let geometry = &options.geometry;
        let device = FileDevice::open_in_units(&options.path, geometry.file_bytes(), geometry.block_size());
        let device = device.map_err(|error| match error {
            OpenDeviceError::InUse { path } => {
                // It may have come meanwhile, and is another's.
                files.retain(|file| *file != path);
                OpenError::InUse { path }
            }
            other => OpenError::Device(other),
        });
        // Nobody else opens the files before what was not there is gone again.
        let mut holds = Vec::with_capacity(partitions.len());
        let held = partitions.iter().try_for_each(|partition| partition.hold().map(|hold| holds.push(hold)));
        let opened =
            held.and(device).and_then(|device| Partition::start_all(partitions, options, Arc::new(device)));
        let opened = opened.inspect_err(|_| files.iter().for_each(|file| drop(std::fs::remove_file(file))));
        drop(holds);
        opened
    }

    /// The same on a device at hand; `options.path` is not touched.
    pub fn open_partitions_on(
        device: Box<dyn Device>,
        options: &Options,
        partitions: u64,
    ) -> Result<Vec<(Self, Recovered)>, OpenError> {
        let foreign = options.foreign_beside(partitions);
        let foreign =
            foreign.map_err(|source| OpenError::State { path: options.state_path.clone(), source })?;
        if let Some(path) = foreign {
            return Err(OpenError::Foreign { path });
        }
        Partition::start_all(Partition::of(options, partitions)?, options, device.into())
    }

    pub(crate) fn start(
        device: Arc<dyn Device>,
        state: StateFile,
        options: &Options,
        salt: u64,
    ) -> Result<(Self, Recovered), OpenError> {
        let Options { state_path, geometry, fingerprint, words_of, word_rule, companions, .. } = options;
        let (geometry, fingerprint) = (*geometry, *fingerprint);
        let state_error = |source| OpenError::State { path: state_path.clone(), source };
        let known = Some(state.read(&geometry, fingerprint)).filter(|known| known.salt == salt);
        let Known { left, instance, head: known_head, companion, .. } = known.unwrap_or(Known::NOTHING);
        let known_instance = instance;
        let mut instance = if left == Left::Unknown { random_number() } else { instance };
        let mut recovered = Recovered::default();
        let mut head = 0;
        if left != Left::Unknown {
            let (geometry, words_of) = (&geometry, *words_of);
            let reader = SlotReader { geometry, instance, salt, device: &*device, words_of };
            let records = match left {
                Left::Killed => journal::read(state_path, instance).map_err(state_error)?,
                _ => Vec::new(),
            };
            (recovered, head) = recover(&reader, records, known_head);
            if left == Left::Killed && reader.scrub(head).is_err() {
                tracing::warn!("cannot remove what the last process left half written: starting empty");
                (recovered, head, instance) = (Recovered::default(), 0, random_number());
            }
        }
        // What was lost stays in the journal until the consumer has appended it as deletions.
        let words = recovered.lost.values().flatten().copied().collect();
        let carried = journal::Record { sequence: head + 1, durable: head, words };
        let journal = Journal::create(state_path, instance, &carried).map_err(state_error)?;
        let companion = match companions.first() {
            None => 0,
            // It goes with the content.
            Some(named)
                if *named != 0
                    && *named == companion
                    && left == Left::Killed
                    && instance == known_instance =>
            {
                *named
            }
            Some(_) => companion_number(),
        };
        let identity = Identity { geometry, fingerprint, instance, salt, companion };
        state.write(&identity, Left::Killed, head).map_err(state_error)?;
        let segments = geometry.segments();
        // Slots that were never written need no reclaim.
        let free_until = if head < segments { segments } else { head };
        let forgotten = recovered.segments.first().map_or(head, |oldest| oldest.sequence - 1);
        let log = Self {
            geometry,
            instance: AtomicU64::new(instance),
            fingerprint,
            salt,
            companion,
            device,
            words_of: *words_of,
            word_rule: *word_rule,
            state,
            writer: Mutex::new(WriterState { journal, current: None }),
            ring: RwLock::new(Ring { head, live: VecDeque::new() }),
            free_until: AtomicU64::new(free_until),
            reclaimed_until: AtomicU64::new(free_until),
            forgotten: AtomicU64::new(forgotten),
            requests: Mutex::new(FlushRequests::default()),
            requested: Condvar::new(),
            written: Condvar::new(),
            idle: Mutex::new(Vec::new()),
            counters: Counters::default(),
        };
        Ok((log, recovered))
    }
}

/// Enough of a log to read summaries.
pub(crate) struct SlotReader<'a> {
    pub geometry: &'a Geometry,
    pub instance: u64,
    pub salt: u64,
    pub device: &'a dyn Device,
    pub words_of: WordsOf,
}

impl Log {
    pub(crate) fn slot_reader(&self) -> SlotReader<'_> {
        SlotReader {
            geometry: &self.geometry,
            instance: self.instance(),
            salt: self.salt,
            device: &*self.device,
            words_of: self.words_of,
        }
    }
}

/// The summaries of the segments in `slots`; `None` where there is no whole and valid one.
pub(crate) fn read_slots(reader: &SlotReader<'_>, slots: Range<u64>) -> Vec<Option<Summary>> {
    let geometry = reader.geometry;
    if geometry.has_summary() {
        return slots.map(|slot| reader.read_summary(slot)).collect();
    }
    let segment_bytes = geometry.segment_bytes() as usize;
    let count = (slots.end - slots.start) as usize;
    let mut bytes = AlignedBuffer::zeroed(count * segment_bytes);
    let offset = |slot: u64| geometry.offset(slot * u64::from(geometry.blocks_per_segment()));
    if reader.device.read_at(offset(slots.start), &mut bytes).is_err() {
        // One bad sector must not cost its neighbours: read them one by one.
        for (slot, part) in slots.clone().zip(bytes.chunks_exact_mut(segment_bytes)) {
            if reader.device.read_at(offset(slot), part).is_err() {
                part.fill(0);
            }
        }
    }
    let parts = bytes.chunks_exact(segment_bytes);
    slots.zip(parts).map(|(slot, part)| reader.scan_blocks(slot, part)).collect()
}

impl SlotReader<'_> {
    fn read_summary(&self, slot: u64) -> Option<Summary> {
        let (geometry, size) = (self.geometry, self.geometry.block_size());
        let all = u64::from(geometry.blocks_per_segment());
        let first_block = slot * all;
        let mut last = AlignedBuffer::zeroed(size);
        self.device.read_at(geometry.offset(first_block + all - 1), &mut last).ok()?;
        let trailer = summary::parse_trailer(&last, geometry, self.instance, first_block)?;
        let mut bytes = AlignedBuffer::zeroed(trailer.blocks * size);
        let before = bytes.len() - size;
        if before > 0 {
            let offset = geometry.offset(first_block + all - trailer.blocks as u64);
            self.device.read_at(offset, &mut bytes[..before]).ok()?;
        }
        bytes[before..].copy_from_slice(&last);
        summary::parse(&bytes, trailer, geometry, self.instance, first_block)
    }

    /// Sequence numbers after `head` are given out again, so no block may be left that carries one:
    /// if the block that is written in its place got lost, it would pass for that.
    fn scrub(&self, head: u64) -> io::Result<()> {
        let geometry = self.geometry;
        let queued = geometry.share(WRITE_QUEUE_BYTES_MAX) / geometry.segment_bytes() + 2;
        let size = geometry.block_size();
        let per_read = (TRANSFER_BYTES_MAX as usize / size).min(geometry.blocks_per_segment() as usize);
        let mut bytes = AlignedBuffer::zeroed(per_read * size);
        let zeros = AlignedBuffer::zeroed(size);
        for sequence in head + 1..=head + queued.min(geometry.segments()) {
            let first = geometry.first_block(sequence);
            let end = first + u64::from(geometry.blocks_per_segment());
            let mut left = SCRUB_TRIES_MAX;
            let mut start = first;
            while start < end {
                let part = &mut bytes[..((end - start) as usize).min(per_read) * size];
                self.device.read_at(geometry.offset(start), part)?;
                let mut found = false;
                for (block, number) in part.chunks_exact(size).zip(start..) {
                    if block::check(block, self.instance, number).is_some_and(|h| h.sequence > head) {
                        found = true;
                        self.device.write_at(geometry.offset(number), &[&zeros])?;
                    }
                }
                if !found {
                    start += per_read as u64;
                    continue;
                }
                // Look again: this is no place to believe a write.
                left -= 1;
                if left == 0 {
                    return Err(io::Error::other("blocks do not go away"));
                }
            }
        }
        Ok(())
    }

    /// A segment without summary is there if all of its blocks are, with one sequence number.
    fn scan_blocks(&self, slot: u64, bytes: &[u8]) -> Option<Summary> {
        let first_block = slot * u64::from(self.geometry.blocks_per_segment());
        let mut summary = Summary { sequence: 0, first_block, counts: Vec::new(), words: Vec::new() };
        for (block, number) in bytes.chunks_exact(self.geometry.block_size()).zip(first_block..) {
            let header = block::check(block, self.instance, number)?;
            if number > first_block && header.sequence != summary.sequence {
                return None;
            }
            summary.sequence = header.sequence;
            summary.counts.push(header.count);
            (self.words_of)(self.salt, block::payload(block), header.count, &mut summary.words);
        }
        let total: usize = summary.counts.iter().map(|c| usize::from(*c)).sum();
        (total == summary.words.len()).then_some(summary)
    }
}

/// Chooses what may be served again. See docs/format.md, "Recovery".
fn recover(reader: &SlotReader<'_>, records: Vec<journal::Record>, known_head: u64) -> (Recovered, u64) {
    let geometry = reader.geometry;
    let mut found: BTreeMap<u64, Summary> = BTreeMap::new();
    let step = (TRANSFER_BYTES_MAX / geometry.segment_bytes()).max(1);
    let mut slot = 0;
    while slot < geometry.segments() {
        let end = (slot + step).min(geometry.segments());
        for summary in read_slots(reader, slot..end).into_iter().flatten() {
            let right_slot = geometry.first_block(summary.sequence) == summary.first_block;
            if right_slot && summary.sequence > 0 {
                found.insert(summary.sequence, summary);
            }
        }
        slot = end;
    }
    let newest = found.last_key_value().map_or(0, |(sequence, _)| *sequence);
    // What was appended to segments after this one is in the journal.
    let floor = records.iter().map(|r| r.durable).fold(known_head, u64::max);
    let head = newest.max(floor);
    let oldest = (head + 1).saturating_sub(geometry.segments()).max(1);
    // A segment that ought to be there and is not may have held newer versions, or deletions, of
    // anything older, unless the journal still lists what it held.
    let hole = (oldest..=head.min(floor)).rev().find(|sequence| !found.contains_key(sequence));
    let from = hole.map_or(oldest, |hole| hole + 1);
    if let Some(hole) = hole
        && found.range(..hole).next().is_some()
        && hole != oldest
    {
        tracing::warn!(segment = hole, "a segment is missing: what is older than it is not served");
    }
    let mut recovered = Recovered::default();
    for record in records {
        // The journal keeps words long after their segment is on the device; the ring may have passed
        // it since. What nothing older is served of needs no voiding.
        if record.sequence >= from && !found.contains_key(&record.sequence) {
            recovered.lost.entry(record.sequence).or_default().extend(record.words);
        }
    }
    recovered.segments =
        found.into_iter().filter(|(s, _)| (from..=head).contains(s)).map(|(_, s)| s).collect();
    (recovered, head)
}
