//! A thread that serves clients.

use super::connection::{Connection, NextStep};
use super::stream::Stream;
use crate::clock::unix_time;
use crate::engine::{Engine, Peer, Session};
use crate::limits::{READ_BYTES, STOP_MILLISECONDS, WRITE_STALL_POLL_MILLISECONDS};
use crate::protocol::Ending;
use granary_sockets::{LogThrottle, MaybeTlsStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConfig;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAKER: Token = Token(usize::MAX);
/// The event of reads that have come from the device.
const LANDED: Token = Token(usize::MAX - 1);

/// New connections for a thread.
#[derive(Default)]
pub(super) struct Inbox(Mutex<Vec<(Stream, String)>>);

impl Inbox {
    /// Adds a connection, with the name of the listener that accepted it.
    pub fn put(&self, stream: Stream, listener: String) {
        self.0.lock().expect("no panic under the lock").push((stream, listener));
    }

    fn take(&self) -> Vec<(Stream, String)> {
        std::mem::take(&mut *self.0.lock().expect("no panic under the lock"))
    }
}

/// The poll that a thread will wait on, and the waker that wakes it.
pub(super) fn new_poll() -> io::Result<(Poll, Arc<Waker>)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    Ok((poll, waker))
}

pub(super) struct Worker {
    poll: Poll,
    engine: Engine,
    inbox: Arc<Inbox>,
    stop: Arc<AtomicBool>,
    tls: Option<Arc<ServerConfig>>,
    /// Connections by token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections for the next turn.
    listed: Vec<usize>,
    /// Connections to look at in a moment.
    soon: Vec<usize>,
    buffer: Vec<u8>,
    swept_at: u32,
    /// Whether the last sync of changes failed.
    loses_changes: bool,
    /// The log lines of clients that speak the binary protocol.
    binary: LogThrottle,
}

impl Worker {
    pub fn new(
        poll: Poll,
        engine: Engine,
        inbox: Arc<Inbox>,
        stop: Arc<AtomicBool>,
        tls: Option<Arc<ServerConfig>>,
    ) -> Self {
        Self {
            poll,
            engine,
            inbox,
            stop,
            tls,
            connections: Vec::new(),
            free: Vec::new(),
            listed: Vec::new(),
            soon: Vec::new(),
            buffer: vec![0; READ_BYTES],
            swept_at: 0,
            loses_changes: false,
            binary: LogThrottle::default(),
        }
    }

