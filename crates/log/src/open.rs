//! Opening a log: what the last process left, and which of it may be served again.

use crate::commits::Commits;
use crate::device::{Device, FileDevice, OpenDeviceError};
use crate::error::OpenError;
use crate::files::sync_folder;
use crate::framing::{Framing, Source};
use crate::geometry::Geometry;
use crate::journal::{self, Journal};
use crate::limits::SEQUENCES_SKIPPED;
use crate::lock::is_locked;
use crate::log::{Buffers, Counters, FlushRequests, Log, Progress, WriterState};
use crate::options::{CrashPolicy, Options};
use crate::partitions::{Partition, has_bytes, is_name_of_partition, state_files};
use crate::recover::{self, Opened, Recovered};
use crate::slots::{FifoSlots, SlotOrder, SlotTable, Slots};
use crate::state::{
    self, Identity, LastShutdown, Peeked, StateFile, StoredState, new_memory_id, random_number, state_file_of,
};
use crate::sync::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::sync::{Condvar, Mutex, RwLock};
use crate::synced::{Synced, unsynced_max};
use crate::taking_over;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What lies where a log is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or a log with this fingerprint. A block device always fits.
    Fitting,
    /// A log with another fingerprint; its file.
    Another(PathBuf),
    /// A file that belongs to no log.
    Foreign(PathBuf),
}

impl Options {
    /// Looks at the place of `partitions` logs without touching it.
    ///
    /// # Errors
    /// An existing file cannot be read.
    pub fn found(&self, partitions: u64) -> io::Result<Found> {
        let has_data = has_bytes(&self.path)?;
        let state = state_file_of(&self.state_path);
        let peeked = state::peek(&state)?;
        if peeked == Peeked::Nothing && has_data {
            return Ok(Found::Foreign(self.path.clone()));
        }
        if let Some(foreign) = self.foreign_beside(partitions)? {
            return Ok(Found::Foreign(foreign));
        }
        Ok(match peeked {
            Peeked::Log(found) if found != self.fingerprint_of(0, partitions) => {
                Found::Another(if has_data { self.path.clone() } else { state })
            }
            _ => Found::Fitting,
        })
    }
}

/// Writes another geometry into the state file of a log that was stopped cleanly and whose slots are used in any order: from
/// here on the log has the segments of `geometry`. Does nothing if it has them already.
///
/// # Errors
/// The log is open, was not stopped cleanly, or its state file cannot be written.
pub fn set_geometry(options: &Options, geometry: &Geometry) -> Result<(), OpenError> {
    let state = options.lock()?;
    if state.read(geometry, options.fingerprint, options.depends_on).shutdown == LastShutdown::Clean {
        // The file has grown already.
        return Ok(());
    }
    let StoredState { shutdown, instance, salt, head, .. } =
        state.read(&options.geometry, options.fingerprint, options.depends_on);
    if shutdown != LastShutdown::Clean {
        return Err(OpenError::Damaged { path: state_file_of(&options.state_path) });
    }
    let Options { fingerprint, depends_on, .. } = *options;
    let identity = Identity { geometry: *geometry, fingerprint, instance, salt, memory_id: 0, depends_on };
    let written = state.write(&identity, LastShutdown::Clean, head);
    written.map_err(|source| OpenError::State { path: options.state_path.clone(), source })
}

impl<F: Framing> Log<F> {
    /// Opens the log in a file or on a block device.
    pub fn open(framing: F, options: &Options) -> Result<Opened<F>, OpenError>
    where
        F: Clone,
    {
        let mut logs = Self::open_partitions(framing, options, 1)?;
        Ok(logs.pop().expect("one partition is one log"))
    }

    /// Like [`open`](Self::open), on a given device; `options.path` is not touched.
    pub fn open_on(framing: F, device: Box<dyn Device>, options: &Options) -> Result<Opened<F>, OpenError>
    where
        F: Clone,
    {
        let mut logs = Self::open_partitions_on(framing, device, options, 1)?;
        Ok(logs.pop().expect("one partition is one log"))
    }

