//! Background reads through the pool.

use super::event::ring_event;
use super::extent::Extent;
use super::pool::{DEPTH, Done, Job, submit};
use super::read_in_flight::{ByDescriptor, Handover, ReadInFlight};
use crate::buffer::AlignedBuffer;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// One thread's access to the pool, for reads that it does not wait for.
pub(super) struct PoolReads {
    idle: Vec<AlignedBuffer>,
    pub in_flight: usize,
    answers: (Sender<Done>, Receiver<Done>),
    /// An answer that [`wait`](Self::wait) has received.
    early: Option<Done>,
    event: Arc<OwnedFd>,
}

impl PoolReads {
    pub fn new(event: &Arc<OwnedFd>) -> Self {
        Self { idle: Vec::new(), in_flight: 0, answers: channel(), early: None, event: Arc::clone(event) }
    }

    /// Waits for an answer, if one is to come.
    pub fn wait(&mut self) {
        if self.in_flight > 0 && self.early.is_none() {
            self.early = self.answers.1.recv().ok();
        }
    }

    pub fn poll(
        &mut self,
        waiting: &mut VecDeque<(Extent, u64)>,
        by: ByDescriptor<'_>,
        done: &mut Handover<'_>,
    ) {
        let (mut completed, mut unfinished) = (Vec::new(), Vec::new());
        while let Some(mut answer) = self.early.take().or_else(|| self.answers.1.try_recv().ok()) {
            self.in_flight -= 1;
            match answer.advance(by) {
                Some(result) => completed.push((answer, result)),
                None => unfinished.push(answer),
            }
        }
        let mut next = self.send(unfinished, waiting, by, done);
        for (Done { flight, buffer, .. }, result) in completed {
            next.extend(done(flight.ticket, result.map(|()| &buffer[..flight.extent.len])));
            self.idle.push(buffer);
        }
        if !next.is_empty() {
            waiting.extend(next);
            let next = self.send(Vec::new(), waiting, by, done);
            if !next.is_empty() {
                waiting.extend(next);
                ring_event(&self.event);
            }
        }
    }

    /// Sends the rests of unfinished reads, then waiting reads, up to [`DEPTH`] in flight. If the descriptor cannot be
    /// duplicated for the pool, all of them fail; returns the reads that `done` gives then.
    fn send(
        &mut self,
        unfinished: Vec<Done>,
        waiting: &mut VecDeque<(Extent, u64)>,
        by: ByDescriptor<'_>,
        done: &mut Handover<'_>,
    ) -> Vec<(Extent, u64)> {
        if unfinished.is_empty() && (waiting.is_empty() || self.in_flight >= DEPTH) {
            return Vec::new();
        }
        let file = match by.file.try_clone_to_owned() {
            Ok(file) => Arc::new(file),
            Err(error) => {
                let unfinished = unfinished.iter().map(|done| done.flight.ticket);
                let failed = unfinished.chain(waiting.drain(..).map(|(_, ticket)| ticket));
                let error = || io::Error::new(error.kind(), error.to_string());
                return failed.filter_map(|ticket| done(ticket, Err(error()))).collect();
            }
        };
        for Done { flight, buffer, .. } in unfinished {
            self.send_one(flight, buffer, &file);
        }
        while self.in_flight < DEPTH
            && let Some((extent, ticket)) = waiting.pop_front()
        {
            let buffer = self.idle.pop().filter(|buffer| buffer.len() >= extent.len);
            let buffer = buffer.unwrap_or_else(|| AlignedBuffer::zeroed(extent.len));
            self.send_one(ReadInFlight::new(extent, ticket), buffer, &file);
        }
        Vec::new()
    }

    fn send_one(&mut self, flight: ReadInFlight, buffer: AlignedBuffer, file: &Arc<OwnedFd>) {
        let (file, answer, event) = (Arc::clone(file), self.answers.0.clone(), Some(Arc::clone(&self.event)));
        submit(Job { file, flight, buffer, answer, event });
        self.in_flight += 1;
    }
}

impl Drop for PoolReads {
    fn drop(&mut self) {
        // The pool holds the file, whose lock must be free once this is dropped.
        self.in_flight -= usize::from(self.early.take().is_some());
        while self.in_flight > 0 && self.answers.1.recv().is_ok() {
            self.in_flight -= 1;
        }
    }
}
