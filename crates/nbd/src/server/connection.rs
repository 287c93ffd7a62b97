//! One client's connection, on a thread of its own.

use super::poll_budget::PollBudget;
use super::stop::Stop;
use super::wire::Wire;
use crate::export::Exports;
use crate::limits::{
    IDLE_MILLISECONDS, LOOK_MILLISECONDS, STALL_BYTES_MIN, STOP_LINGER_MILLISECONDS,
    STOP_REFUSAL_MILLISECONDS, STOP_SECONDS,
};
use crate::protocol::{Budget, Conversation, Ending, Need, TlsPolicy};
use granary_sockets::MaybeTlsStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConfig;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server's state that a connection needs.
#[derive(Clone)]
pub(super) struct Context {
    pub exports: Arc<dyn Exports>,
    pub tls: Option<Arc<ServerConfig>>,
    pub policy: TlsPolicy,
    pub budget: Arc<Budget>,
    pub stop: Stop,
    pub handshake_timeout: Duration,
    pub stall_timeout: Duration,
}

/// The end of a connection.
#[derive(Debug)]
pub(super) enum End {
    /// By the protocol, or as the client has gone.
    Protocol(Ending),
    /// The server stops.
    Stopped,
    /// The client took too long.
    Slow(&'static str),
    /// The socket failed.
    Broken(io::Error),
}

/// A client that is waited for: to take replies, or to send the rest of a request.
struct Stall {
    /// The start of the wait, or the last progress.
    since: Instant,
    /// Bytes received or sent since then.
    bytes: usize,
}

/// The reason why a waiting thread woke.
enum Wake {
    /// The client has sent something, or has gone.
    Readable,
    /// Something else, or the deadline.
    Other,
    /// The connection is over.
    Over(End),
}

pub(super) struct Connection {
    conversation: Conversation,
    channel: MaybeTlsStream<Wire>,
    context: Context,
    begun: Instant,
    /// The last time that bytes were received or sent.
    active: Instant,
    stall: Option<Stall>,
    stopping: Option<Instant>,
    /// The client has closed its side.
    is_closed: bool,
    /// The last read without a readiness event found bytes.
    is_busy: bool,
    poll_budget: PollBudget,
}

impl Connection {
    pub fn new(wire: Wire, context: Context) -> Self {
        let conversation =
            Conversation::new(Arc::clone(&context.exports), context.policy, Arc::clone(&context.budget));
        let now = Instant::now();
        let channel = MaybeTlsStream::new(wire);
        Self {
            conversation,
            channel,
            context,
            begun: now,
            active: now,
            stall: None,
            stopping: None,
            is_closed: false,
            is_busy: false,
            poll_budget: PollBudget::default(),
        }
    }

    /// Serves the client until the connection ends.
    pub fn run(mut self) -> End {
        let end = self.turns().unwrap_or_else(End::Broken);
        // Before the client can notice the end, for it may come back at once. After a goodbye nothing is left to give
        // up.
        self.conversation.client_has_gone();
        self.channel.close();
        // After a goodbye, too: through TLS, bytes of the client come behind it.
        match end {
            End::Broken(_) => {}
            End::Protocol(_) if self.channel.is_encrypted() => self.linger(self.context.stall_timeout),
            _ => self.linger(Duration::ZERO),
        }
        end
    }

    fn turns(&mut self) -> io::Result<End> {
        loop {
            if self.stopping.is_none() && self.context.stop.is_given() {
                self.stopping = Some(Instant::now());
                self.conversation.stop();
            }
            // Checked here, for a client that keeps sending is never waited for.
            if self.is_late() {
                return Ok(End::Slow("its handshake took too long"));
            }
            if self.stopping.is_some_and(|stopping| stopping + self.stop_timeout() <= Instant::now()) {
                return Ok(End::Stopped);
            }
            let need = self.conversation.advance();
            let has_sent = self.send()?;
            let is_sent = !self.has_output();
            match need {
                Need::StartTls if is_sent => {
                    self.start_tls()?;
                    continue;
                }
                Need::Nothing(ending) if is_sent && self.conversation.in_flight() == 0 => {
                    return Ok(End::Protocol(ending));
                }
                // There may be room again.
                Need::Room if has_sent => continue,
                Need::AnotherCall => continue,
                _ => {}
            }
            self.conversation.tidy();
            let wants_input = need == Need::Input;
            if wants_input && (self.is_busy || self.channel.is_encrypted()) {
                self.is_busy = self.receive()?;
                if self.is_busy {
                    continue;
                }
            }
            let began = Instant::now();
            let awaits_client = wants_input && is_sent && self.conversation.in_flight() == 0;
            if awaits_client && !self.poll_budget.get().is_zero() && self.look(began)? {
                self.poll_budget.learn(began.elapsed());
                continue;
            }
            match self.wait(need)? {
                Wake::Over(end) => return Ok(end),
                Wake::Readable if wants_input && !self.channel.is_encrypted() => {
                    self.is_busy = self.receive()?;
                    self.poll_budget.learn(began.elapsed());
                }
                Wake::Readable | Wake::Other => {}
            }
        }
    }

