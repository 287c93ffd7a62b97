//! Commands in flight, and the replies of those that are completed.

use super::buffers::Output;
use super::divided::{DividedWrites, WriteNumber};
use super::replies::{ExtentsReply, ReadReply};
use super::request::Request;
use super::{Errno, wire};
use crate::export::{Outcome, Tag};
use crate::limits::{BUFFER_BYTES, BYTES_IN_FLIGHT_MAX, COMMANDS_IN_FLIGHT_MAX, OUTPUT_BYTES_SOFT};

/// The commands in flight, which a [`Session`](crate::Session) completes here. Replies are written directly to the
/// output.
///
/// # Panics
/// Its methods panic if a tag is not that of a command in flight of the kind in question: a session completes each
/// command once.
#[derive(Debug)]
pub struct Completions {
    pub(super) output: Output,
    pub(super) structured: bool,
    /// By tag.
    commands: Vec<Option<InFlight>>,
    free: Vec<Tag>,
    divided: DividedWrites,
    /// Bytes that the commands in flight transfer.
    bytes: u64,
    /// The longest READ in flight that counts ([`copied_by`]).
    longest_read: u32,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    request: Request,
    /// The WRITE that this command is a part of.
    part_of: Option<WriteNumber>,
}

/// The bytes that a READ occupies a second time while its reply is written. Short READs do not count.
fn copied_by(request: &Request) -> u32 {
    if request.kind == wire::CMD_READ && request.len as usize > BUFFER_BYTES { request.len } else { 0 }
}

impl Completions {
    pub(super) fn new(output: Output, structured: bool) -> Self {
        let free = (0..COMMANDS_IN_FLIGHT_MAX as u32).rev().map(Tag).collect();
        let commands = vec![None; COMMANDS_IN_FLIGHT_MAX];
        Self {
            output,
            structured,
            commands,
            free,
            divided: DividedWrites::default(),
            bytes: 0,
            longest_read: 0,
        }
    }

