//! Reads through a pool of threads that call pread, where io_uring is refused.

use super::event::ring_event;
use super::extent::Extent;
use crate::buffer::AlignedBuffer;
use crate::limits::POOL_THREADS;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

/// Reads in flight of one thread: more would not be read any sooner, and each has a buffer for the longest.
pub(super) const DEPTH: usize = POOL_THREADS;

pub(super) struct Job {
    pub file: Arc<OwnedFd>,
    pub offset: u64,
    pub len: usize,
    pub ticket: u64,
    pub buffer: AlignedBuffer,
    pub answer: Sender<Done>,
    /// Rung after the answer, for who does not wait for it.
    pub event: Option<Arc<OwnedFd>>,
}

pub(super) struct Done {
    pub ticket: u64,
    pub len: usize,
    pub buffer: AlignedBuffer,
    pub result: io::Result<()>,
}

/// One pool serves the process.
pub(super) fn pool() -> &'static Sender<Job> {
    static POOL: OnceLock<Sender<Job>> = OnceLock::new();
    POOL.get_or_init(|| {
        let (sender, receiver) = channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        for i in 0..POOL_THREADS {
            let receiver = Arc::clone(&receiver);
            std::thread::Builder::new()
                .name(format!("granary-read-{i}"))
                .spawn(move || work(&receiver))
                .expect("a thread of the read pool starts");
        }
        sender
    })
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().expect("no panic under the lock").recv();
        let Ok(Job { file, offset, len, ticket, mut buffer, answer, event }) = job else { return };
        let result = read_whole(&file, offset, &mut buffer[..len]);
        // Not longer than the asker waits: the file's lock goes with its last descriptor.
        drop(file);
        // The asker is gone only if its callback panicked; then nobody wants the answer.
        let _ = answer.send(Done { ticket, len, buffer, result });
        if let Some(event) = event {
            ring_event(&event);
        }
    }
}

fn read_whole(file: &OwnedFd, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(file, &mut bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => done += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// One thread's way to the pool: buffers are lent to it and come back with the answer.
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
        file: BorrowedFd<'_>,
        extents: &[Extent],
        done: &mut dyn FnMut(usize, io::Result<&[u8]>),
    ) {
        let file = match file.try_clone_to_owned() {
            Ok(file) => Arc::new(file),
            Err(error) => {
                for i in 0..extents.len() {
                    done(i, Err(io::Error::new(error.kind(), error.to_string())));
                }
                return;
            }
        };
        // A channel of this call's own: a panic in `done` leaves no answer for the next call.
        let (sender, receiver) = channel();
        let longest = extents.iter().map(|e| e.len).max().unwrap_or(0);
        let (mut next, mut in_flight) = (0, 0);
        while next < extents.len() || in_flight > 0 {
            while next < extents.len() && in_flight < DEPTH {
                let buffer = match self.idle.pop() {
                    Some(buffer) if buffer.len() >= longest => buffer,
                    _ => AlignedBuffer::zeroed(longest),
                };
                let Extent { offset, len } = extents[next];
                let (file, ticket, answer) = (file.clone(), next as u64, sender.clone());
                let job = Job { file, offset, len, ticket, buffer, answer, event: None };
                pool().send(job).expect("the pool lives as long as the process");
                next += 1;
                in_flight += 1;
            }
            let Done { ticket, len, buffer, result } = receiver.recv().expect("every job answers");
            in_flight -= 1;
            done(ticket as usize, result.map(|()| &buffer[..len]));
            self.idle.push(buffer);
        }
    }
}
