//! Accepts connections and deals them out to the threads in turn.

use super::listener::Listener;
use super::stream::Stream;
use super::worker::Inbox;
use crate::clock::unix_time;
use crate::engine::{Peer, ServerState};
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WAKER: Token = Token(0);

/// The pause after a connection could not be accepted: the process may have no file descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Acceptor {
    poll: Poll,
    listeners: Vec<Listener>,
    shared: Arc<ServerState>,
    inboxes: Vec<(Arc<Inbox>, Arc<Waker>)>,
    next: usize,
    stop: Arc<AtomicBool>,
}

impl Acceptor {
    pub fn new(
        mut listeners: Vec<Listener>,
        shared: Arc<ServerState>,
        inboxes: Vec<(Arc<Inbox>, Arc<Waker>)>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<(Self, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        for (i, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener.source(), Token(1 + i), Interest::READABLE)?;
            shared.peers.add(listener.fd(), Peer::listening(listener.name(), unix_time()));
        }
        Ok((Self { poll, listeners, shared, inboxes, next: 0, stop }, waker))
    }

    pub fn run(mut self) {
        let mut events = Events::with_capacity(16);
        while !self.stop.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, None)
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "no more connections are accepted");
                return;
            }
            (0..self.listeners.len()).for_each(|listener| self.accept(listener));
        }
    }

    fn accept(&mut self, listener: usize) {
        while !self.stop.load(Ordering::Acquire) {
            match self.listeners[listener].accept() {
                Ok(stream) => self.deal(stream, listener),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    self.shared.accept_failures.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(PAUSE);
                    self.shared.accept_pause_us.fetch_add(PAUSE.as_micros() as u64, Ordering::Relaxed);
                }
            }
        }
    }

    fn deal(&mut self, mut stream: Stream, listener: usize) {
        let connections = &self.shared.connections;
        if connections.load(Ordering::Relaxed) >= self.shared.settings.connections_max {
            // The same line as memcached's; it may not arrive.
            let _ = stream.write(b"ERROR Too many open connections\r\n");
            self.shared.rejected.fetch_add(1, Ordering::Relaxed);
            return;
        }
        connections.fetch_add(1, Ordering::Relaxed);
        let (inbox, waker) = &self.inboxes[self.next];
        self.next = (self.next + 1) % self.inboxes.len();
        inbox.put(stream, self.listeners[listener].name());
        if let Err(error) = waker.wake() {
            tracing::error!(%error, "a thread cannot be woken");
        }
    }
}

/// Whether accepting failed because the client went away before, or a signal came.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}