    /// The number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.commands.len() - self.free.len()
    }

    /// The bytes that the commands in flight and `more` take at the most: one of them at a time is copied to its reply.
    pub(super) fn memory_in_flight(&self, more: Option<&Request>) -> usize {
        let copied = self.longest_read.max(more.map_or(0, copied_by));
        self.bytes as usize + more.map_or(0, Request::transfer) as usize + copied as usize
    }

    /// Whether another command may be begun.
    pub(super) fn has_room_for(&self, request: &Request) -> bool {
        let is_alone = self.in_flight() == 0;
        let fits = self.bytes + u64::from(request.transfer()) <= BYTES_IN_FLIGHT_MAX;
        !self.free.is_empty() && (is_alone || fits) && self.has_room()
    }

    /// Whether replies may be gathered.
    pub(super) fn has_room(&self) -> bool {
        self.output.pending().len() < OUTPUT_BYTES_SOFT
    }

    pub(super) fn begin(&mut self, request: Request) -> Tag {
        self.begin_command(InFlight { request, part_of: None })
    }

    fn begin_command(&mut self, command: InFlight) -> Tag {
        let tag = self.free.pop().expect("there was room");
        self.commands[tag.0 as usize] = Some(command);
        self.bytes += u64::from(command.request.transfer());
        self.longest_read = self.longest_read.max(copied_by(&command.request));
        tag
    }

    /// Notes that a WRITE is begun in parts.
    pub(super) fn divide(&mut self, request: &Request) -> WriteNumber {
        self.divided.begin(request)
    }

    pub(super) fn begin_part(&mut self, part: Request, part_of: WriteNumber) -> Tag {
        self.begin_command(InFlight { request: part, part_of: Some(part_of) })
    }

    /// Whether a part of this WRITE has failed.
    pub(super) fn has_failed(&self, write: WriteNumber) -> bool {
        self.divided.has_failed(write)
    }

    /// Notes the outcome of a part of a WRITE, which is answered after its last part.
    pub(super) fn end_part(&mut self, write: WriteNumber, len: u32, outcome: Outcome) {
        if let Some((cookie, outcome)) = self.divided.end_part(write, len, outcome) {
            self.answer(cookie, outcome);
        }
    }

    /// Removes a command from those in flight.
    fn end(&mut self, tag: Tag) -> InFlight {
        let command = self.commands[tag.0 as usize].take().expect("the command is in flight");
        self.free.push(tag);
        self.bytes -= u64::from(command.request.transfer());
        let copied = copied_by(&command.request);
        if copied > 0 && copied == self.longest_read {
            let left = self.commands.iter().flatten().map(|command| copied_by(&command.request));
            self.longest_read = left.max().unwrap_or(0);
        }
        command
    }

    /// Completes a command without data in its reply.
    pub fn finish(&mut self, tag: Tag, outcome: Outcome) {
        let InFlight { request, part_of } = self.end(tag);
        let wants_data = matches!(request.kind, wire::CMD_READ | wire::CMD_BLOCK_STATUS);
        assert!(outcome.is_err() || !wants_data, "what asks for data is completed by it");
        match part_of {
            Some(write) => self.end_part(write, request.len, outcome),
            None => self.answer(request.cookie, outcome),
        }
    }

    /// Completes any command with an error.
    pub fn fail(&mut self, tag: Tag, errno: Errno) {
        self.finish(tag, Err(errno));
    }

    /// Completes a READ with all of its data.
    pub fn data(&mut self, tag: Tag, data: &[u8]) {
        let mut reply = self.read(tag);
        reply.data(data);
        reply.finish();
    }

    /// Completes a READ piece by piece, in the order of offsets.
    pub fn read(&mut self, tag: Tag) -> ReadReply<'_> {
        let request = self.end(tag).request;
        assert!(request.kind == wire::CMD_READ, "the command is a READ");
        ReadReply::new(self, request)
    }

    /// Completes a BLOCK_STATUS extent by extent, in the order of offsets.
    pub fn extents(&mut self, tag: Tag) -> ExtentsReply<'_> {
        let request = self.end(tag).request;
        assert!(request.kind == wire::CMD_BLOCK_STATUS, "the command is a BLOCK_STATUS");
        ExtentsReply::new(self, request)
    }

    fn answer(&mut self, cookie: u64, outcome: Outcome) {
        match outcome {
            Ok(()) => self.succeed(cookie),
            Err(errno) => self.refuse(cookie, errno),
        }
    }

    /// Answers a request without data with success.
    pub(super) fn succeed(&mut self, cookie: u64) {
        self.simple(cookie, 0);
    }

    /// Answers a READ of 0 bytes.
    pub(super) fn succeed_empty_read(&mut self, cookie: u64) {
        if self.structured {
            self.chunk(wire::REPLY_FLAG_DONE, wire::REPLY_TYPE_NONE, cookie, 0);
        } else {
            self.simple(cookie, 0);
        }
    }

    /// Answers a request with an error.
    pub(super) fn refuse(&mut self, cookie: u64, errno: Errno) {
        if !self.structured {
            self.simple(cookie, errno.number());
            return;
        }
        let text = errno.text();
        self.chunk(wire::REPLY_FLAG_DONE, wire::REPLY_TYPE_ERROR, cookie, 6 + text.len() as u32);
        self.output.put(&errno.number().to_be_bytes());
        self.output.put(&(text.len() as u16).to_be_bytes());
        self.output.put(text.as_bytes());
    }

    /// Puts a simple reply's header.
    pub(super) fn simple(&mut self, cookie: u64, error: u32) {
        let header = self.output.reserve(wire::SIMPLE_REPLY_BYTES);
        header[..4].copy_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
        header[4..8].copy_from_slice(&error.to_be_bytes());
        header[8..].copy_from_slice(&cookie.to_be_bytes());
    }

    /// Puts a chunk's header.
    pub(super) fn chunk(&mut self, flags: u16, kind: u16, cookie: u64, len: u32) {
        let header = self.output.reserve(wire::CHUNK_HEADER_BYTES);
        header[..4].copy_from_slice(&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes());
        header[4..6].copy_from_slice(&flags.to_be_bytes());
        header[6..8].copy_from_slice(&kind.to_be_bytes());
        header[8..16].copy_from_slice(&cookie.to_be_bytes());
        header[16..].copy_from_slice(&len.to_be_bytes());
    }
}
