//! One client's socket.

use super::stream::Stream;
use crate::engine::Session;
use crate::limits::READ_BYTES;
use granary_sockets::MaybeTlsStream;
use std::io;

/// The state of a socket between events: epoll reports changes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// There may be more to read, until a read does not fill the buffer.
    Ready,
    /// The client has closed its side: there may be more to read, until a read returns the end.
    Closing,
    /// The last read took all there was: an event will come.
    Waiting,
    /// The client sends no more.
    Ended,
    /// The socket is broken: nothing can be read or written.
    Broken,
}

/// The next step with a connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// To be listed for the next turn at once.
    Again,
    /// To be looked at again in a moment.
    Soon,
    /// To wait for an event.
    Wait,
    /// To be closed.
    Close,
}

pub(super) struct Connection {
    pub channel: MaybeTlsStream<Stream>,
    /// The session; `None` while a turn has it.
    pub session: Option<Session>,
    readiness: Readiness,
    /// Whether it is on the list of connections for the next turn.
    pub is_listed: bool,
    /// The second when bytes last were received or sent.
    pub active_at: u32,
    /// The number of turns that ended before all of the input was read.
    pub yields: u64,
}

impl Connection {
    pub fn new(channel: MaybeTlsStream<Stream>, session: Session, now: u32) -> Self {
        channel.stream.prepare();
        let readiness = Readiness::Ready;
        Self { channel, session: Some(session), readiness, is_listed: false, active_at: now, yields: 0 }
    }

    /// Notes an event; `is_closed`: the client has closed its side.
    pub fn wake(&mut self, is_closed: bool) {
        match self.readiness {
            Readiness::Ready | Readiness::Waiting if is_closed => self.readiness = Readiness::Closing,
            Readiness::Waiting => self.readiness = Readiness::Ready,
            _ => {}
        }
    }

    fn is_readable(&self) -> bool {
        matches!(self.readiness, Readiness::Ready | Readiness::Closing)
    }

    /// Reads what has arrived, up to one turn's share. Returns the number of bytes.
    pub fn read(&mut self, buffer: &mut [u8], now: u32) -> usize {
        let mut total = 0;
        while self.is_readable() && total < READ_BYTES {
            let session = self.session.as_mut().expect("no turn is under way");
            if !session.wants_input() || session.has_full_turn() {
                break;
            }
            match self.channel.read(buffer) {
                Ok(0) => self.readiness = Readiness::Ended,
                Ok(len) => {
                    session.receive(&buffer[..len]);
                    (total, self.active_at) = (total + len, now);
                    if len < buffer.len()
                        && !self.channel.is_encrypted()
                        && self.readiness == Readiness::Ready
                    {
                        self.readiness = Readiness::Waiting;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readiness = Readiness::Waiting
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.readiness = Readiness::Broken,
            }
        }
        self.yields += u64::from(self.is_readable() && total >= READ_BYTES);
        total
    }

    /// Sends waiting replies, as far as the client takes them. Returns the number of bytes.
    pub fn write(&mut self, now: u32) -> usize {
        let before = self.channel.bytes_sent();
        let session = self.session.as_mut().expect("no turn is under way");
        let mut total = 0;
        while !session.replies().is_empty() && self.readiness != Readiness::Broken {
            match self.channel.write(session.replies()) {
                Ok(0) => self.readiness = Readiness::Broken,
                Ok(len) => {
                    session.sent(len);
                    total += len;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.readiness = Readiness::Broken,
            }
        }
        if session.replies().is_empty() {
            session.tidy();
        }
        match self.channel.send() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => self.readiness = Readiness::Broken,
            _ => {}
        }
        if self.channel.bytes_sent() > before {
            self.active_at = now;
        }
        total
    }

    /// Whether the connection does nothing, and has done nothing for longer than `seconds`.
    pub fn is_idle(&self, now: u32, seconds: u64) -> bool {
        u64::from(now.saturating_sub(self.active_at)) > seconds && !self.is_busy()
    }

    /// Whether the client has not taken all of its replies.
    pub fn has_replies(&self) -> bool {
        self.channel.has_unsent()
            || self.session.as_ref().is_some_and(|session| !session.replies().is_empty())
    }

    /// Whether the connection waits for reads of the device.
    pub fn is_pending(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_pending)
    }

    /// Whether the connection waits for its turn, for reads of the device or for write buffers.
    fn is_busy(&self) -> bool {
        self.is_listed || self.is_pending() || self.session.as_ref().is_some_and(Session::is_stalled)
    }

    /// Whether all requests that have arrived were carried out, and the client has taken all replies.
    pub fn is_done(&self) -> bool {
        let session = self.session.as_ref().expect("no turn is under way");
        !self.has_replies() && !session.is_pending() && !session.is_dumping() && !session.may_step()
    }

    /// The next step with the connection after this turn.
    pub fn next_step(&self) -> NextStep {
        let session = self.session.as_ref().expect("no turn is under way");
        if self.readiness == Readiness::Broken {
            return NextStep::Close;
        }
        if self.has_replies() {
            // Replies are left only if the socket had no room: an event will come.
            return NextStep::Wait;
        }
        match self.readiness {
            Readiness::Ready | Readiness::Closing if session.is_pending() && session.wants_input() => {
                NextStep::Again
            }
            _ if session.is_stalled() => NextStep::Soon,
            _ if session.is_dumping() => NextStep::Again,
            // The reads that it waits for will come, whether or not the client has closed its side.
            _ if session.is_pending() => NextStep::Wait,
            _ if session.ending().is_some() => NextStep::Close,
            _ if session.may_step() => NextStep::Again,
            Readiness::Ready | Readiness::Closing => NextStep::Again,
            Readiness::Ended => NextStep::Close,
            Readiness::Waiting | Readiness::Broken => NextStep::Wait,
        }
    }
}
