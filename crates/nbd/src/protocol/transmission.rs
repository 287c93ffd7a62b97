//! The transmission phase: requests in, commands to a session, replies out.

use super::budget::Lease;
use super::buffers::{Input, Output};
use super::completions::Completions;
use super::request::Request;
use super::target::Target;
use super::{Ending, Errno, wire};
use crate::export::{Command, Session};
use crate::limits::BUFFER_BYTES;

pub(super) struct Transmission {
    target: Target,
    session: Box<dyn Session>,
    pub completions: Completions,
    /// The payload of a refused WRITE that is still to be skipped, and its answer.
    skipped: Option<Skipped>,
    is_stopping: bool,
}

struct Skipped {
    left: u32,
    cookie: u64,
    errno: Errno,
}

/// Why no more requests are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// This many bytes are needed at once.
    Input(usize),
    /// Replies must be sent, or commands completed, first.
    Room,
    /// All connections together use as much memory as they may.
    Memory,
    /// The client asks for nothing more.
    Ended(Ending),
}

impl Transmission {
    pub fn new(target: Target, session: Box<dyn Session>, output: Output) -> Self {
        let completions = Completions::new(output, target.structured);
        Self { target, session, completions, skipped: None, is_stopping: false }
    }

    /// From now on commands are refused.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    pub fn session(&self) -> &dyn Session {
        &*self.session
    }

    /// Completes what is ready.
    pub fn poll(&mut self) {
        self.session.poll(&mut self.completions);
    }

    /// Begins what has arrived, as far as there is room, and completes what is ready.
    pub fn advance(&mut self, input: &mut Input, lease: &mut Lease) -> Pause {
        let pause = loop {
            if let Some(pause) = self.step(input, lease) {
                break pause;
            }
        };
        self.poll();
        pause
    }

    /// Begins one request.
    fn step(&mut self, input: &mut Input, lease: &mut Lease) -> Option<Pause> {
        if let Some(skipped) = &mut self.skipped {
            let len = input.filled().len().min(skipped.left as usize);
            input.consume(len);
            skipped.left -= len as u32;
            if skipped.left > 0 {
                return Some(Pause::Input(1));
            }
            let Skipped { cookie, errno, .. } = self.skipped.take()?;
            self.completions.refuse(cookie, errno);
            return None;
        }
        if !self.completions.has_room() {
            return Some(Pause::Room);
        }
        let Some(header) = input.filled().first_chunk() else {
            return Some(Pause::Input(wire::REQUEST_BYTES));
        };
        let Some(request) = Request::decode(header) else {
            return Some(Pause::Ended(Ending::Violation("a request's magic number is wrong")));
        };
        if request.kind == wire::CMD_DISC {
            input.consume(wire::REQUEST_BYTES);
            return Some(Pause::Ended(Ending::Goodbye));
        }
        let checked = match self.is_stopping {
            true => Err(Errno::Shutdown),
            false => request.command(&self.target),
        };
        let command = match checked {
            Ok(command) => command,
            Err(errno) => {
                self.refuse(&request, errno, input);
                return None;
            }
        };
        if !self.completions.has_room_for(&request) {
            return Some(Pause::Room);
        }
        let total = wire::REQUEST_BYTES + request.payload() as usize;
        if !lease.ensure(self.memory(&request, input.capacity_for(total))) {
            return Some(Pause::Memory);
        }
        if input.filled().len() < total {
            return Some(Pause::Input(total));
        }
        if request.len == 0 && request.kind != wire::CMD_FLUSH {
            match request.kind {
                wire::CMD_READ => self.completions.succeed_empty_read(request.cookie),
                _ => self.completions.succeed(request.cookie),
            }
            input.consume(total);
            return None;
        }
        let tag = self.completions.begin(request);
        let command = match command {
            Command::Write { offset, fua, .. } => {
                Command::Write { offset, data: &input.filled()[wire::REQUEST_BYTES..total], fua }
            }
            other => other,
        };
        self.session.begin(tag, command, &mut self.completions);
        input.consume(total);
        None
    }

    /// Answers with an error, once the payload is skipped.
    fn refuse(&mut self, request: &Request, errno: Errno, input: &mut Input) {
        input.consume(wire::REQUEST_BYTES);
        self.skipped = Some(Skipped { left: request.payload(), cookie: request.cookie, errno });
    }

    /// The bytes beyond the first [`BUFFER_BYTES`] of each buffer that the connection may take with this request.
    fn memory(&self, request: &Request, input_capacity: usize) -> usize {
        let output = &self.completions.output;
        let expected = output.pending().len()
            + self.completions.bytes_in_flight() as usize
            + request.transfer() as usize;
        let large = |bytes: usize| bytes.saturating_sub(BUFFER_BYTES);
        large(input_capacity) + large(expected.max(output.capacity()))
    }
}