    /// Opens a file as several logs, each with a part of it and its own state and journal files. If the number of logs
    /// differs from before, all are empty.
    pub fn open_partitions(
        framing: F,
        options: &Options,
        partitions: u64,
    ) -> Result<Vec<Opened<F>>, OpenError>
    where
        F: Clone,
    {
        let found = options.found(partitions);
        let found = found.map_err(|source| OpenError::State { path: options.path.clone(), source })?;
        if let Found::Foreign(path) = found {
            // It may be the open file of another cache, whose state lies elsewhere.
            let is_in_use = path == options.path && is_locked(&path);
            return Err(if is_in_use { OpenError::InUse { path } } else { OpenError::Foreign { path } });
        }
        let mut files = state_files(&options.state_path, partitions);
        files.push(options.path.clone());
        files.retain(|file| std::fs::symlink_metadata(file).is_err());
        // The locks first: another cache's file must not be cut to our size.
        let partitions = Partition::of(options, partitions)?;
        // The previous holder of the locks may have created and filled missing files.
        files.retain(|file| std::fs::symlink_metadata(file).map_or(true, |found| found.len() == 0));
        let geometry = &options.geometry;
        let device = FileDevice::open_in_units(
            &options.path,
            geometry.file_bytes(),
            geometry.block_size(),
            options.space,
        );
        let device = device.map_err(|error| match error {
            OpenDeviceError::InUse { path } => {
                // Another process may have created it meanwhile.
                files.retain(|file| *file != path);
                OpenError::InUse { path }
            }
            other => OpenError::Device(other),
        });
        if let (Ok(device), CrashPolicy::Keep(_)) = (&device, options.crash_policy)
            && let Err(error) = device.forget_cached()
        {
            tracing::warn!(%error, path = %options.path.display(), "the page cache may have what the device does not");
        }
        // The locks are held until a failed open has removed the files that it created.
        let mut holds = Vec::with_capacity(partitions.len());
        let held = partitions.iter().try_for_each(|partition| partition.hold().map(|hold| holds.push(hold)));
        let opened = held
            .and(device)
            .and_then(|device| Partition::start_all(framing, partitions, options, Box::new(device)));
        let opened = opened.inspect_err(|_| files.iter().for_each(|file| drop(std::fs::remove_file(file))));
        drop(holds);
        opened
    }

    /// Like [`open_partitions`](Self::open_partitions), on a given device; `options.path` is not touched.
    pub fn open_partitions_on(
        framing: F,
        device: Box<dyn Device>,
        options: &Options,
        partitions: u64,
    ) -> Result<Vec<Opened<F>>, OpenError>
    where
        F: Clone,
    {
        let foreign = options.foreign_beside(partitions);
        let foreign =
            foreign.map_err(|source| OpenError::State { path: options.state_path.clone(), source })?;
        if let Some(path) = foreign {
            return Err(OpenError::Foreign { path });
        }
        Partition::start_all(framing, Partition::of(options, partitions)?, options, device)
    }

