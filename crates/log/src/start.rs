//! The start of a log whose device and state file are open: which of what the last process left may be served again.

use crate::adopt_buffers;
use crate::buffer::AlignedBuffer;
use crate::commit_state::Commits;
use crate::device::Device;
use crate::durable_state::{DurableState, unsynced_max};
use crate::error::OpenError;
use crate::files::sync_folder;
use crate::framing::{Framing, SummarySource};
use crate::journal::{self, Journal};
use crate::limits::SEQUENCES_SKIPPED;
use crate::log::{Buffers, Counters, FlushRequests, Log, PublishedSequences, WriterState};
use crate::options::{CrashPolicy, Options};
use crate::partitions::is_name_of_partition;
use crate::recover::{self, Opened, Recovered};
use crate::shared_memory::SharedMemory;
use crate::slots::{SlotOrder, Slots};
use crate::state::{
    Identity, LastShutdown, StateFile, StoredState, new_memory_id, random_number, state_file_of,
};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Condvar, Mutex, RwLock};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

impl<F: Framing> Log<F> {
    pub(crate) fn start(
        framing: F,
        device: Arc<dyn Device>,
        state: StateFile,
        options: &Options,
        salt: u64,
    ) -> Result<Opened<F>, OpenError> {
        let known = usable_state(&state, options, salt)?;
        let (mut start, buffers) = Start::new(&framing, &device, &state, options, salt, &known)?;
        let mut content = match (known.shutdown, options.slots) {
            (LastShutdown::Unknown, _) => RecoveredContent::default(),
            (_, SlotOrder::Fifo) => start.recover_fifo(&known, buffers)?,
            (_, SlotOrder::Table { .. }) => start.recover_table(&known)?,
        };
        if start.newest_known().is_some_and(|newest| newest > content.head) {
            return Err(OpenError::Older { path: state_file_of(&options.state_path) });
        }
        let mut journal = start.create_journal(&content)?;
        start.replace_missing(&mut content, &mut journal)?;
        let Start { instance, memory_id, memory, .. } = start;
        let memory_id = if memory.is_some() { memory_id } else { 0 };
        let Options { geometry, fingerprint, depends_on, .. } = *options;
        let identity = Identity { geometry, fingerprint, instance, salt, memory_id, depends_on };
        let RecoveredContent { recovered, head, .. } = content;
        state.write(&identity, LastShutdown::Killed, head).map_err(|source| options.state_error(source))?;
        let slots = Slots::new(options.slots, &geometry, head, recovered.segments.iter().map(F::position));
        let log = Self {
            geometry,
            instance: AtomicU64::new(instance),
            fingerprint,
            salt,
            depends_on,
            memory_id,
            shared_memory: memory,
            device,
            framing,
            state: Mutex::new(state),
            writer: Mutex::new(WriterState { journal, journal_fails: false, current: None }),
            buffers: RwLock::new(Buffers { head, live: VecDeque::new() }),
            published: PublishedSequences::new(head),
            slots,
            commits: Commits::default(),
            durable: DurableState::new(options.crash_policy, head),
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

/// The stored state of content that may be served; [`StoredState::NOTHING`]: there is none, and the file is blank.
fn usable_state(state: &StateFile, options: &Options, salt: u64) -> Result<StoredState, OpenError> {
    let read = state.read(&options.geometry, options.fingerprint, options.depends_on);
    if matches!(options.crash_policy, CrashPolicy::Keep(_)) && read.shutdown == LastShutdown::Unknown {
        return Err(OpenError::Damaged { path: state_file_of(&options.state_path) });
    }
    let is_lost = read.shutdown == LastShutdown::PowerLoss && options.crash_policy == CrashPolicy::StartEmpty;
    let known = if read.salt == salt && !is_lost { read } else { StoredState::NOTHING };
    if known.shutdown == LastShutdown::Unknown {
        warn_of_lost_content(state, options, read.shutdown);
        // The journal is replaced later; without it, no start may find the content given up here.
        state.invalidate_if_any().map_err(|source| options.state_error(source))?;
    }
    Ok(known)
}

/// Says why a log starts empty that had content, once for all partitions.
fn warn_of_lost_content(state: &StateFile, options: &Options, read: LastShutdown) {
    let (is_damaged, was_invalidated) = (state.is_damaged(), state.was_invalidated());
    let had_content = state.has_content() || is_damaged || was_invalidated;
    if !had_content || is_name_of_partition(&options.state_path) {
        return;
    }
    let why = match read {
        _ if is_damaged => "its state file is damaged",
        _ if was_invalidated => "what was there was given up, or lost with the machine's power",
        LastShutdown::PowerLoss => "the machine lost its power, and some of what was written with it",
        _ => "what is there was made with other sizes or options",
    };
    tracing::warn!("{} starts empty: {why}", options.path.display());
}

/// The segments of an earlier start that are served again, and where writing goes on.
struct RecoveredContent<F: Framing> {
    recovered: Recovered<F>,
    /// The newest sequence number.
    head: u64,
    /// Segments up to this one hold nothing.
    emptied: u64,
    /// The sequence numbers of segments that are missing among those that are served.
    missing: Vec<u64>,
}

impl<F: Framing> Default for RecoveredContent<F> {
    fn default() -> Self {
        Self { recovered: Recovered::default(), head: 0, emptied: 0, missing: Vec::new() }
    }
}

/// A log that is being started.
struct Start<'a, F> {
    framing: &'a F,
    device: &'a Arc<dyn Device>,
    state: &'a StateFile,
    options: &'a Options,
    salt: u64,
    memory: Option<Arc<dyn SharedMemory>>,
    instance: u64,
    /// The number of `memory`, found or new.
    memory_id: u64,
}

impl<'a, F: Framing> Start<'a, F> {
    /// Opens the shared memory. Returns the write buffers that were found there.
    fn new(
        framing: &'a F,
        device: &'a Arc<dyn Device>,
        state: &'a StateFile,
        options: &'a Options,
        salt: u64,
        known: &StoredState,
    ) -> Result<(Self, Vec<(u64, AlignedBuffer)>), OpenError> {
        let memory = options.shared_memory.first().cloned();
        // The shared memory is valid only with the content that it is bound to.
        let found = memory.as_ref().map_or(0, |memory| memory.previous_id());
        let is_its = found != 0
            && found == known.memory_id
            && known.shutdown == LastShutdown::Killed
            && options.slots == SlotOrder::Fifo;
        if known.memory_id != 0 && !is_its {
            // The former shared memory is made void before the journal counts its segments as lost.
            let Options { geometry, fingerprint, depends_on, .. } = *options;
            let instance = known.instance;
            let identity = Identity { geometry, fingerprint, instance, salt, memory_id: 0, depends_on };
            let written = state.write(&identity, LastShutdown::Killed, known.head);
            written.map_err(|source| options.state_error(source))?;
        }
        let memory_id = if is_its { found } else { new_memory_id() };
        let buffers = memory.as_ref().map_or_else(Vec::new, |memory| memory.open(memory_id, salt));
        let instance = match known.shutdown {
            LastShutdown::Unknown => random_number(),
            _ => known.instance,
        };
        Ok((Self { framing, device, state, options, salt, memory, instance, memory_id }, buffers))
    }

    fn summary_source(&self) -> SummarySource<'_> {
        let Self { options, instance, salt, device, .. } = *self;
        SummarySource { geometry: &options.geometry, instance, salt, device: &**device }
    }

    fn serves_older(&self) -> bool {
        self.options.crash_policy == CrashPolicy::ServeOlder
    }

    /// The newest segment of this instance that the consumer's files mention.
    fn newest_known(&self) -> Option<u64> {
        match self.options.crash_policy {
            CrashPolicy::Keep(Some(newest)) if newest.instance == self.instance => Some(newest.sequence),
            _ => None,
        }
    }

    /// Discards the content after all: another instance begins, and another shared memory.
    fn start_empty(&mut self) -> Result<(), OpenError> {
        self.state.invalidate_if_any().map_err(|source| self.options.state_error(source))?;
        self.memory_id = new_memory_id();
        self.memory.iter().for_each(|memory| drop(memory.open(self.memory_id, self.salt)));
        self.instance = random_number();
        Ok(())
    }

    fn recover_fifo(
        &mut self,
        known: &StoredState,
        buffers: Vec<(u64, AlignedBuffer)>,
    ) -> Result<RecoveredContent<F>, OpenError> {
        let journal = journal::read(&self.options.state_path, self.instance);
        let mut journal = journal.map_err(|source| self.options.state_error(source))?;
        if known.shutdown == LastShutdown::Clean {
            // All changes are on the device.
            journal.changes.clear();
        }
        let source = self.summary_source();
        adopt_buffers::write_buffers(self.framing, &source, buffers, &journal.changes, known.head);
        let emptied = journal.emptied;
        let (recovered, head) = recover::fifo(self.framing, &source, journal, known.head);
        if let Err(error) = self.remove_unfinished(known.shutdown, head) {
            tracing::warn!(%error, "cannot remove what the last process left half written: starting empty");
            self.start_empty()?;
            return Ok(RecoveredContent::default());
        }
        let missing = recovered.missing(head);
        Ok(RecoveredContent { recovered, head, emptied, missing })
    }

    /// Wipes blocks behind the head that the last process left.
    fn remove_unfinished(&self, shutdown: LastShutdown, head: u64) -> io::Result<()> {
        let wipe = |lost| recover::wipe_behind_head(self.framing, &self.summary_source(), head, lost);
        match shutdown {
            LastShutdown::Killed => wipe(0)?,
            LastShutdown::PowerLoss => wipe(unsynced_max(&self.options.geometry))?,
            LastShutdown::Clean | LastShutdown::Unknown => return Ok(()),
        }
        // Segments on record as synced have to be, and wiped blocks must not come back.
        if self.serves_older() { self.device.sync() } else { Ok(()) }
    }

    fn recover_table(&self, known: &StoredState) -> Result<RecoveredContent<F>, OpenError> {
        let (mut recovered, mut head) = recover::table(self.framing, &self.summary_source(), known.head);
        recovered.durable_sequence = known.head;
        // An earlier start that wrote no segment has skipped the same numbers as this one.
        let is_beyond = |newest| newest > head && newest != head + SEQUENCES_SKIPPED;
        // The newest segment that the consumer's files mention may be missing because it was freed, and a loss of power
        // took the segment written over it. Blocks of one of the two are there then.
        let is_missed = |newest| {
            is_beyond(newest) && newest > recover::newest_begun(self.framing, &self.summary_source())
        };
        if self.newest_known().is_some_and(is_missed) {
            return Err(OpenError::Older { path: state_file_of(&self.options.state_path) });
        }
        if known.shutdown != LastShutdown::Clean || head > known.head {
            // No number is used twice, even if the last process had begun a segment with it. If the log is newer than
            // the clean stop on record, that was not the last stop.
            head += SEQUENCES_SKIPPED;
        }
        Ok(RecoveredContent { recovered, head, ..RecoveredContent::default() })
    }

    /// Replaces the journal by one with what is lost.
    fn create_journal(&self, content: &RecoveredContent<F>) -> Result<Journal, OpenError> {
        let RecoveredContent { recovered, head, emptied, missing } = content;
        // Lost entries stay in the journal until the consumer has appended them as deletions.
        let entries = recovered.lost.values().flatten().copied().collect();
        // With a table no segment can be found missing, as they have no order. A missing one counts as such until an
        // empty one is in its place.
        let durable = match self.options.slots {
            SlotOrder::Fifo => missing.first().map_or(*head, |missing| missing - 1),
            SlotOrder::Table { .. } => 0,
        };
        let carried = journal::Record { kind: journal::Kind::Changes, sequence: head + 1, durable, entries };
        let state_path = &self.options.state_path;
        // At most the head, for numbers above it are used again.
        let created = Journal::create(state_path, self.instance, &carried, (*emptied).min(*head));
        let mut journal = created.map_err(|source| self.options.state_error(source))?;
        journal.serves_older = self.serves_older();
        if self.serves_older() {
            // Journal files that are missing after a loss of power would count as empty.
            sync_folder(state_path).map_err(|source| self.options.state_error(source))?;
        }
        Ok(journal)
    }

    /// Writes empty segments in the places of missing ones, whose entries the journal lists by now.
    fn replace_missing(
        &mut self,
        content: &mut RecoveredContent<F>,
        journal: &mut Journal,
    ) -> Result<(), OpenError> {
        let written = recover::write_empty(self.framing, &self.summary_source(), &content.missing);
        let synced = written.and_then(|()| if self.serves_older() { self.device.sync() } else { Ok(()) });
        if let Err(error) = synced {
            tracing::warn!(%error, "cannot replace segments that the last process did not write: starting empty");
            self.start_empty()?;
            *content = RecoveredContent::default();
            journal.clear(self.instance).map_err(|source| self.options.state_error(source))?;
        }
        Ok(())
    }
}
