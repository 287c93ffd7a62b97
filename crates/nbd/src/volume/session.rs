//! A connection's way to a volume.

use super::changes::{Change, Changes};
use super::finished::Finished;
use super::reads::Reads;
use crate::export::{Command, ExtentState, Session, Tag};
use crate::limits::{COMMANDS_IN_FLIGHT_MAX, ROOM_WAIT_MILLISECONDS, STATUS_BLOCKS_MAX};
use crate::protocol::{Completions, Errno};
use granary_volume::{Io, Operation, Volume, WaitPolicy};
use std::borrow::Cow;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The times at which commands began that are under way, by tag.
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
/// Reads go on while the connection does other things. Changes go to a write buffer where there is room for them, and
/// wait on a thread of the connection's where there is none for a moment; commits run on the volume's thread.
pub(super) struct VolumeSession {
    volume: Arc<Volume>,
    reads: Reads,
    io: Io,
    times: Times,
    changes: Changes,
    finished: Arc<Finished>,
    /// Commands that end on other threads.
    elsewhere: usize,
}

impl VolumeSession {
    /// # Errors
    /// There are no file descriptors left.
    pub fn new(volume: Arc<Volume>) -> io::Result<Self> {
        let reads = Reads::new(volume.config().block_size as usize);
        let event = reads.event().ok_or(io::ErrorKind::OutOfMemory)?.try_clone_to_owned()?;
        let finished = Arc::new(Finished::new(event));
        Ok(Self {
            reads,
            io: Io::new(),
            times: Times(vec![None; COMMANDS_IN_FLIGHT_MAX]),
            changes: Changes::new(Arc::clone(&volume), Arc::clone(&finished)),
            finished,
            elsewhere: 0,
            volume,
        })
    }

    fn read(&mut self, tag: Tag, offset: u64, len: u32, completions: &mut Completions) {
        let volume = &self.volume;
        volume.note_read(len.into());
        if self.reads.begin(volume, tag, offset, len as usize, completions) {
            self.times.end(tag, volume);
        }
    }

    /// Makes a change, now or later. If it is forced it is completed when it is durable.
    fn change(&mut self, tag: Tag, change: Change<'_>, is_forced: bool, completions: &mut Completions) {
        if self.changes.are_cancelled() {
            self.times.end(tag, &self.volume);
            return completions.finish(tag, Err(Errno::Shutdown));
        }
        let mut made = Err(io::ErrorKind::WouldBlock.into());
        let are_waiting = self.changes.are_waiting();
        // Trims need next to no room, and make some.
        if matches!(change, Change::Trim { .. }) || !are_waiting {
            let wait = if are_waiting { 0 } else { ROOM_WAIT_MILLISECONDS };
            let policy = WaitPolicy::non_blocking_after(Duration::from_millis(wait));
            made = change.make(&self.volume, &mut self.io, policy);
        }
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            if self.changes.is_ready() {
                self.elsewhere += 1;
                return self.changes.put(tag, change, is_forced);
            }
            // To wait here would keep the connection from seeing that its client goes, and what waits from being given
            // up.
            made = Err(io::ErrorKind::OutOfMemory.into());
        }
        if let (Ok(()), true) = (&made, is_forced) {
            return self.commit(tag);
        }
        self.times.end(tag, &self.volume);
        completions.finish(tag, made.map_err(|error| Errno::from(&error)));
    }

    /// Whether zeroes are written in less time than data: of blocks as a whole nothing is written, parts of them are
    /// read before, and nothing waits for room.
    fn is_fast(&self, offset: u64, len: u64) -> bool {
        let size = self.volume.config().block_size;
        let (first, behind) = (offset.div_ceil(size), (offset + len) / size);
        let is_zero = || self.volume.next_mapped(offset / size).is_none_or(|lba| lba * size >= offset + len);
        (first < behind || is_zero()) && !self.changes.are_waiting() && !self.volume.is_behind()
    }

    fn commit(&mut self, tag: Tag) {
        self.elsewhere += 1;
        self.finished.push_durable(&self.volume, tag);
    }

    /// Says which parts of a range have content, as far as [`STATUS_BLOCKS_MAX`] blocks of it tell.
    fn extents(&self, tag: Tag, offset: u64, len: u32, one: bool, completions: &mut Completions) {
        let size = self.volume.config().block_size;
        let end = offset + u64::from(len);
        let mut reply = completions.extents(tag);
        let (mut at, mut looked) = (offset, 0);
        while at < end && looked < STATUS_BLOCKS_MAX {
            let next = self.volume.next_mapped(at / size).map_or(end, |lba| (lba * size).max(at).min(end));
            let (until, state) = if next > at {
                (next, ExtentState::Hole)
            } else {
                // The first may be trimmed by now. It was data when it was looked for.
                let mut lba = at / size + 1;
                looked += 1;
                while lba * size < end
                    && looked < STATUS_BLOCKS_MAX
                    && self.volume.next_mapped(lba) == Some(lba)
                {
                    (lba, looked) = (lba + 1, looked + 1);
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
                let change = Change::Write { offset, data: Cow::Borrowed(data) };
                self.change(tag, change, fua, completions);
            }
            Command::Flush => self.commit(tag),
            Command::Trim { offset, len, fua } => {
                self.change(tag, Change::Trim { offset, len: len.into() }, fua, completions);
            }
            Command::WriteZeroes { offset, len, fast: true, .. } if !self.is_fast(offset, len.into()) => {
                completions.fail(tag, Errno::NotSupported);
            }
            // Zeroes take no space, whether that is allowed or not. Blocks that took it would need as much again for a
            // write over them: the log has it for all blocks, the file system below it perhaps not, whatever they hold.
            Command::WriteZeroes { offset, len, fua, .. } => {
                self.change(tag, Change::WriteZeroes { offset, len: len.into() }, fua, completions);
            }
            Command::Cache { .. } => completions.finish(tag, Ok(())),
            Command::BlockStatus { offset, len, one } => self.extents(tag, offset, len, one, completions),
        }
    }

    fn poll(&mut self, completions: &mut Completions) {
        if self.reads.is_empty() && self.elsewhere == 0 {
            return;
        }
        let done = self.finished.take();
        self.elsewhere -= done.len();
        let Self { reads, volume, times, .. } = self;
        for (tag, outcome) in done {
            times.end(tag, volume);
            completions.finish(tag, outcome);
        }
        reads.poll(volume, completions, |tag| times.end(tag, volume));
    }

    fn client_has_gone(&mut self) {
        self.changes.cancel();
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.finished.event())
    }
}
