//! The transmission phase: requests in, commands to a session, replies out.

use super::budget::Lease;
use super::buffers::{Input, Output};
use super::completions::Completions;
use super::divided::{WriteNumber, behind, first_part, is_divided};
use super::request::Request;
use super::target::Target;
use super::{Ending, Errno, wire};
use crate::export::{Command, Session};
use crate::limits::{BUFFER_BYTES, STATUSES_TOGETHER_MAX};

pub(super) struct Transmission {
    target: Target,
    session: Box<dyn Session>,
    pub completions: Completions,
    /// The data of a WRITE that is still to arrive.
    payload: Option<Payload>,
    is_stopping: bool,
    /// BLOCK_STATUSes begun in this turn.
    statuses: usize,
}

/// A WRITE whose data is consumed while it arrives.
#[derive(Clone, Copy)]
enum Payload {
    /// Its data is skipped, then the error is sent.
    Skipped(Skipped),
    /// It is begun in parts: its rest.
    Divided(Request, WriteNumber),
}

impl Payload {
    /// Bytes that were not consumed yet.
    fn left(self) -> u32 {
        match self {
            Self::Skipped(skipped) => skipped.left,
            Self::Divided(rest, _) => rest.len,
        }
    }
}

#[derive(Clone, Copy)]
struct Skipped {
    left: u32,
    cookie: u64,
    errno: Errno,
}

/// The reason why no further request is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// This many bytes are needed at once.
    Input(usize),
    /// Replies must be sent, or commands completed, first.
    Room,
    /// All connections together have used up their memory budget.
    Memory,
    /// This turn has begun the most BLOCK_STATUSes that one may.
    AnotherCall,
    /// The connection ends.
    Ended(Ending),
}

impl Transmission {
    pub fn new(target: Target, session: Box<dyn Session>, output: Output) -> Self {
        let completions = Completions::new(output, target.structured);
        Self { target, session, completions, payload: None, is_stopping: false, statuses: 0 }
    }

    /// Whether part of a long WRITE is carried out, and the rest of it is still to come.
    pub fn is_within_write(&self) -> bool {
        matches!(self.payload, Some(Payload::Divided(..)))
    }

    /// Refuses commands from now on.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Notes that the client has gone without a goodbye, and may come back on another connection.
    pub fn client_has_gone(&mut self) {
        self.session.client_has_gone();
    }

    pub fn session(&self) -> &dyn Session {
        &*self.session
    }

    /// Whether data is still to arrive of a WRITE whose header was consumed.
    pub fn awaits_payload(&self) -> bool {
        self.payload.is_some()
    }

    /// Whether the arrived bytes, or those `behind` them, contain a goodbye.
    pub fn has_disconnect(&self, input: &Input, behind: &[u8]) -> bool {
        let said = [input.filled(), behind].concat();
        let mut at = self.payload.map_or(0, Payload::left) as usize;
        while let Some(header) = said.get(at..).and_then(<[u8]>::first_chunk) {
            match Request::decode(header) {
                Some(request) if request.kind == wire::CMD_DISC => return true,
                Some(request) => at += wire::REQUEST_BYTES + request.payload() as usize,
                None => return false,
            }
        }
        false
    }

    /// Completes what is ready.
    pub fn poll(&mut self) {
        self.session.poll(&mut self.completions);
    }

    /// Begins arrived requests as far as there is room, and completes finished commands.
    pub fn advance(&mut self, input: &mut Input, lease: &mut Lease) -> Pause {
        self.statuses = 0;
        loop {
            let pause = loop {
                if let Some(pause) = self.step(input, lease) {
                    break pause;
                }
            };
            let before = self.completions.in_flight();
            self.poll();
            // Completed commands have made room, even if nothing is to be sent: a part of a WRITE has no answer.
            let has_room = self.completions.in_flight() < before;
            if !(has_room && matches!(pause, Pause::Room | Pause::Memory)) {
                return pause;
            }
        }
    }

