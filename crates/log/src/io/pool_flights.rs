//! Reads through the pool that nobody waits for.

use super::extent::Extent;
use super::pool::{DEPTH, Done, Job, pool};
use crate::buffer::AlignedBuffer;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// One thread's way to the pool, for reads that it does not wait for.
pub(super) struct PoolFlights {
    idle: Vec<AlignedBuffer>,
    pub in_flight: usize,
    answers: (Sender<Done>, Receiver<Done>),
    event: Arc<OwnedFd>,
}

impl PoolFlights {
    pub fn new(event: &Arc<OwnedFd>) -> Self {
        Self { idle: Vec::new(), in_flight: 0, answers: channel(), event: Arc::clone(event) }
    }

    pub fn poll(
        &mut self,
        waiting: &mut VecDeque<(Extent, u64)>,
        file: BorrowedFd<'_>,
        done: &mut dyn FnMut(u64, io::Result<&[u8]>),
    ) {
        let mut landed = Vec::new();
        while let Ok(answer) = self.answers.1.try_recv() {
            landed.push(answer);
        }
        self.in_flight -= landed.len();
        if !waiting.is_empty() && self.in_flight < DEPTH {
            match file.try_clone_to_owned() {
                Ok(file) => self.send(waiting, &Arc::new(file)),
                Err(error) => {
                    for (_, ticket) in waiting.drain(..) {
                        done(ticket, Err(io::Error::new(error.kind(), error.to_string())));
                    }
                }
            }
        }
        for Done { ticket, len, buffer, result } in landed {
            done(ticket, result.map(|()| &buffer[..len]));
            self.idle.push(buffer);
        }
    }

    fn send(&mut self, waiting: &mut VecDeque<(Extent, u64)>, file: &Arc<OwnedFd>) {
        while self.in_flight < DEPTH
            && let Some((Extent { offset, len }, ticket)) = waiting.pop_front()
        {
            let buffer = self.idle.pop().filter(|buffer| buffer.len() >= len);
            let buffer = buffer.unwrap_or_else(|| AlignedBuffer::zeroed(len));
            let (file, answer) = (Arc::clone(file), self.answers.0.clone());
            let event = Some(Arc::clone(&self.event));
            let job = Job { file, offset, len, ticket, buffer, answer, event };
            pool().send(job).expect("the pool lives as long as the process");
            self.in_flight += 1;
        }
    }
}

impl Drop for PoolFlights {
    fn drop(&mut self) {
        // The pool holds the file, whose lock must be free when this has gone.
        while self.in_flight > 0 && self.answers.1.recv().is_ok() {
            self.in_flight -= 1;
        }
    }
}