    pub(crate) fn start(
        framing: F,
        device: Arc<dyn Device>,
        state: StateFile,
        options: &Options,
        salt: u64,
    ) -> Result<Opened<F>, OpenError> {
        let Options {
            state_path, geometry, fingerprint, depends_on, slots, crash_policy, shared_memory, ..
        } = options;
        let (geometry, fingerprint, depends_on) = (*geometry, *fingerprint, *depends_on);
        let state_error = |source| OpenError::State { path: state_path.clone(), source };
        let read = state.read(&geometry, fingerprint, depends_on);
        if matches!(crash_policy, CrashPolicy::Keep(_)) && read.shutdown == LastShutdown::Unknown {
            return Err(OpenError::Damaged { path: state_file_of(state_path) });
        }
        let mut known = Some(read).filter(|known| known.salt == salt).unwrap_or(StoredState::NOTHING);
        if known.shutdown == LastShutdown::PowerLoss && *crash_policy == CrashPolicy::StartEmpty {
            known = StoredState::NOTHING;
        }
        let StoredState { shutdown, mut instance, head: known_head, memory_id, .. } = known;
        let (is_damaged, was_given_up) = (state.is_damaged(), state.was_given_up());
        let had_content = state.has_content() || is_damaged || was_given_up;
        if shutdown == LastShutdown::Unknown && had_content && !is_name_of_partition(state_path) {
            let why = match read.shutdown {
                _ if is_damaged => "its state file is damaged",
                _ if was_given_up => "what was there was given up, or lost with the machine's power",
                LastShutdown::PowerLoss => "the machine lost its power, and some of what was written with it",
                _ => "what is there was made with other sizes or options",
            };
            tracing::warn!("{} starts empty: {why}", options.path.display());
        }
        if shutdown == LastShutdown::Unknown {
            // The journal is replaced below; without it, no start may find the content given up here.
            state.give_up().map_err(state_error)?;
        }
        let own = shared_memory.first().cloned();
        // The shared memory is valid only with the content that it is bound to.
        let named = own.as_ref().map_or(0, |own| own.found());
        let is_its =
            named != 0 && named == memory_id && shutdown == LastShutdown::Killed && *slots == SlotOrder::Fifo;
        let mut memory_id = if is_its { named } else { new_memory_id() };
        if known.memory_id != 0 && !is_its {
            // The former shared memory is made void before the journal counts its segments as lost.
            let identity = Identity { geometry, fingerprint, instance, salt, memory_id: 0, depends_on };
            state.write(&identity, LastShutdown::Killed, known_head).map_err(state_error)?;
        }
        let buffers = own.as_ref().map_or_else(Vec::new, |own| own.open(memory_id, salt));
        // Discards the content after all. Returns the new instance and the number of its shared memory.
        let start_empty = || {
            state.give_up()?;
            let memory_id = state::new_memory_id();
            own.iter().for_each(|own| drop(own.open(memory_id, salt)));
            Ok((random_number(), memory_id))
        };
        // The newest segment of an instance that the consumer's files mention.
        let newest_of = |instance| match crash_policy {
            CrashPolicy::Keep(Some(newest)) if newest.instance == instance => Some(newest.sequence),
            _ => None,
        };
        let mut recovered = Recovered::default();
        let mut head = 0;
        let mut emptied = 0;
        let mut gaps = Vec::new();
        if shutdown == LastShutdown::Unknown {
            instance = random_number();
        } else {
            let source = Source { geometry: &geometry, instance, salt, device: &*device };
            match slots {
                SlotOrder::Fifo => {
                    let mut journal = journal::read(state_path, instance).map_err(state_error)?;
                    if shutdown == LastShutdown::Clean {
                        // All changes are on the device.
                        journal.changes.clear();
                    }
                    taking_over::write_buffers(&framing, &source, buffers, &journal.changes, known_head);
                    emptied = journal.emptied;
                    (recovered, head) = recover::fifo(&framing, &source, journal, known_head);
                    gaps = recovered.gaps(head);
                    let wiped = match shutdown {
                        LastShutdown::Killed => recover::wipe_behind_head(&framing, &source, head, 0),
                        LastShutdown::PowerLoss => {
                            recover::wipe_behind_head(&framing, &source, head, unsynced_max(&geometry))
                        }
                        LastShutdown::Clean | LastShutdown::Unknown => Ok(()),
                    };
                    // Segments on record as synced have to be, and wiped blocks must not come back.
                    let synced = wiped.and_then(|()| match (crash_policy, shutdown) {
                        (CrashPolicy::ServeOlder, LastShutdown::Killed | LastShutdown::PowerLoss) => {
                            device.sync()
                        }
                        _ => Ok(()),
                    });
                    if let Err(error) = synced {
                        tracing::warn!(
                            %error,
                            "cannot remove what the last process left half written: starting empty"
                        );
                        (instance, memory_id) = start_empty().map_err(state_error)?;
                        (recovered, head, emptied) = (Recovered::default(), 0, 0);
                        gaps.clear();
                    }
                }
                SlotOrder::Table { .. } => {
                    (recovered, head) = recover::table(&framing, &source, known_head);
                    recovered.on_record = known_head;
                    // An earlier start that wrote no segment has skipped the same numbers as this one.
                    let is_beyond = |newest| newest > head && newest != head + SEQUENCES_SKIPPED;
                    // The newest segment that the consumer's files mention may be missing because it was freed, and a
                    // loss of power took the segment written over it. Blocks of one of the two are there then.
                    let is_missed =
                        |newest| is_beyond(newest) && newest > recover::newest_begun(&framing, &source);
                    if newest_of(instance).is_some_and(is_missed) {
                        return Err(OpenError::Older { path: state_file_of(state_path) });
                    }
                    if shutdown != LastShutdown::Clean || head > known_head {
                        // No number is used twice, even if the last process had begun a segment with it. If the log is
                        // newer than the clean stop on record, that was not the last stop.
                        head += SEQUENCES_SKIPPED;
                    }
                }
            }
        }
        if newest_of(instance).is_some_and(|newest| newest > head) {
            return Err(OpenError::Older { path: state_file_of(state_path) });
        }
        // Lost entries stay in the journal until the consumer has appended them as deletions.
        let entries = recovered.lost.values().flatten().copied().collect();
        // With a table no segment can be found missing, as they have no order. A gap counts as missing until it is
        // filled.
        let durable = match slots {
            SlotOrder::Fifo => gaps.first().map_or(head, |gap| gap - 1),
            SlotOrder::Table { .. } => 0,
        };
        let carried = journal::Record { kind: journal::Kind::Changes, sequence: head + 1, durable, entries };
        // At most the head, for numbers above it are used again.
        let mut journal =
            Journal::create(state_path, instance, &carried, emptied.min(head)).map_err(state_error)?;
        journal.serves_older = *crash_policy == CrashPolicy::ServeOlder;
        if *crash_policy == CrashPolicy::ServeOlder {
            // Journal files that are missing after a loss of power would count as empty.
            sync_folder(state_path).map_err(state_error)?;
        }
        let source = Source { geometry: &geometry, instance, salt, device: &*device };
        // The journal lists the gaps' entries by now.
        let filled = recover::fill_gaps(&framing, &source, &gaps).and_then(|()| match *crash_policy {
            CrashPolicy::ServeOlder => device.sync(),
            CrashPolicy::StartEmpty | CrashPolicy::Keep(_) => Ok(()),
        });
        if let Err(error) = filled {
            tracing::warn!(%error, "cannot fill the gaps that the last process left: starting empty");
            (instance, memory_id) = start_empty().map_err(state_error)?;
            (recovered, head) = (Recovered::default(), 0);
            journal.clear(instance).map_err(state_error)?;
        }
        if own.is_none() {
            memory_id = 0;
        }
        let identity = Identity { geometry, fingerprint, instance, salt, memory_id, depends_on };
        state.write(&identity, LastShutdown::Killed, head).map_err(state_error)?;
        let positions = recovered.segments.iter().map(F::position);
        let slots = match slots {
            SlotOrder::Fifo => {
                let segments = geometry.segments();
                // Slots that were never written need no reclaim.
                let free_until = if head < segments { segments } else { head };
                let forgotten = positions.map(|(sequence, _)| sequence - 1).next().unwrap_or(head);
                Slots::Fifo(FifoSlots {
                    free_until: AtomicU64::new(free_until),
                    reclaimed_until: AtomicU64::new(free_until),
                    forgotten: AtomicU64::new(forgotten),
                })
            }
            SlotOrder::Table { reserved } => {
                let taken = positions.map(|(sequence, block)| (geometry.slot_of_block(block), sequence));
                Slots::Table(SlotTable::new(geometry.segments(), *reserved, taken))
            }
        };
        let log = Self {
            geometry,
            instance: AtomicU64::new(instance),
            fingerprint,
            salt,
            depends_on,
            memory_id,
            shared_memory: own,
            device,
            framing,
            state: Mutex::new(state),
            writer: Mutex::new(WriterState { journal, journal_fails: false, current: None }),
            buffers: RwLock::new(Buffers { head, live: VecDeque::new() }),
            progress: Progress::new(head),
            slots,
            commits: Commits::default(),
            synced: Synced::new(*crash_policy, head),
            requests: Mutex::new(FlushRequests::default()),
            requested: Condvar::new(),
            written: Condvar::new(),
            lacks_buffers: AtomicBool::new(false),
            idle: Mutex::new(Vec::new()),
            lost: AtomicU64::new(0),
            counters: Counters::default(),
        };
        Ok((log, recovered))
    }
}