    /// Begins one request, or a part of it.
    fn step(&mut self, input: &mut Input, lease: &mut Lease) -> Option<Pause> {
        match self.payload {
            Some(Payload::Skipped(skipped)) => return self.skip(skipped, input),
            Some(Payload::Divided(rest, write)) => return self.begin_part(&rest, write, input, lease),
            None => {}
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
        if is_divided(&request) {
            input.consume(wire::REQUEST_BYTES);
            self.payload = Some(Payload::Divided(request, self.completions.divide(&request)));
            return None;
        }
        let total = wire::REQUEST_BYTES + request.payload() as usize;
        let pause = self.pause_before(&request, total, input, lease);
        if pause.is_some() {
            return pause;
        }
        if request.kind == wire::CMD_BLOCK_STATUS {
            // A session answers at once, and may look at much for it.
            if self.statuses == STATUSES_TOGETHER_MAX {
                return Some(Pause::AnotherCall);
            }
            self.statuses += 1;
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

    /// Begins the next part of a WRITE whose header was consumed.
    fn begin_part(
        &mut self,
        rest: &Request,
        write: WriteNumber,
        input: &mut Input,
        lease: &mut Lease,
    ) -> Option<Pause> {
        let len = if self.completions.has_failed(write) {
            // A part has failed: the rest cannot change the answer, and is skipped.
            let len = input.filled().len().min(rest.len as usize);
            if len == 0 {
                return Some(Pause::Input(1));
            }
            self.completions.end_part(write, len as u32, Ok(()));
            len
        } else {
            let part = first_part(rest);
            let len = part.len as usize;
            let pause = self.pause_before(&part, len, input, lease);
            if pause.is_some() {
                return pause;
            }
            let tag = self.completions.begin_part(part, write);
            let data = &input.filled()[..len];
            let command = Command::Write { offset: part.offset, data, fua: part.is_forced() };
            self.session.begin(tag, command, &mut self.completions);
            len
        };
        input.consume(len);
        self.payload = behind(rest, len as u32).map(|rest| Payload::Divided(rest, write));
        None
    }

    /// The reason why a request that takes `total` bytes of the input is not begun yet. It takes memory only once these
    /// have arrived.
    fn pause_before(
        &self,
        request: &Request,
        total: usize,
        input: &Input,
        lease: &mut Lease,
    ) -> Option<Pause> {
        if !self.completions.has_room_for(request) {
            return Some(Pause::Room);
        }
        if input.filled().len() < total {
            return Some(Pause::Input(total));
        }
        (!lease.ensure(self.memory_with(Some(request)))).then_some(Pause::Memory)
    }

    /// Skips the data of a refused WRITE.
    fn skip(&mut self, skipped: Skipped, input: &mut Input) -> Option<Pause> {
        let len = input.filled().len().min(skipped.left as usize);
        input.consume(len);
        let left = skipped.left - len as u32;
        if left > 0 {
            self.payload = Some(Payload::Skipped(Skipped { left, ..skipped }));
            return Some(Pause::Input(1));
        }
        self.payload = None;
        self.completions.refuse(skipped.cookie, skipped.errno);
        None
    }

    /// Answers with an error, once the payload is skipped.
    fn refuse(&mut self, request: &Request, errno: Errno, input: &mut Input) {
        input.consume(wire::REQUEST_BYTES);
        let skipped = Skipped { left: request.payload(), cookie: request.cookie, errno };
        self.payload = Some(Payload::Skipped(skipped));
    }

    /// The bytes beyond the first [`BUFFER_BYTES`] that the connection's replies and commands may take: data read goes
    /// to the replies, and data of waiting writes is kept.
    pub fn memory_in_use(&self) -> usize {
        self.memory_with(None)
    }

    /// Like [`memory_in_use`](Self::memory_in_use), with another command `more`.
    fn memory_with(&self, more: Option<&Request>) -> usize {
        self.bytes_expected(more).max(self.completions.output.capacity()).saturating_sub(BUFFER_BYTES)
    }

    /// The bytes that are under way: replies that are pending, and what commands in flight, with another one, will
    /// take.
    pub fn bytes_expected(&self, more: Option<&Request>) -> usize {
        self.completions.output.pending().len() + self.completions.memory_in_flight(more)
    }
}