    /// Polls for requests for a while, yielding the core. Returns whether there are any.
    fn look(&mut self, began: Instant) -> io::Result<bool> {
        while began.elapsed() < self.poll_budget.get() {
            rustix::thread::sched_yield();
            if self.receive()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the handshake takes too long.
    fn is_late(&self) -> bool {
        !self.conversation.is_transmitting() && self.begun.elapsed() > self.context.handshake_timeout
    }

    fn start_tls(&mut self) -> io::Result<()> {
        let configuration = self.context.tls.as_ref().expect("STARTTLS is refused without a certificate");
        self.channel.encrypt(configuration).map_err(io::Error::other)?;
        self.conversation.encrypted();
        Ok(())
    }

    /// Reads arrived bytes, at most a buffer. Returns whether there were any.
    fn receive(&mut self) -> io::Result<bool> {
        let space = self.conversation.space();
        debug_assert!(!space.is_empty(), "there is room for what is needed");
        match self.channel.read(space) {
            Ok(0) => self.conversation.hung_up(),
            Ok(len) => {
                self.conversation.arrived(len);
                self.note_moved(len);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Sends pending bytes as far as the client, or TLS, takes them. Returns whether any were taken.
    fn send(&mut self) -> io::Result<bool> {
        let before = self.channel.bytes_sent();
        let sent = self.send_pending();
        // What TLS holds back was not taken by the client.
        let moved = self.channel.bytes_sent() - before;
        if moved > 0 {
            self.note_moved(moved as usize);
        }
        sent
    }

    fn send_pending(&mut self) -> io::Result<bool> {
        let mut has_sent = false;
        loop {
            if !self.has_output() {
                return Ok(has_sent);
            }
            let pending = self.conversation.pending();
            let written = match pending.is_empty() {
                true => self.channel.send().map(|()| 0),
                false => self.channel.write(pending),
            };
            match written {
                Ok(0) if !pending.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => {
                    self.conversation.sent(len);
                    has_sent = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the client has yet to take bytes, among them those that TLS holds back.
    fn has_output(&self) -> bool {
        !self.conversation.pending().is_empty() || self.channel.has_unsent()
    }

    /// Notes that bytes were received or sent. If the connection holds memory that others may wait for, only enough
    /// bytes count as progress.
    fn note_moved(&mut self, bytes: usize) {
        self.active = Instant::now();
        let Some(stall) = &mut self.stall else { return };
        stall.bytes += bytes;
        if stall.bytes >= STALL_BYTES_MIN || !self.conversation.holds_memory() {
            *stall = Stall { since: self.active, bytes: 0 };
        }
    }

    /// Notes whether the client is waited for.
    fn note_turn(&mut self, need: Need, now: Instant) {
        let is_awaited = self.has_output() || need == Need::Input && self.conversation.is_partial();
        if !is_awaited {
            self.stall = None;
        } else if self.stall.is_none() {
            self.stall = Some(Stall { since: now, bytes: 0 });
        }
    }

    /// Waits until the conversation can go on.
    fn wait(&mut self, need: Need) -> io::Result<Wake> {
        let now = Instant::now();
        self.note_turn(need, now);
        let deadline = match self.deadline(need, now) {
            Ok(deadline) => deadline,
            Err(end) => return Ok(Wake::Over(end)),
        };
        let has_output = self.has_output();
        let event = self.conversation.event().filter(|_| self.conversation.in_flight() > 0);
        let (wire, stop) = (&self.channel.stream, self.context.stop.event());
        // poll() needs a descriptor in each place: a missing one is replaced by one without events.
        let watch = |fd: Option<_>, flags| match fd {
            Some(fd) => PollFd::from_borrowed_fd(fd, flags),
            None => PollFd::from_borrowed_fd(stop, PollFlags::empty()),
        };
        let input = match need {
            Need::Input => watch(Some(wire.input()), PollFlags::IN),
            // Nothing is read from it, but a hang-up of the client must be noticed.
            Need::Room | Need::Memory if !self.is_closed && self.conversation.is_transmitting() => {
                watch(Some(wire.input()), PollFlags::RDHUP)
            }
            _ => watch(None, PollFlags::empty()),
        };
        let mut fds = [
            input,
            watch(has_output.then(|| wire.output()), PollFlags::OUT),
            watch(self.stopping.is_none().then_some(stop), PollFlags::IN),
            watch(event, PollFlags::IN),
        ];
        let timeout = Timespec::try_from(deadline.saturating_duration_since(now)).ok();
        let count = match poll(&mut fds, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(Wake::Other),
            count => count?,
        };
        let [input, output, ..] = fds.map(|fd| fd.revents());
        if count == 0 {
            self.conversation.give_back();
        }
        if input.union(output).intersects(PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if need != Need::Input && !input.is_empty() {
            self.is_closed = true;
            if !self.has_disconnect() {
                self.conversation.client_has_gone();
            }
            return Ok(Wake::Other);
        }
        Ok(if input.is_empty() { Wake::Other } else { Wake::Readable })
    }

    /// Whether the unread bytes of a client that has closed its side contain a goodbye. Through TLS this cannot be
    /// seen.
    fn has_disconnect(&self) -> bool {
        let finds = |behind: Vec<u8>| self.conversation.has_disconnect(&behind);
        !self.channel.is_encrypted() && self.channel.stream.peek().is_ok_and(finds)
    }

    /// The latest time to wake up, or the end of the connection.
    fn deadline(&self, need: Need, now: Instant) -> Result<Instant, End> {
        let conversation = &self.conversation;
        let mut deadline = now + Duration::from_millis(IDLE_MILLISECONDS);
        let mut until = |time: Instant, end: End| {
            deadline = deadline.min(time);
            if time <= now { Err(end) } else { Ok(()) }
        };
        if !conversation.is_transmitting() {
            until(self.begun + self.context.handshake_timeout, End::Slow("its handshake took too long"))?;
        }
        if let Some(stall) = &self.stall {
            until(stall.since + self.context.stall_timeout, End::Slow("it stalled"))?;
        }
        if let Some(stopping) = self.stopping {
            until(stopping + self.stop_timeout(), End::Stopped)?;
            if self.is_idle() {
                let active = self.active.max(stopping);
                until(active + Duration::from_millis(STOP_LINGER_MILLISECONDS), End::Stopped)?;
            }
        }
        let looks = need == Need::Memory || conversation.in_flight() > 0 && conversation.event().is_none();
        if looks {
            deadline = deadline.min(now + Duration::from_millis(LOOK_MILLISECONDS));
        }
        Ok(deadline)
    }

    /// Whether all begun commands are completed, and their replies sent.
    fn is_idle(&self) -> bool {
        let conversation = &self.conversation;
        conversation.in_flight() == 0 && !self.has_output() && !conversation.is_within_write()
    }

    /// The time for which a stopping server serves the client.
    fn stop_timeout(&self) -> Duration {
        match self.is_idle() {
            true => Duration::from_millis(STOP_REFUSAL_MILLISECONDS),
            false => Duration::from_secs(STOP_SECONDS),
        }
    }

    /// Waits for the client to take the last replies and to go: a moment, or `most` as long as the server is not
    /// stopped. Closing a socket with unread bytes would make the system drop undelivered replies.
    fn linger(&mut self, most: Duration) {
        let wire = &mut self.channel.stream;
        wire.shutdown();
        let began = Instant::now();
        let moment = Duration::from_millis(STOP_LINGER_MILLISECONDS);
        loop {
            let is_stopped = self.stopping.is_some() || self.context.stop.is_given();
            let until = began + if is_stopped { moment } else { most.max(moment) };
            // In between it is seen whether the server is stopped.
            let left = until.saturating_duration_since(Instant::now()).min(moment);
            let mut fds = [PollFd::from_borrowed_fd(wire.input(), PollFlags::IN)];
            let Some(came) = Timespec::try_from(left).ok().and_then(|left| poll(&mut fds, Some(&left)).ok())
            else {
                return;
            };
            let mut scratch = [0; 4096];
            if left.is_zero() || came == 1 && !matches!(io::Read::read(wire, &mut scratch), Ok(1..)) {
                return;
            }
        }
    }
}
