//! One client's conversation, without its socket: bytes come in, replies wait to go out.

use super::connections::{Doing, Peer};
use super::dumping::Dump;
use super::input::{Cursor, Input};
use crate::limits::{
    BUFFER_BYTES_KEPT, KEYS_PER_BATCH, KEYS_PER_BATCH_FIRST, KEYS_PER_TURN, LINE_BYTES_MAX, OUTPUT_BYTES_MAX,
    PENDING_READS_MAX, READ_BYTES, STEPS_PER_TURN,
};
use crate::protocol::{Access, Decoder, Ending, Taken};
use crate::store::Fetch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Replies that the client has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub bytes: Vec<u8>,
    sent: usize,
}

impl Output {
    /// Whether there is room for more.
    pub fn has_room(&self) -> bool {
        self.bytes.len() - self.sent < OUTPUT_BYTES_MAX
    }

    fn sent(&mut self, len: usize) {
        self.sent += len;
        // A client may go on for ever without once taking all there is.
        if self.sent == self.bytes.len() || self.sent >= OUTPUT_BYTES_MAX {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// One client's conversation.
#[derive(Debug)]
pub struct Session {
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) ending: Option<Ending>,
    /// Bytes that the input must have before it is worth looking at.
    pub(super) wanted: usize,
    /// The name that its owner has for it.
    pub(super) number: usize,
    /// The places of the reads that the input begins with and that wait for the device, in their order. Other requests
    /// behind them are not looked at.
    pub(super) pending: VecDeque<u32>,
    /// The end of these in the input.
    begun: Cursor,
    /// The fetch that the next request waits for: its place is the only one of `pending`.
    pub(super) fetching: Option<Fetch>,
    /// The fetch that the next request has waited for.
    pub(super) fetched: Option<Fetch>,
    /// Keys of reads that it may still look up in this turn.
    keys_left: usize,
    /// Requests other than reads that are still carried out in this turn.
    steps_left: usize,
    /// Whether requests other than reads were carried out in this turn.
    has_changed: bool,
    /// Keys whose values find room together, as far as is known.
    keys_fit: usize,
    pub(super) write_stall: WriteStall,
    /// The list of all items that it is being sent.
    pub(super) dump: Option<Dump>,
    /// Its connection, as `stats conns` shows it.
    pub(super) peer: Option<Arc<Peer>>,
}

/// The wait of a request that stores something for write buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteStall {
    is_waiting: bool,
    /// Until when the request may wait, in one go or in several; `None`: it has not waited.
    deadline: Option<Instant>,
}

impl WriteStall {
    /// Has the request wait, as there is no write buffer for it. Returns `false` once it has waited for `longest`.
    pub fn begin(&mut self, now: Instant, longest: Duration) -> bool {
        self.is_waiting = now < *self.deadline.get_or_insert(now + longest);
        self.is_waiting
    }

    /// Ends the wait if there are write buffers again, or it has lasted long enough. If the request finds that another has
    /// taken the room, it waits for the rest of its time.
    fn end(&mut self, is_behind: bool, now: Instant) {
        self.is_waiting &= is_behind && self.deadline.is_some_and(|deadline| now < deadline);
    }
}

impl Session {
    /// For a client that has just connected.
    pub fn new(item_bytes_max: usize, access: Access, number: usize) -> Self {
        let decoder = Decoder::new(item_bytes_max, access);
        let input = Input::new(decoder);
        let (pending, begun) = (VecDeque::new(), Cursor::default());
        let output = Output::default();
        Self {
            input,
            output,
            ending: None,
            wanted: 0,
            number,
            pending,
            begun,
            fetching: None,
            fetched: None,
            keys_left: KEYS_PER_TURN,
            steps_left: STEPS_PER_TURN,
            has_changed: false,
            keys_fit: KEYS_PER_BATCH_FIRST,
            write_stall: WriteStall::default(),
            dump: None,
            peer: None,
        }
    }

    /// The client's connection.
    pub fn with_peer(self, peer: Arc<Peer>) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// Notes what its connection does, for `stats conns`.
    pub fn note(&self, active_at: u32) {
        let doing = match self.wants_data() {
            true => Doing::ReadingItem,
            false if self.is_pending() => Doing::Waiting,
            false => Doing::Reading,
        };
        if let Some(peer) = &self.peer {
            peer.note(doing, active_at);
        }
    }

    /// Whether the line of a request has come, and not its data.
    fn wants_data(&self) -> bool {
        self.wanted > 0 && self.input.has_line()
    }

    /// Takes what the client sent.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.receive(bytes, self.wanted);
    }

    /// Its turn begins.
    pub(super) fn begin_turn(&mut self) {
        (self.keys_left, self.steps_left) = (KEYS_PER_TURN, STEPS_PER_TURN);
        self.has_changed = false;
    }

    /// A request other than a read has been carried out.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Whether its replies of this turn may tell of changes.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Takes one of the steps that the session has in this turn; `false`: it has none.
    pub(super) fn take_step(&mut self) -> bool {
        let left = self.steps_left.checked_sub(1);
        self.has_changed |= left.is_some();
        left.inspect(|left| self.steps_left = *left).is_some()
    }

    /// Keys that it may look up now; 0: its turn is over, or it waits.
    pub(super) fn keys_left(&self) -> usize {
        if self.may_read() { self.keys_left } else { 0 }
    }

    /// Keys that are worth looking up together: what finds no room is read from the device again.
    pub(super) fn keys_at_once(&self) -> usize {
        match self.is_pending() {
            // Reads that wait for others have room for less.
            true if self.keys_fit < KEYS_PER_BATCH => self.keys_fit / PENDING_READS_MAX,
            _ => self.keys_fit,
        }
    }