    pub fn run(mut self) {
        if let Some(event) = self.engine.event()
            && let Err(error) =
                self.poll.registry().register(&mut SourceFd(&event.as_raw_fd()), LANDED, Interest::READABLE)
        {
            tracing::error!(%error, "a serving thread cannot wait for the device");
            return;
        }
        let mut events = Events::with_capacity(1024);
        while !self.stop.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, self.poll_timeout())
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "a serving thread ends");
                return;
            }
            let now = unix_time();
            for event in &events {
                if let Some(Some(connection)) = self.connections.get_mut(event.token().0) {
                    connection.wake(event.is_read_closed() || event.is_error());
                    self.list(event.token().0);
                }
            }
            for (stream, listener) in self.inbox.take() {
                self.admit(stream, listener, now);
            }
            std::mem::take(&mut self.soon).into_iter().for_each(|slot| self.list(slot));
            if events.iter().any(|event| event.token() == LANDED) {
                self.take_completions(now);
            }
            self.turn(now, TurnInput::Taken);
            self.sweep(now);
        }
        self.finish(&mut events);
    }

    /// The longest wait for events; `None`: until there is one.
    fn poll_timeout(&self) -> Option<Duration> {
        match self.listed.is_empty() {
            false => Some(Duration::ZERO),
            true if !self.soon.is_empty() => Some(Duration::from_millis(WRITE_STALL_POLL_MILLISECONDS)),
            true if self.engine.shared().settings.idle_seconds > 0 => Some(Duration::from_secs(1)),
            true => None,
        }
    }

    /// Puts a connection on the list for the next turn.
    fn list(&mut self, slot: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(slot)
            && !std::mem::replace(&mut connection.is_listed, true)
        {
            self.listed.push(slot);
        }
    }

    fn admit(&mut self, mut stream: Stream, listener: String, now: u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(stream.source(), Token(slot), interest) {
            tracing::warn!(%error, "a connection cannot be watched");
            self.free.push(slot);
            self.engine.shared().connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.engine.counters().connections.add(1);
        let mut channel = MaybeTlsStream::new(stream);
        if let Some(Err(error)) = self.tls.as_ref().map(|tls| channel.encrypt(tls)) {
            tracing::error!(%error, "TLS cannot be spoken");
            self.free.push(slot);
            self.engine.shared().connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let peer = Peer::client(channel.stream.peer(), listener, now);
        let shared = self.engine.shared();
        let session = shared.session(slot).with_peer(shared.peers.add(channel.stream.fd(), peer));
        self.connections[slot] = Some(Connection::new(channel, session, now));
        self.list(slot);
    }

    /// Takes reads that have come from the device, and lists their connections.
    fn take_completions(&mut self, now: u32) {
        self.engine.take_completions(now);
        while let Some(slot) = self.engine.next_ready() {
            self.list(slot);
        }
    }

    /// Reads from the connections listed, carries out their requests, and sends replies.
    fn turn(&mut self, now: u32, input: TurnInput) {
        let mut listed = std::mem::take(&mut self.listed);
        if !listed.is_empty() {
            // A turn may end before it has come to all connections: the next one begins with another connection.
            listed.rotate_left(1);
        }
        let Self { connections, engine, buffer, .. } = self;
        let mut sessions: Vec<Session> = Vec::with_capacity(listed.len());
        let mut read = 0;
        for slot in &listed {
            let connection = listed_connection(connections, *slot);
            if input == TurnInput::Taken {
                read += connection.read(buffer, now);
            }
            sessions.extend(connection.session.take());
        }
        engine.turn(&mut sessions, now);
        // The device reads while replies are sent.
        engine.take_completions(now);
        // A loss of power must not undo changes that a reply acknowledges or shows.
        let synced = engine.shared().store.sync_changes();
        if let Err(error) = &synced
            && !self.loses_changes
        {
            tracing::error!(%error, "a crash could undo changes: clients that make some are let go without a reply");
        }
        self.loses_changes = synced.is_err();
        // Where changes must survive a loss of power, no reply is sent: even a read may show another client's change.
        let all_wait = engine.shared().settings.syncs_changes;
        let (mut written, mut yields) = (0, 0);
        let mut next_steps = Vec::with_capacity(listed.len());
        for (slot, session) in listed.iter().zip(sessions) {
            let connection = listed_connection(connections, *slot);
            session.note(connection.active_at);
            connection.session = Some(session);
            connection.is_listed = false;
            yields += std::mem::take(&mut connection.yields);
            if synced.is_err() && (all_wait || connection.session.as_ref().is_some_and(Session::has_changed))
            {
                next_steps.push(NextStep::Close);
                continue;
            }
            written += connection.write(now);
            next_steps.push(connection.next_step());
        }
        engine.counters().bytes_read.add(read as u64);
        engine.counters().bytes_written.add(written as u64);
        engine.counters().conn_yields.add(yields);
        for (slot, next_step) in listed.into_iter().zip(next_steps) {
            match next_step {
                NextStep::Wait => {}
                NextStep::Again => self.list(slot),
                NextStep::Soon => self.soon.push(slot),
                NextStep::Close => self.close(slot),
            }
        }
        while let Some(slot) = self.engine.next_ready() {
            self.list(slot);
        }
    }

    fn close(&mut self, slot: usize) {
        let Some(mut connection) = self.connections[slot].take() else { return };
        if connection.session.as_ref().is_some_and(|session| session.ending() == Some(Ending::Binary))
            && let Some(untold) = self.binary.take()
        {
            tracing::warn!(
                untold,
                "a client speaks memcached's binary protocol, which is not served: it is let go"
            );
        }
        if let Some(session) = &connection.session {
            self.engine.forget(session);
        }
        connection.channel.close();
        // An error does not matter: closing the socket in a moment deregisters it, too.
        let _ = self.poll.registry().deregister(connection.channel.stream.source());
        self.engine.shared().peers.remove(connection.channel.stream.fd());
        self.free.push(slot);
        self.engine.shared().connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Closes idle connections, if the settings say so.
    fn sweep(&mut self, now: u32) {
        let idle_seconds = self.engine.shared().settings.idle_seconds;
        if idle_seconds == 0 || now == self.swept_at {
            return;
        }
        self.swept_at = now;
        for slot in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[slot] else { continue };
            if !connection.is_idle(now, idle_seconds) {
                continue;
            }
            // The system reports room for replies late: a client that takes them bit by bit is not idle.
            let written = connection.write(now);
            self.engine.counters().bytes_written.add(written as u64);
            if connection.is_idle(now, idle_seconds) {
                self.engine.counters().idle_kicks.add(1);
                self.close(slot);
            } else {
                self.list(slot);
            }
        }
    }

    /// Carries out the requests that have arrived and sends the replies, for a while, without reading more.
    fn finish(mut self, events: &mut Events) {
        let deadline = Instant::now() + Duration::from_millis(STOP_MILLISECONDS);
        self.engine.stop_stalling();
        loop {
            let now = unix_time();
            self.take_completions(now);
            (0..self.connections.len()).for_each(|slot| self.list(slot));
            self.turn(now, TurnInput::Left);
            for slot in 0..self.connections.len() {
                if self.connections[slot].as_ref().is_some_and(Connection::is_done) {
                    self.close(slot);
                }
            }
            let Self { listed, connections, .. } = &mut self;
            // Connections that wait for the device are listed when it has answered.
            listed.retain(|slot| {
                let Some(connection) = &mut connections[*slot] else { return false };
                connection.is_listed = !connection.is_pending();
                connection.is_listed
            });
            let left = deadline.saturating_duration_since(Instant::now());
            if self.free.len() == self.connections.len() || left.is_zero() {
                return;
            }
            let timeout = if self.listed.is_empty() { left } else { Duration::ZERO };
            if self.poll.poll(events, Some(timeout)).is_err() {
                return;
            }
        }
    }
}

/// Whether a turn reads from its connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnInput {
    Taken,
    Left,
}

fn listed_connection(connections: &mut [Option<Connection>], slot: usize) -> &mut Connection {
    connections[slot].as_mut().expect("what is listed is there")
}
