//! Volumes as exports.

mod reads;

use crate::export::{Command, Export, Exports, ExtentState, Outcome, Session, Tag};
use crate::limits::COMMANDS_IN_FLIGHT_MAX;
use crate::protocol::{Completions, Errno};
use granary_log::Io;
use granary_volume::{Operation, Volume};
use reads::Reads;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Returns the name of the default export among these: the only one, or `default`.
pub fn default_export<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    match (names.next(), names.next()) {
        (Some(only), None) => only,
        _ => "default",
    }
}

/// The volumes of a server by name.
pub struct VolumeExports {
    volumes: BTreeMap<String, Arc<VolumeExport>>,
    default_name: String,
}

impl VolumeExports {
    /// Exports of open volumes. The only one, or the one that is called `default`, is the default export.
    pub fn new(volumes: impl IntoIterator<Item = Arc<Volume>>) -> Self {
        let export = |volume: Arc<Volume>| (volume.name().to_owned(), Arc::new(VolumeExport { volume }));
        let volumes: BTreeMap<_, _> = volumes.into_iter().map(export).collect();
        let default_name = default_export(volumes.keys().map(String::as_str)).to_owned();
        Self { volumes, default_name }
    }

    /// These exports with another default export. Where no volume has the name, clients that name none are refused.
    pub fn with_default(self, name: &str) -> Self {
        Self { default_name: name.to_owned(), ..self }
    }
}

impl Exports for VolumeExports {
    fn open(&self, name: &str) -> Option<Arc<dyn Export>> {
        let name = if name.is_empty() { &self.default_name } else { name };
        Some(Arc::clone(self.volumes.get(name)?) as Arc<dyn Export>)
    }

    fn names(&self) -> Vec<(String, String)> {
        let described = |(name, export): (&String, &Arc<VolumeExport>)| {
            (name.clone(), export.description().unwrap_or_default())
        };
        self.volumes.iter().map(described).collect()
    }
}

/// One volume.
struct VolumeExport {
    volume: Arc<Volume>,
}

impl Export for VolumeExport {
    fn name(&self) -> String {
        self.volume.name().to_owned()
    }

    fn size(&self) -> u64 {
        self.volume.config().size
    }

    fn read_only(&self) -> bool {
        false
    }

    fn preferred_block(&self) -> u32 {
        self.volume.config().block_size as u32
    }

    fn description(&self) -> Option<String> {
        let config = self.volume.config();
        Some(format!("a log-structured volume of {} bytes in blocks of {}", config.size, config.block_size))
    }

    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        let block_size = self.volume.config().block_size as usize;
        let reads = Reads::new(block_size);
        let event = reads.event().ok_or(io::ErrorKind::OutOfMemory)?.try_clone_to_owned()?;
        Ok(Box::new(VolumeSession {
            reads,
            io: Io::new(),
            times: Times(vec![None; COMMANDS_IN_FLIGHT_MAX]),
            commits: Arc::new(Commits { done: Mutex::default(), event }),
            commits_in_flight: 0,
            volume: Arc::clone(&self.volume),
        }))
    }
}

/// Commits of a connection that have ended.
struct Commits {
    done: Mutex<Vec<(Tag, Outcome)>>,
    /// The event of the reads: one tells of both.
    event: OwnedFd,
}

/// When commands began that are under way, by tag.
struct Times(Vec<Option<(Operation, Instant)>>);

impl Times {
    fn begin(&mut self, tag: Tag, command: &Command<'_>) {
        let operation = match command {
            Command::Read { .. } => Operation::Read,
            Command::Write { .. } => Operation::Write,
            Command::Flush => Operation::Flush,
            _ => return,
        };
        self.0[tag.0 as usize] = Some((operation, Instant::now()));
    }

    fn end(&mut self, tag: Tag, volume: &Volume) {
        if let Some((operation, began)) = self.0[tag.0 as usize].take() {
            volume.note_answered(operation, began.elapsed());
        }
    }
}

