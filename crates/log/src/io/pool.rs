//! Reads through a pool of threads that call pread, where io_uring is refused.

use super::event::ring_event;
use super::extent::{Engine, Extent};
use super::read_in_flight::{ByDescriptor, ReadInFlight};
use crate::buffer::AlignedBuffer;
use crate::limits::POOL_THREADS;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

/// The most reads in flight of one thread: more would not be faster, and each takes a buffer for the longest read.
pub(super) const DEPTH: usize = POOL_THREADS;

pub(super) struct Job {
    pub file: Arc<OwnedFd>,
    pub flight: ReadInFlight,
    pub buffer: AlignedBuffer,
    pub answer: Sender<Done>,
    /// Rung after the answer, for an asker that does not wait for it.
    pub event: Option<Arc<OwnedFd>>,
}

/// A read that a thread of the pool has made.
pub(super) struct Done {
    pub flight: ReadInFlight,
    pub buffer: AlignedBuffer,
    answer: io::Result<usize>,
}

impl Done {
    /// `None`: the rest has to be read.
    pub fn advance(&mut self, by: ByDescriptor<'_>) -> Option<io::Result<()>> {
        let Self { flight, buffer, answer } = self;
        let bytes = &mut buffer[flight.done()..flight.extent.len];
        // A read of the rest will have its own answer.
        flight.advance(by, Engine::Pool, bytes, std::mem::replace(answer, Ok(0)))
    }
}

/// Has a thread of the pool make a read. Where the process may not start any, the caller makes it.
pub(super) fn submit(job: Job) {
    match pool() {
        Some(pool) => pool.send(job).expect("the pool lives as long as the process"),
        None => make(job),
    }
}

/// The pool of the process, with as many threads as it may start. `None`: it may start none.
fn pool() -> Option<&'static Sender<Job>> {
    static POOL: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    POOL.get_or_init(|| {
        let (sender, receiver) = channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |i| {
            let receiver = Arc::clone(&receiver);
            let work = move || work(&receiver);
            std::thread::Builder::new().name(format!("granary-read-{i}")).spawn(work)
        };
        let failed = (0..POOL_THREADS).map(|i| (i, start(i))).find(|(_, started)| started.is_err());
        let Some((threads, Err(error))) = failed else { return Some(sender) };
        tracing::warn!(threads, %error, "reads are slower: no more threads can be started for them");
        (threads > 0).then_some(sender)
    })
    .as_ref()
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().expect("no panic under the lock").recv();
        let Ok(job) = job else { return };
        make(job);
    }
}

fn make(Job { file, flight, mut buffer, answer: asker, event }: Job) {
    let bytes = &mut buffer[flight.done()..flight.extent.len];
    let answer = rustix::io::pread(&file, bytes, flight.rest().offset).map_err(io::Error::from);
    // Closed before the answer is sent: the file's lock is released with its last descriptor.
    drop(file);
    // The asker is gone only if its callback panicked; the answer is not needed then.
    let _ = asker.send(Done { flight, buffer, answer });
    if let Some(event) = event {
        ring_event(&event);
    }
}

/// One thread's access to the pool: buffers are lent to it and come back with the answer.
#[derive(Default)]
pub(super) struct PoolReader {
    idle: Vec<AlignedBuffer>,
}

impl PoolReader {
    pub(super) fn new() -> Self {
        Self { idle: Vec::new() }
    }

    pub(super) fn read_many(
        &mut self,
        by: ByDescriptor<'_>,
        extents: &[Extent],
        done: &mut dyn FnMut(usize, io::Result<&[u8]>),
    ) {
        let file = match by.file.try_clone_to_owned() {
            Ok(file) => Arc::new(file),
            Err(error) => {
                for i in 0..extents.len() {
                    done(i, Err(io::Error::new(error.kind(), error.to_string())));
                }
                return;
            }
        };
        // A channel for this call only: a panic in `done` leaves no answers for the next call.
        let (sender, receiver) = channel();
        let longest = extents.iter().map(|e| e.len).max().unwrap_or(0);
        let send = |flight, buffer| {
            let (file, answer) = (Arc::clone(&file), sender.clone());
            submit(Job { file, flight, buffer, answer, event: None });
        };
        let (mut next, mut in_flight) = (0, 0);
        while next < extents.len() || in_flight > 0 {
            while next < extents.len() && in_flight < DEPTH {
                let buffer = match self.idle.pop() {
                    Some(buffer) if buffer.len() >= longest => buffer,
                    _ => AlignedBuffer::zeroed(longest),
                };
                send(ReadInFlight::new(extents[next], next as u64), buffer);
                next += 1;
                in_flight += 1;
            }
            let mut completed = receiver.recv().expect("every job answers");
            let outcome = completed.advance(by);
            let Done { flight, buffer, .. } = completed;
            let Some(result) = outcome else {
                send(flight, buffer);
                continue;
            };
            in_flight -= 1;
            done(flight.ticket as usize, result.map(|()| &buffer[..flight.extent.len]));
            self.idle.push(buffer);
        }
    }
}
