//! Threads that read from the device for tasks: each with its own ring, which it waits for together with its queue.

use super::batch::Reporter;
use crate::cache::Cache;
use crate::drive::Pending;
use crate::lookup::Outcome;
use crate::single::now;
use granary_log::sync::{Arc, Mutex, MutexGuard, PoisonError};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::{self, JoinHandle};

/// A key that is looked up for a task.
pub(super) struct Request {
    pub key: Box<[u8]>,
    pub answer: Reporter,
}

/// Requests that a driver has not taken yet.
struct Queue {
    state: Mutex<QueueState>,
    /// Signalled for the first request, and at the end.
    event: OwnedFd,
}

#[derive(Default)]
struct QueueState {
    requests: Vec<Request>,
    has_ended: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        // It fails only if the counter is full: then the event is signalled already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

/// A thread that looks up keys for tasks. Dropping it ends the thread; tasks that still wait get misses.
pub(super) struct Driver {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the thread.
    pub fn start(cache: Arc<Cache>) -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let queue = Arc::new(Queue { state: Mutex::default(), event });
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let served = Arc::clone(&queue);
        let work = move || {
            let _end = EndAtDrop(&served);
            if let Err(error) = run_driver(&cache, &served, &epoll) {
                tracing::error!(%error, "cannot wait for reads: asynchronous lookups find nothing on flash any more");
            }
        };
        let thread = thread::Builder::new().name("granary-async".into()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Queues keys to be looked up.
    pub fn ask(&self, requests: impl Iterator<Item = Request>) {
        let mut state = self.queue.lock();
        if state.has_ended {
            // They are dropped, which answers them.
            return;
        }
        let was_empty = state.requests.is_empty();
        state.requests.extend(requests);
        drop(state);
        if was_empty {
            self.queue.tell();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.queue.lock().has_ended = true;
        self.queue.tell();
        if let Some(thread) = self.thread.take()
            // A task woken by this thread may drop the cache on it.
            && thread.thread().id() != thread::current().id()
        {
            // A panic was printed by the thread; there is nothing to add.
            let _ = thread.join();
        }
    }
}

/// Answers all requests when the thread ends, for whatever reason.
struct EndAtDrop<'a>(&'a Queue);

impl Drop for EndAtDrop<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        let left = std::mem::take(&mut state.requests);
        drop(state);
        drop(left);
    }
}

/// Looks up requested keys until the end is signalled.
fn run_driver(cache: &Cache, queue: &Queue, epoll: &OwnedFd) -> io::Result<()> {
    let mut pending = Pending::new(cache);
    watch(epoll, queue.event.as_fd())?;
    if let Some(event) = pending.event() {
        watch(epoll, event)?;
    }
    // Answers whose reads are in flight, by ticket.
    let mut answers: HashMap<u64, Reporter> = HashMap::new();
    let mut next_ticket = 0;
    let mut events = Vec::with_capacity(2);
    loop {
        let requests = {
            let mut state = queue.lock();
            if state.has_ended {
                return Ok(());
            }
            std::mem::take(&mut state.requests)
        };
        let (mut keys, mut wanted) = (Vec::new(), Vec::new());
        for Request { key, answer } in requests.into_iter().filter(|request| request.answer.is_wanted()) {
            keys.push(key);
            wanted.push(Some(answer));
        }
        let keys: Vec<_> = keys.iter().map(|key| cache.key(key)).collect();
        let wanted = std::cell::RefCell::new(wanted);
        if !keys.is_empty() {
            let ticket = |i: usize| {
                next_ticket += 1;
                answers.extend(wanted.borrow_mut()[i].take().map(|answer| (next_ticket, answer)));
                next_ticket
            };
            let sink = |i: usize, outcome: Outcome<'_>| {
                // Taken out first: the waiting task is woken while nothing here is borrowed.
                let answer = wanted.borrow_mut()[i].take();
                give(answer, outcome);
            };
            cache.begin_many(&mut pending, &keys, now(), ticket, sink);
        }
        cache.poll(&mut pending, now(), |ticket, outcome| give(answers.remove(&ticket), outcome));
        events.clear();
        match epoll::wait(epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Watches an event, edge-triggered: it is never read.
fn watch(epoll: &OwnedFd, event: BorrowedFd<'_>) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(epoll, event, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?)
}

fn give(answer: Option<Reporter>, outcome: Outcome<'_>) {
    if let (Some(answer), Outcome::Hit { value, .. }) = (answer, outcome) {
        answer.give(value.to_vec());
    }
}