/// A connection's way to a volume.
///
/// Reads go on while the connection does other things. Writes go to a write buffer; commits run on the volume's thread.
struct VolumeSession {
    volume: Arc<Volume>,
    reads: Reads,
    io: Io,
    times: Times,
    commits: Arc<Commits>,
    commits_in_flight: usize,
}

impl VolumeSession {
    fn read(&mut self, tag: Tag, offset: u64, len: u32, completions: &mut Completions) {
        self.volume.note_read(len.into());
        if self.reads.begin(&self.volume, tag, offset, len as usize, completions) {
            self.times.end(tag, &self.volume);
        }
    }

    /// Completes a command that changed something, when it is durable if it has to be.
    fn finish(&mut self, tag: Tag, changed: io::Result<()>, fua: bool, completions: &mut Completions) {
        if let (Ok(()), true) = (&changed, fua) {
            return self.commit(tag);
        }
        self.times.end(tag, &self.volume);
        completions.finish(tag, changed.map_err(|error| Errno::from(&error)));
    }

    fn commit(&mut self, tag: Tag) {
        self.commits_in_flight += 1;
        let commits = Arc::clone(&self.commits);
        self.volume.commit_later(move |result| {
            let result = result.map_err(Errno::from);
            commits.done.lock().unwrap_or_else(PoisonError::into_inner).push((tag, result));
            // It cannot fail but where it was written 2^64 times and nobody came.
            let _ = rustix::io::write(&commits.event, &1u64.to_ne_bytes());
        });
    }

    /// Says which parts of a range have content.
    fn extents(&self, tag: Tag, offset: u64, len: u32, one: bool, completions: &mut Completions) {
        let size = self.volume.config().block_size;
        let end = offset + u64::from(len);
        let mut reply = completions.extents(tag);
        let mut at = offset;
        while at < end {
            let next = self.volume.next_mapped(at / size).map_or(end, |lba| (lba * size).max(at).min(end));
            let (until, state) = if next > at {
                (next, ExtentState::Hole)
            } else {
                let mut lba = at / size;
                while lba * size < end && self.volume.next_mapped(lba) == Some(lba) {
                    lba += 1;
                }
                ((lba * size).min(end), ExtentState::Data)
            };
            if !reply.push(until - at, state) || one {
                break;
            }
            at = until;
        }
        reply.finish();
    }
}

impl Session for VolumeSession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        self.times.begin(tag, &command);
        match command {
            Command::Read { offset, len } => self.read(tag, offset, len, completions),
            Command::Write { offset, data, fua } => {
                let written = self.volume.write(&mut self.io, offset, data);
                self.finish(tag, written, fua, completions);
            }
            Command::Flush => self.commit(tag),
            Command::Trim { offset, len, fua } => {
                let trimmed = self.volume.trim(offset, len.into());
                self.finish(tag, trimmed, fua, completions);
            }
            // Zeroes take no space, whether that is allowed or not: cleaning keeps room for all blocks.
            Command::WriteZeroes { offset, len, fua, .. } => {
                let zeroed = self.volume.write_zeroes(&mut self.io, offset, len.into());
                self.finish(tag, zeroed, fua, completions);
            }
            Command::Cache { .. } => completions.finish(tag, Ok(())),
            Command::BlockStatus { offset, len, one } => self.extents(tag, offset, len, one, completions),
        }
    }

    fn poll(&mut self, completions: &mut Completions) {
        if self.reads.is_empty() && self.commits_in_flight == 0 {
            return;
        }
        // First, for what comes from here on makes it readable again. It is empty where nothing has come.
        let _ = rustix::io::read(&self.commits.event, &mut [0; 8]);
        let done = std::mem::take(&mut *self.commits.done.lock().unwrap_or_else(PoisonError::into_inner));
        self.commits_in_flight -= done.len();
        for (tag, result) in done {
            self.times.end(tag, &self.volume);
            completions.finish(tag, result);
        }
        let Self { reads, volume, times, .. } = self;
        reads.poll(volume, completions, |tag| times.end(tag, volume));
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.commits.event.as_fd())
    }
}
