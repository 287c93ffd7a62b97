//! Changes of a volume: made at once, or by a thread that may wait for room while their connection goes on.

use super::VolumeExport;
use super::finished::Finished;
use crate::export::Tag;
use crate::protocol::Errno;
use granary_volume::{Io, Volume};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// What is to be changed.
pub(super) enum Change<'a> {
    Write { offset: u64, data: Cow<'a, [u8]> },
    WriteZeroes { offset: u64, len: u64 },
    Trim { offset: u64, len: u64 },
}

impl Change<'_> {
    /// Makes it. It may wait for room.
    pub fn make(&self, volume: &Volume, io: &mut Io) -> io::Result<()> {
        match self {
            Self::Write { offset, data } => volume.write(io, *offset, data),
            Self::WriteZeroes { offset, len } => volume.write_zeroes(io, *offset, *len),
            Self::Trim { offset, len } => volume.trim(*offset, *len),
        }
    }

    /// The bytes that it may append to the log, in blocks of this size: parts of blocks are written as whole ones.
    pub fn appended_max(&self, block_size: u64) -> u64 {
        match self {
            Self::Write { data, .. } => data.len() as u64 + 2 * block_size,
            Self::WriteZeroes { .. } | Self::Trim { .. } => 2 * block_size,
        }
    }

    fn into_owned(self) -> Change<'static> {
        match self {
            Self::Write { offset, data } => Change::Write { offset, data: Cow::Owned(data.into_owned()) },
            Self::WriteZeroes { offset, len } => Change::WriteZeroes { offset, len },
            Self::Trim { offset, len } => Change::Trim { offset, len },
        }
    }
}

/// A change that waits for its turn.
struct Waiting {
    tag: Tag,
    change: Change<'static>,
    is_forced: bool,
}

#[derive(Default)]
struct Queue {
    /// Trims: they make room, and come before writes, which may have to wait for it.
    first: VecDeque<Waiting>,
    then: VecDeque<Waiting>,
    ends: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change; `None`: there are none any more.
    fn next(&self) -> Option<Waiting> {
        let mut queue = self.lock();
        loop {
            if queue.ends {
                return None;
            }
            let next = queue.first.pop_front();
            if let Some(next) = next.or_else(|| queue.then.pop_front()) {
                return Some(next);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread that makes the changes of a connection that may have to wait, one after the other. It is started with the
/// first of them. Dropped, it gives up those that it has not begun.
pub(super) struct Changes {
    export: Arc<VolumeExport>,
    finished: Arc<Finished>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Changes {
    pub fn new(export: Arc<VolumeExport>, finished: Arc<Finished>) -> Self {
        Self { export, finished, shared: Arc::default(), thread: None }
    }

    /// Whether changes can be left to the thread: it runs, or could be started.
    pub fn is_ready(&mut self) -> bool {
        if self.thread.is_none() {
            let (export, finished) = (Arc::clone(&self.export), Arc::clone(&self.finished));
            let shared = Arc::clone(&self.shared);
            let run = move || serve(&export, &finished, &shared);
            let started = Builder::new().name("nbd-changes".into()).spawn(run);
            let started = started.inspect_err(|error| tracing::warn!(%error, "a connection waits for room"));
            self.thread = started.ok();
        }
        self.thread.is_some()
    }

    /// Leaves a change to the thread, which is [ready](Self::is_ready).
    pub fn put(&self, tag: Tag, change: Change<'_>, is_forced: bool) {
        let waiting = Waiting { tag, change: change.into_owned(), is_forced };
        let mut queue = self.shared.lock();
        match waiting.change {
            Change::Trim { .. } => queue.first.push_back(waiting),
            _ => queue.then.push_back(waiting),
        }
        drop(queue);
        self.shared.changed.notify_one();
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_one();
        // A panic of the thread was printed by it; there is nothing to add.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(VolumeExport { volume, room }: &VolumeExport, finished: &Arc<Finished>, shared: &Shared) {
    let mut io = Io::new();
    while let Some(Waiting { tag, change, is_forced }) = shared.next() {
        // The next changes may find some again.
        room.look(volume);
        room.spend(change.appended_max(volume.config().block_size));
        match change.make(volume, &mut io) {
            Ok(()) if is_forced => finished.push_durable(volume, tag),
            made => finished.push(tag, made.map_err(|error| Errno::from(&error))),
        }
    }
}