    /// A value found no room beside those of so many keys.
    pub(super) fn note_full(&mut self, keys: usize) {
        self.keys_fit = keys.clamp(1, KEYS_PER_BATCH);
    }

    /// The values of all keys that were looked up found room.
    pub(super) fn note_room(&mut self) {
        self.keys_fit = (2 * self.keys_fit).min(KEYS_PER_BATCH);
    }

    /// Notes that `count` keys are looked up.
    pub(super) fn take_keys(&mut self, count: usize) {
        self.keys_left -= count;
    }

    /// Goes on behind what was answered.
    pub(super) fn advance(&mut self, taken: Taken) {
        self.input.advance(taken);
        self.wanted = 0;
        self.write_stall = WriteStall::default();
    }

    /// Goes on behind reads that were answered.
    pub(super) fn advance_past_reads(&mut self, Cursor { len, resume }: Cursor) {
        if len > 0 {
            self.advance(Taken { len, swallow: 0 });
        }
        self.input.resume = resume;
        self.begun.len = self.begun.len.saturating_sub(len);
    }

    /// Notes one more group of reads that are pending under `id`; with it, reads are begun up to `begun`.
    pub(super) fn wait_for(&mut self, id: u32, begun: Cursor) {
        self.pending.push_back(id);
        self.begun = begun;
    }

    /// Its next request waits for a fetch, whose result comes to a place.
    pub(super) fn wait_for_fetch(&mut self, id: u32, fetch: Fetch) {
        self.wait_for(id, Cursor { len: 0, resume: self.input.resume });
        self.fetching = Some(fetch);
    }

    /// The end of the reads that were begun.
    pub(super) fn begun(&self) -> Cursor {
        if self.is_pending() { self.begun } else { Cursor { len: 0, resume: self.input.resume } }
    }

    /// The input behind the reads that were begun.
    pub(super) fn not_begun(&self) -> &[u8] {
        &self.input.rest()[self.begun().len..]
    }

    /// Whether more input is of use: not while replies wait or what has come cannot be begun, nor after the end.
    pub fn wants_input(&self) -> bool {
        let may_begin = self.pending.len() < PENDING_READS_MAX && self.not_begun().len() < LINE_BYTES_MAX;
        self.ending.is_none()
            && self.output.has_room()
            && !self.is_stalled()
            && !self.is_dumping()
            && (may_begin || !self.is_pending())
    }

    /// Whether so much waits for the next turn that no more is to be read before.
    pub fn has_full_turn(&self) -> bool {
        self.may_step() && self.input.rest().len() >= READ_BYTES
    }

    /// Ends the wait for write buffers if there are some, or it has lasted long enough.
    pub(super) fn end_stall(&mut self, is_behind: bool, now: Instant) {
        self.write_stall.end(is_behind, now);
    }

    /// Whether the next request waits for write buffers.
    pub fn is_stalled(&self) -> bool {
        self.write_stall.is_waiting
    }

    /// Whether it is being sent a list of all items.
    pub fn is_dumping(&self) -> bool {
        self.dump.is_some()
    }

    /// Whether it waits for the device.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether there may be requests to carry out.
    pub fn may_step(&self) -> bool {
        !self.is_pending() && self.wants_input() && self.input.rest().len() >= self.wanted.max(1)
    }

    /// Whether there may be reads to begin.
    pub(super) fn may_read(&self) -> bool {
        match self.is_pending() {
            true => self.ending.is_none() && self.output.has_room() && self.pending.len() < PENDING_READS_MAX,
            false => self.may_step(),
        }
    }

    /// Replies to send.
    pub fn replies(&self) -> &[u8] {
        &self.output.bytes[self.output.sent..]
    }

    /// Notes that `len` bytes of the replies were sent.
    pub fn sent(&mut self, len: usize) {
        self.output.sent(len);
    }

    /// Gives back what empty buffers take beyond the usual.
    pub fn tidy(&mut self) {
        let Self { input, output, .. } = self;
        if output.bytes.is_empty() && output.bytes.capacity() > BUFFER_BYTES_KEPT {
            output.bytes = Vec::new();
        }
        input.tidy();
    }

    /// The reason why the conversation ends, if it does.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::WRITE_STALL_MILLISECONDS;

    fn session(input: &[u8]) -> Session {
        let mut session = Session::new(1 << 20, Access::Granted, 0);
        session.receive(input);
        session
    }

    #[test]
    fn a_request_waits_for_write_buffers_and_not_for_ever() {
        let (now, longest) = (Instant::now(), Duration::from_millis(WRITE_STALL_MILLISECONDS));
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        let mut stalled = session(b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\n");
        assert!(stalled.write_stall.begin(now, longest));
        assert!(stalled.is_stalled() && !stalled.may_step() && !stalled.wants_input());
        stalled.end_stall(true, after(WRITE_STALL_MILLISECONDS - 1));
        assert!(stalled.is_stalled());
        stalled.end_stall(false, after(WRITE_STALL_MILLISECONDS - 1));
        assert!(stalled.may_step(), "there is room");
        assert!(stalled.write_stall.begin(after(WRITE_STALL_MILLISECONDS - 1), longest), "another took it");
        stalled.end_stall(true, after(WRITE_STALL_MILLISECONDS));
        assert!(!stalled.is_stalled() && stalled.may_step());
        assert!(!stalled.write_stall.begin(after(WRITE_STALL_MILLISECONDS), longest), "its time is over");
        stalled.advance(Taken { len: 16, swallow: 0 });
        assert!(
            stalled.write_stall.begin(after(WRITE_STALL_MILLISECONDS), longest),
            "the next has its own time"
        );
    }
}
