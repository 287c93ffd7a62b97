//! Changes of a volume: made at once, or by a thread that may wait for room while their connection goes on.

use super::finished::Finished;
use crate::export::Tag;
use crate::protocol::Errno;
use granary_volume::limits::ROOM_WAIT_MAX;
use granary_volume::{Io, Volume, WaitPolicy};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time for which a change that waits for room gives way to trims: then they wait for it.
const GIVES_WAY_MAX: Duration = ROOM_WAIT_MAX.saturating_mul(2);

/// A change to the volume.
pub(super) enum Change<'a> {
    Write { offset: u64, data: Cow<'a, [u8]> },
    WriteZeroes { offset: u64, len: u64 },
    Trim { offset: u64, len: u64 },
}

impl Change<'_> {
    /// Makes it, waiting by this policy where there is no room.
    pub fn make(&self, volume: &Volume, io: &mut Io, policy: WaitPolicy<'_>) -> io::Result<()> {
        match self {
            Self::Write { offset, data } => volume.try_write(io, *offset, data, policy),
            Self::WriteZeroes { offset, len } => volume.try_write_zeroes(io, *offset, *len, policy),
            Self::Trim { offset, len } => volume.try_trim(*offset, *len, policy),
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
struct QueuedChange {
    tag: Tag,
    change: Change<'static>,
    is_forced: bool,
    /// The time at which it was put here.
    since: Instant,
}

impl QueuedChange {
    /// Whether it makes room, and comes before what may have to wait for that.
    fn is_trim(&self) -> bool {
        matches!(self.change, Change::Trim { .. })
    }
}

#[derive(Default)]
struct Queue {
    /// Trims: they make room, and come before writes, which may have to wait for it. A write that does gives way to
    /// them.
    first: VecDeque<QueuedChange>,
    then: VecDeque<QueuedChange>,
    /// Changes that are not made, the one that is under way among them.
    left: usize,
    ends: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// There are trims: what waits is to give way.
    has_trims: AtomicBool,
    /// The client has gone: what it had asked for must not come behind what it asks for on another connection.
    are_cancelled: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change; `None`: there are none any more.
    fn next(&self) -> Option<QueuedChange> {
        let mut queue = self.lock();
        loop {
            if queue.ends {
                return None;
            }
            let next = queue.first.pop_front();
            self.has_trims.store(!queue.first.is_empty(), Ordering::Release);
            if let Some(next) = next.or_else(|| queue.then.pop_front()) {
                return Some(next);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread that makes the changes of a connection that may have to wait, one after the other. It is started with the
/// first of them. Dropped, it gives them up.
pub(super) struct Changes {
    volume: Arc<Volume>,
    finished: Arc<Finished>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Changes {
    pub fn new(volume: Arc<Volume>, finished: Arc<Finished>) -> Self {
        Self { volume, finished, shared: Arc::default(), thread: None }
    }

    /// Whether some wait: those that come next have no room either.
    pub fn are_waiting(&self) -> bool {
        self.thread.is_some() && self.shared.lock().left > 0
    }

    /// Whether changes can be left to the thread: it runs, or could be started.
    pub fn is_ready(&mut self) -> bool {
        if self.thread.is_none() {
            let (volume, finished) = (Arc::clone(&self.volume), Arc::clone(&self.finished));
            let shared = Arc::clone(&self.shared);
            let run = move || run_changes(&volume, &finished, &shared);
            let started = Builder::new().name("nbd-changes".into()).spawn(run);
            let started = started.inspect_err(
                |error| tracing::warn!(%error, "no thread for changes that wait for room: they are refused"),
            );
            self.thread = started.ok();
        }
        self.thread.is_some()
    }

    /// Cancels all that wait, and what is left of the one under way. They end with ESHUTDOWN.
    pub fn cancel(&self) {
        self.shared.are_cancelled.store(true, Ordering::Release);
    }

    /// Whether they [are cancelled](Self::cancel).
    pub fn are_cancelled(&self) -> bool {
        self.shared.are_cancelled.load(Ordering::Acquire)
    }

    /// Leaves a change to the thread, which is [ready](Self::is_ready).
    pub fn put(&self, tag: Tag, change: Change<'_>, is_forced: bool) {
        let waiting = QueuedChange { tag, change: change.into_owned(), is_forced, since: Instant::now() };
        let mut queue = self.shared.lock();
        queue.left += 1;
        if waiting.is_trim() {
            queue.first.push_back(waiting);
            self.shared.has_trims.store(true, Ordering::Release);
        } else {
            queue.then.push_back(waiting);
        }
        drop(queue);
        self.shared.changed.notify_one();
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.cancel();
        self.shared.lock().ends = true;
        self.shared.changed.notify_one();
        // A panic of the thread was printed by it; there is nothing to add.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run_changes(volume: &Volume, finished: &Arc<Finished>, shared: &Shared) {
    let mut io = Io::new();
    while let Some(waiting) = shared.next() {
        let policy = WaitPolicy::fail_after(ROOM_WAIT_MAX).cancelled_by(&shared.are_cancelled);
        let gives_way = !waiting.is_trim() && waiting.since.elapsed() < GIVES_WAY_MAX;
        let policy = if gives_way { policy.interruptible_by(&shared.has_trims) } else { policy };
        let made = waiting.change.make(volume, &mut io, policy);
        if gives_way && made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            // Made anew as a whole: nobody was told of a part of it. It waits as long as if it had just come, for the
            // trims may make the room.
            shared.lock().then.push_front(waiting);
            continue;
        }
        let QueuedChange { tag, is_forced, .. } = waiting;
        shared.lock().left -= 1;
        match made {
            Ok(()) if is_forced => finished.push_durable(volume, tag),
            made => finished.push(tag, made.map_err(|error| Errno::from(&error))),
        }
    }
}
